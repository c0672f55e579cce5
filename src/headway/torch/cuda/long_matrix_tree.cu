// Non-projective trees of up to 2 N words: log Z and marginals by escape walks, one block of 2 N threads a sentence.
//
// `matrix_tree.cu` has tables of N words in registers, and two such tables fit into no multiprocessor. So the words are
// taken in two halves. For the columns of one half, the kept words K:
//
//   1. the others, L, are eliminated among themselves, last word first, which needs their own rows only
//          d[k] = sum of W[k, j] over K and the words before k;   W[i, j] += W[i, k] W[k, j] / d[k]   for i before k
//   2. the rows of K pass by these pivots one after the other, as if eliminated with them; what they are left with is a
//      table of N words, whose escapes E[K, K] `solve_half` finds
//   3. L is eliminated again, since its rows had to make room
//   4. and the escapes of L follow from those of K, first word first:
//          E[k, m] = (root[k] + sum over K and the words before k of W[k, j] E[j, m]) / d[k]
//   5. P(h -> m) = W E over the sum of it for all heads of m.
//
// Then the same with the halves exchanged. Z is the product of all pivots of the first time, and is all there is if
// there are no words in the second half, or no marginals wanted.
//
// *Layout.* In 1 to 4, a warp has the rows warp, warp + WARPS, ... of a half, and a lane the columns lane, lane + 32, ...
// of them, in registers. A pivot's row goes through shared memory, where it stays; its column, through shuffles.
// Weights come from the scores each time, by way of shared memory, since scores lie the other way round.
//
// X is float or double. Sentences with arcs more than SAFE_SPREAD below their word's best are left to the next kernel, in
// the list `rest`. In all others a walk leaves a word for any other after n exp(SAFE_SPREAD) steps or less on average,
// which bounds all sums. Forbidden arcs are as in `matrix_tree.cu`: in double numbers weights of exp(FORBIDDEN_LOG), if
// their trees are too few to notice. O(n^3) operations; every result is written once.

#include "matrix_tree.cu"

// Numbers of shared memory. Of the large parts, no more than two are needed at a time: rows and the table of K, the table
// and escapes (with what `solve_half` needs beside), escapes and rows.
template <int N>
struct Shared {
    static constexpr int STRIDE = 2 * N + 1;  // of rows: the columns of K, those of L, and the root's
    static constexpr int ROWS = N * STRIDE, TABLE = N * weights_stride(N), ESCAPES = N * escapes_stride(N);
    static constexpr int LARGE = ROWS + (TABLE > ESCAPES ? TABLE : ESCAPES);
    static_assert(ESCAPES + 2 * handed_down(N) + 2 * lines_size(N) <= ROWS && LARGE % 2 == 0);
};
template <class X, int N>
__host__ __device__ constexpr int long_bytes() {  // tops, inverses, and a double of each thread beside
    return sizeof(X) * (Shared<N>::LARGE + 3 * N) + 8 * 2 * N;
}

template <class T, class X, int N, bool MULTI>
struct LongSentence {
    using S = Shared<N>;
    static constexpr int THREADS = 2 * N, WARPS = THREADS / 32, R = N / WARPS, C = 2 * N / 32, HALF = C / 2;
    static constexpr bool MAY_MASK = sizeof(X) == 8;
    static_assert(N % 32 == 0 && R * WARPS == N);

    const T* scores;
    int n, nodes;
    X* large;    // rows first and the table after them, or escapes first and the rows after them
    X* top;      // of each word: its largest score, which weights are relative to
    X* inverse;  // of each pivot: 1 / d
    double* parts;  // one of each thread
    X root_top;
    double shift, bound;  // log Z is that of the weights plus `shift`; `bound` is log of the product of the rows' sums
    bool masked;
    int thread, warp, lane;

    __device__ __forceinline__ LongSentence(const T* scores, int n, int nodes, char* shared)
        : scores(scores), n(n), nodes(nodes), large(reinterpret_cast<X*>(shared)), top(large + S::LARGE),
          inverse(top + 2 * N), parts(reinterpret_cast<double*>(inverse + N)), root_top(0), shift(0),
          bound(0), masked(false), thread(threadIdx.x), warp(threadIdx.x / 32), lane(threadIdx.x % 32) {}

    // The rows of one half, as this thread has them: C columns of each of R rows, and the root's.
    struct Rows {
        X w[R][C], root[R];
    };

    // -------------------------------------------------------------------------------------------------- weights

    __device__ __forceinline__ X score(int h, int m) const { return X(scores[h * nodes + m]); }

    // Whether an arc is none, since its score is -inf.
    __device__ __forceinline__ bool is_forbidden(int h, int m) const {
        return MAY_MASK && masked && score(h, m) == X(-1.0 / 0.0);
    }

    // Sets what weights are relative to. False if X cannot hold them. A thread a word.
    __device__ bool set_scale() {
        const X none = X(-1.0 / 0.0);
        const int m = thread + 1, first = MULTI ? 0 : 1;
        const bool real = m <= n;
        X most = none, least = -none;
        bool fine = true, has_mask = MAY_MASK && real && !MULTI && score(0, m) == none;
        for (int h = first; real && h <= n; ++h) {
            if (h == m) continue;
            const X x = score(h, m);
            const bool forbidden = MAY_MASK && x == none;
            has_mask = has_mask || forbidden;
            fine = fine && (forbidden || x - x == X(0));  // neither infinite nor nan
            most = x > most ? x : most;
            least = !forbidden && x < least ? x : least;
        }
        if (!(most > none)) most = X(0);
        top[thread] = most;
        fine = fine && (least == -none || least - most >= X(-SAFE_SPREAD<X>));
        if constexpr (!MULTI) {
            const X root = real ? score(0, m) - most : none;
            root_top = X(largest(double(root)));
            if (!(root_top > none)) root_top = X(0);
            fine = fine && (!real || MAY_MASK && root == none || root - root_top >= X(-SAFE_SPREAD<X>));
        }
        masked = __syncthreads_or(has_mask);
        if (__syncthreads_or(!fine)) return false;
        shift = sum(real ? double(most) : 0.0) + double(root_top);
        if (!masked) return true;
        double total = 0.0;
        for (int h = 0; real && h <= n; ++h) total += double(weight(h, m));
        bound = sum(total > 1.0 ? log(total) : 0.0);
        return true;
    }

    // Over all threads of the block.
    __device__ double sum(double x) {
        return together(x, [](double a, double b) { return a + b; });
    }
    __device__ double largest(double x) {
        return together(x, [](double a, double b) { return a > b ? a : b; });
    }
    template <class Operation>
    __device__ double together(double x, Operation operation) {
        for (int step = 1; step < 32; step *= 2) x = operation(x, shuffle_xor(x, step));
        if (lane == 0) parts[warp] = x;
        __syncthreads();
        x = parts[0];
        for (int i = 1; i < WARPS; ++i) x = operation(x, parts[i]);
        __syncthreads();
        return x;
    }

    // Of the arc h -> m. Words beyond the end have word 1 as their only head, and are nobody's head.
    __device__ __forceinline__ X weight(int h, int m) const {
        if (m > n) return X(h == 1 ? 1 : 0);
        if (h > n || h == m) return X(0);
        if (is_forbidden(h, m)) return weight_exp(X(FORBIDDEN_LOG));
        return weight_exp(score(h, m) - top[m - 1] - (h == 0 && !MULTI ? root_top : X(0)));
    }

    // N x N weights: of the words after `row`, from the heads after `column`.
    __device__ void fill(X* block, int stride, int row, int column) const {
        for (int i = thread % N, j = thread / N; j < N; j += 2) block[i * stride + j] = weight(column + j + 1, row + i + 1);
    }

    // All rows of the words after `row`, by way of a block of shared memory; columns of the words after `kept` first.
    __device__ __forceinline__ void load(Rows& own, X* block, int stride, int row, int kept, int others) const {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            fill(block, stride, row, half == 0 ? kept : others);
            __syncthreads();
#pragma unroll
            for (int r = 0; r < R; ++r)
#pragma unroll
                for (int c = 0; c < HALF; ++c) own.w[r][half * HALF + c] = block[(warp + WARPS * r) * stride + lane + 32 * c];
            __syncthreads();
        }
#pragma unroll
        for (int r = 0; r < R; ++r) own.root[r] = weight(0, row + warp + WARPS * r + 1);
    }

    // ---------------------------------------------------------------------------------------------- elimination

    // The pivot k of L, whose row is in `line`, eliminated from the rows of this thread before ROW, and from that one if it
    // `counts`. COLUMN is the register of column k; what lies beyond it in a row is not used any more.
    template <int ROW, int COLUMN>
    __device__ __forceinline__ void pass(Rows& own, const X* line, int k, bool counts) const {
        X p[C];
        const X p_root = line[2 * N], divided = inverse[k];
#pragma unroll
        for (int c = 0; c <= COLUMN; ++c) p[c] = line[lane + 32 * c];
#pragma unroll
        for (int r = 0; r < R; ++r)
            if (r <= ROW) {
                X f = shuffle(own.w[r][COLUMN], k % 32, 32) * divided;
                if (r == ROW) f *= X(counts ? 1 : 0);
                own.root[r] += f * p_root;
#pragma unroll
                for (int c = 0; c <= COLUMN; ++c) own.w[r][c] += f * p[c];
            }
    }

    // Row k of L as it is now becomes the pivot: into `line`, and 1 / d beside. Returns d.
    template <int ROW, int COLUMN>
    __device__ __forceinline__ X publish(const Rows& own, X* line, int k) {
        X d = X(0);
#pragma unroll
        for (int c = 0; c <= COLUMN; ++c) {
            line[lane + 32 * c] = own.w[ROW][c];
            d += c < COLUMN || lane < k % 32 ? own.w[ROW][c] : X(0);
        }
#pragma unroll
        for (int step = 1; step < 32; step *= 2) d += shuffle_xor(d, step);
        if constexpr (MULTI) d += own.root[ROW];
        if (lane == 0) line[2 * N] = own.root[ROW], inverse[k] = inverse_of(d);
        return d;
    }

    // Step 1, into `rows`; the pivots are multiplied into z if they count.
    template <int ROW = R - 1>
    __device__ __forceinline__ void eliminate(Rows& own, X* rows, Extended<double>& z, bool counts) {
        constexpr int COLUMN = HALF + WARPS * ROW / 32;
#pragma unroll 1
        for (int i = WARPS - 1; i >= 0; --i) {
            const int k = WARPS * ROW + i;
            X* line = rows + k * S::STRIDE;
            if (warp == i) {
                const X d = publish<ROW, COLUMN>(own, line, k);
                z = normal(z.m * (counts && lane == 0 ? double(d) : 1.0), z.e);
            }
            __syncthreads();
            pass<ROW, COLUMN>(own, line, k, warp < i);
        }
        if constexpr (ROW > 0) eliminate<ROW - 1>(own, rows, z, counts);
    }

    // Step 2: the pivots in `rows`, from the last, for all rows of K.
    template <int COLUMN = C - 1>
    __device__ __forceinline__ void pass_all(Rows& own, const X* rows) const {
#pragma unroll 1
        for (int k = 32 * (COLUMN - HALF) + 31; k >= 32 * (COLUMN - HALF); --k)
            pass<R - 1, COLUMN>(own, rows + k * S::STRIDE, k, true);
        if constexpr (COLUMN > HALF) pass_all<COLUMN - 1>(own, rows);
    }

    // ------------------------------------------------------------------------------------------------- escapes

    // Step 4: the columns of K of `rows` become the escapes of L. `escape` has those of K, whose columns this thread has in
    // as many registers.
    __device__ __forceinline__ void substitute(const X* escape, X* rows) {
        X e[R][HALF];
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int c = 0; c < HALF; ++c) e[r][c] = rows[(warp + WARPS * r) * S::STRIDE + 2 * N];
#pragma unroll 2
        for (int j = 0; j < N; ++j) add<0>(e, escape + j * escapes_stride(N), rows + j, true);
        __syncthreads();
        substitute_own<0>(e, rows);
    }

    // Add what passes through the word whose escapes are in `line`, and whose column is `column`, to the rows after ROW, and
    // to that one if it `counts`.
    template <int ROW>
    __device__ __forceinline__ void add(X (&e)[R][HALF], const X* line, const X* column, bool counts) const {
        X known[HALF];
#pragma unroll
        for (int c = 0; c < HALF; ++c) known[c] = line[lane + 32 * c];
#pragma unroll
        for (int r = ROW; r < R; ++r) {
            X p = column[(warp + WARPS * r) * S::STRIDE];
            if (r == ROW) p = counts ? p : X(0);
#pragma unroll
            for (int c = 0; c < HALF; ++c) e[r][c] += p * known[c];
        }
    }

    template <int ROW>
    __device__ __forceinline__ void substitute_own(X (&e)[R][HALF], X* rows) const {
#pragma unroll 1
        for (int i = 0; i < WARPS; ++i) {
            const int k = WARPS * ROW + i;
            X* line = rows + k * S::STRIDE;
            if (warp == i) {
#pragma unroll
                for (int c = 0; c < HALF; ++c) line[lane + 32 * c] = e[ROW][c] * inverse[k];
            }
            __syncthreads();
            add<ROW>(e, line, rows + N + k, warp > i);
        }
        if constexpr (ROW + 1 < R) substitute_own<ROW + 1>(e, rows);
    }

    // ------------------------------------------------------------------------------------------------- results

    // Step 5, for the words after `kept`; two threads have a word, one its heads in K, the other those in L.
    __device__ __forceinline__ void normalise(X* escape, X* rows, int kept, int others, T* mu) {
        const int own = thread % N, m = kept + own + 1, first = thread < N ? kept : others;
        X* const column = (thread < N ? escape : rows) + own;
        const int stride = thread < N ? escapes_stride(N) : S::STRIDE;
        const X root = m <= n ? weight(0, m) : X(0);
        X total = thread < N ? root : X(0);
        for (int i = 0; i < N && first + i < n; ++i) {
            const X mass = m <= n ? weight(first + i + 1, m) * column[i * stride] : X(0);
            column[i * stride] = mass;
            total += mass;
        }
        X* const totals = reinterpret_cast<X*>(parts);
        totals[thread] = total;
        __syncthreads();
        total = totals[own] + totals[own + N];
        if (m >= nodes) return;
        const X share = inverse_of(total);
        for (int i = 0; i < N && first + i + 1 < nodes; ++i) {
            const bool arc = m <= n && first + i < n && !is_forbidden(first + i + 1, m);
            mu[(first + i + 1) * nodes + m] = arc ? T(column[i * stride] * share) : T(0);
        }
        if (thread < N) mu[m] = m <= n && !is_forbidden(0, m) ? T(root * share) : T(0);
    }

    // Step 2, from the pivots at the beginning, and the escapes to the beginning.
    __device__ __forceinline__ void solve_kept(Rows& own, int kept, int others, Extended<double>& z, bool counts) {
        X *const table = large + S::ROWS, *const below = large + S::ESCAPES, *const escape = large;
        load(own, table, weights_stride(N), kept, kept, others);
        pass_all(own, large);
#pragma unroll
        for (int r = 0; r < R; ++r) {
            X* row = table + (warp + WARPS * r) * weights_stride(N);
            if (lane == 0) row[0] = own.root[r];
#pragma unroll
            for (int c = 0; c < HALF; ++c) row[1 + lane + 32 * c] = own.w[r][c];
        }
        __syncthreads();
        const int second = thread / N;
        solve_half<X, N, MULTI>(
            table, weights_stride(N), below + second * handed_down(N), escape, escapes_stride(N), 0, second * (N / 2),
            thread % N, 1 + second, below + 2 * handed_down(N) + second * lines_size(N), z, counts && second == 0
        );
    }

    // Steps 1 to 5, or 1 and 2 if mu is null. Steps 1 and 3 are written once, for the compiler's sake.
    __device__ __forceinline__ void solve(int kept, int others, Extended<double>& z, T* mu) {
        X* const after = large + S::ESCAPES;
        Rows own;
#pragma unroll 1
        for (int turn = 0; turn < (mu ? 2 : 1); ++turn) {
            X* const rows = turn == 0 ? large : after;
            const bool counts = kept == 0 && turn == 0;
            load(own, rows, S::STRIDE, others, kept, others);
            eliminate(own, rows, z, counts);
            if (turn == 0) solve_kept(own, kept, others, z, counts);
            __syncthreads();
        }
        if (!mu) return;
        substitute(large, after);
        __syncthreads();
        normalise(large, after, kept, others, mu);
        __syncthreads();
    }

    // log Z, and marginals unless mu is null, which is zero outside the words. False if X does not hold them.
    __device__ __forceinline__ bool sums(T* log_z, T* mu) {
        if (!set_scale()) return false;
        Extended<double> z{1.0, 0};
#pragma unroll 1
        for (int kept = 0; kept <= (mu && n > N ? N : 0); kept += N) solve(kept, N - kept, z, mu);
        const double value = n == 0 ? 0.0 : sum(log(z.m) + double(z.e) * LN_2);
        if (masked && !(value >= bound + FORBIDDEN_LOG + 2.0 * log(double(n)) - NEGLIGIBLE_LOG)) return false;
        if (thread == 0) *log_z = T(n == 0 ? 0.0 : value + shift);
        if (!mu) return true;
        for (int h = thread; h < nodes; h += THREADS) mu[h * nodes] = T(0);
        for (int m = N + 1 + thread; n <= N && m < nodes; m += THREADS)
            for (int h = 0; h < nodes; ++h) mu[h * nodes + m] = T(0);
        return true;
    }
};

// Sentences are those of the list `which`, or all if it is null. Grid: as many blocks as one likes, of 2 N threads and
// long_bytes<X, N>() of shared memory. Arguments as in `matrix_tree.cu`.
template <class T, class X, int N, bool MULTI>
__global__ void __launch_bounds__(2 * N, 1) long_matrix_tree(
    const T* scores, const long long* lengths, int batch, int nodes, T* log_z, T* mu, int* which, int* done, int* rest
) {
    SHARED_MEMORY(shared);
    const List list{which, done};
    const long long cells = (long long)nodes * nodes;
    const int count = list.count(batch);
    for (int i = blockIdx.x; i < count; i += gridDim.x) {
        const long long number = list.number(i);
        LongSentence<T, X, N, MULTI> sentence(scores + number * cells, int(lengths[number]), nodes, shared);
        const bool good = sentence.sums(log_z + number, mu ? mu + number * cells : nullptr);
        if (!good && threadIdx.x == 0) rest[1 + atomicAdd(rest, 1)] = int(number);
    }
    list.empty(count);
}
