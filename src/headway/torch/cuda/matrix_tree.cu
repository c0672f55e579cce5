// Non-projective trees: log Z, marginals and their derivatives by escape walks, with the tables in registers.
//
// The algorithm is `headway.inference.matrix_tree`'s (DESIGN 5.1): words are eliminated one after the other, and the
// escapes E[h, m] of all columns m come from divide and conquer. The columns of one half of the words need the other half
// eliminated. So two groups of threads begin, each eliminating one half of the N words; each group then splits in two,
// which go on with what the group has left, until four words are left. On the way back each group finds the escapes of
// the words that it had eliminated. A table of S words always has S threads, so nobody waits for anybody, and all groups
// of a warp do the same steps side by side.
//
// Thread (a, b) of a group of A x B has the rows a, a + A, ... and the columns b, b + B, ... of its table: what one pivot
// has to tell a thread is one number per row and one per column, rather than one per cell, and the rows and columns that
// are still there stay evenly shared out. Loops over the rows and columns of a thread are unrolled, so that each register
// has a constant index; so is the loop over the threads that hold the pivot, in groups of one warp.
//
// Words beyond a sentence's end, up to N, all have word 1 as their only head, and are nobody's head.
//
// *Numbers.* X is float, double or Dual<double>. Weights are relative to each word's largest. If no arc is forbidden and
// none is more than SAFE_SPREAD below it, entries only grow, and no product of two underflows. A forbidden arc counts as
// one of FORBIDDEN_LOG in double numbers; what trees with such arcs have together is bounded by the rows' sums, and must be
// less than 1e-16 of Z. Sentences that do not meet this are left to the next kernel, in the list `rest`. After float comes
// double, after double walks at any scale.
//
// Shapes: scores, f, mu and slope (batch, nodes, nodes) [head, modifier]; lengths and log_z (batch,). N >= nodes - 1 is
// 8, 16, 32, 64 or 128. O(n^3) operations; every score is read and every result written once.

#include "walks.cuh"

template <class R>
constexpr double SAFE_SPREAD = 300.0;
template <>
constexpr double SAFE_SPREAD<float> = 37.0;
constexpr double FORBIDDEN_LOG = -230.0;
constexpr double NEGLIGIBLE_LOG = -37.0;

// A sentence has N threads for each of two halves of its words' heads, for log Z alone for both together.
__host__ __device__ constexpr int threads_of_block(int n, int halves) { return halves * n < 64 ? 64 : halves * n; }

// Rows of the weights are this far apart, which keeps most threads of a warp on different banks, rows of escapes this far,
// so that four columns can be read at once, and rows of a table handed down by a group of `size` this far.
__host__ __device__ constexpr int weights_stride(int n) { return n + 5; }
__host__ __device__ constexpr int escapes_stride(int n) { return n + 4; }
__host__ __device__ constexpr int stride_below(int size) { return size == 8 ? 6 : size / 2 + 4; }

// A group hands half of its words down, a column for the root first. The next level's tables lie in the same place, those
// of the groups of one warp on different banks.
__host__ __device__ constexpr int handed_down(int size) { return (size / 2) * stride_below(size) + (size == 16 ? 16 : 0); }

// Two pivot rows and columns for each group that is larger than a warp.
__host__ __device__ constexpr int lines_size(int size) {
    return size <= 32 ? 0 : 4 * size + 4 > 2 * lines_size(size / 2) ? 4 * size + 4 : 2 * lines_size(size / 2);
}

// Numbers in the workspace of a sentence: weights, and for marginals escapes, what is handed down, and lines.
__host__ __device__ constexpr int workspace_size(int n, int halves) {
    return halves == 1 ? n * weights_stride(n) + lines_size(n) + 16
                       : n * (weights_stride(n) + escapes_stride(n)) + 2 * handed_down(n) + 2 * lines_size(n);
}

// Blocks of a multiprocessor at once, which limits a thread's registers; the fastest on an H200.
template <class X>
__host__ __device__ constexpr int blocks(int n) {
    return sizeof(X) > 4 ? 1 : n == 32 ? 10 : n == 64 ? 4 : 1;
}

// The rows and columns of a group of S threads.
template <int S>
struct Grid {
    static constexpr int A = S >= 128 ? 16 : S >= 32 ? 8 : S >= 8 ? 4 : 2;
    static constexpr int B = S >= 64 ? 8 : S >= 16 ? 4 : 2;
    static constexpr int ROWS = S / A, COLUMNS = S / B;
    static_assert(A * B == S && A % B == 0 && ROWS % 2 == 0 && COLUMNS % 2 == 0);
};

// Numbers side by side, read and written together.
template <class X, int C>
struct alignas(sizeof(X) * C < 16 ? sizeof(X) * C : 16) Run {
    X x[C];
};

// A thread multiplies at most 17 pivots together: where each is float and above exp(-37), double numbers hold the product.
template <class X>
__device__ __forceinline__ void multiply(Extended<double>& z, double pivot) {
    if constexpr (sizeof(Real<X>) == 4)
        z.m *= pivot;
    else
        z = normal(z.m * pivot, z.e);
}

// One table of S words, in the registers of S threads. `lines` is shared memory for groups larger than a warp.
//
// Rows of eliminated words stay as they are, with 1 / d beside them: p_k is their product. The threads of one row are
// neighbours within a warp. `turn` is 0 or S / 2, so adding it to the number of a word, or taking it from one of the
// second half, leads from the table's order to this group's.
template <class X, int S, bool MULTI>
struct Table {
    using G = Grid<S>;
    static constexpr int A = G::A, B = G::B, ROWS = G::ROWS, COLUMNS = G::COLUMNS, R = ROWS / 2, C = COLUMNS / 2;
    static constexpr bool ONE_WARP = S <= 32;
    using Columns = Run<X, C>;
    X w[ROWS][COLUMNS], root[ROWS], inverse[ROWS];
    int lane, a, b, barrier;
    X* lines;

    __device__ __forceinline__ Table(int lane, int barrier, X* lines)
        : lane(lane), a(lane / B), b(lane % B), barrier(barrier), lines(lines) {}

    __device__ __forceinline__ void sync() const {
        if constexpr (ONE_WARP)
            __syncwarp();
        else
            sync_named(barrier, S);
    }

    // The words of a table of S rows, a column for the root first, from the word `turn` on.
    __device__ __forceinline__ void load(const X* table, int stride, int turn) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const X* row = table + (a + (r < R ? turn : -turn)) * stride + A * r * stride;
            root[r] = row[0];
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) w[r][c] = row[1 + b + (c < C ? turn : -turn) + B * c];
        }
    }

    // Hand the first S / 2 words down.
    __device__ __forceinline__ void store(X* table) const {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            X* row = table + (a + A * r) * stride_below(S);
            if (b == 0) row[0] = root[r];
#pragma unroll
            for (int c = 0; c < C; ++c) row[1 + b + B * c] = w[r][c];
        }
    }

    // Eliminate the words S - 1 ... KEEP. Pivots are multiplied into z, each by one thread.
    template <int KEEP>
    __device__ __forceinline__ void eliminate(Extended<double>& z, bool counts) {
#pragma unroll
        for (int ck = COLUMNS - 1; ck >= KEEP / B; --ck) {
            const int last = ck * B < KEEP ? KEEP - ck * B : 0;
            if constexpr (ONE_WARP) {
#pragma unroll
                for (int kb = B - 1; kb >= last; --kb) pivot(ck, kb);
            } else {
#pragma unroll 1
                for (int kb = B - 1; kb >= last; --kb) pivot(ck, kb);
            }
        }
#pragma unroll
        for (int r = ROWS - 1; r >= KEEP / A; --r) {
            const bool own = counts && b == 0 && a + A * r >= KEEP;
            multiply<X>(z, own ? double(inverse_of(value_of(inverse[r]))) : 1.0);
        }
    }

    // ck is constant once the loop around it is unrolled, and kb in groups of one warp.
    __device__ __forceinline__ void pivot(const int ck, const int kb) {
        const int rk = ck * B / A, ka = (ck * B + kb) % A;
        X f[ROWS], p[COLUMNS], p_root;
        exchange(ck, kb, rk, ka, f, p, p_root);
        X d = MULTI && b == 0 ? p_root : X(0);
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            if (c < ck) d += p[c];
        d += b < kb ? p[ck] : X(0);
#pragma unroll
        for (int step = 1; step < B; step *= 2) d += shuffle_xor(d, step);
        const X divided = inverse_of(d);
        inverse[rk] = a == ka ? divided : inverse[rk];
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            if (r <= rk) {
                const X factor = r == rk && a >= ka ? X(0) : f[r] * divided;  // the pivot's row and those before it are done
                root[r] += factor * p_root;
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c)
                    if (c <= ck) w[r][c] += factor * p[c];
            }
    }

    // What each thread needs of pivot k: its row in the thread's columns, and its column in the thread's rows.
    __device__ __forceinline__ void exchange(
        const int ck, const int kb, const int rk, const int ka, X (&f)[ROWS], X (&p)[COLUMNS], X& p_root
    ) {
        if constexpr (ONE_WARP) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                if (r <= rk) f[r] = shuffle(w[r][ck], kb, B);
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
                if (c <= ck) p[c] = shuffle(w[rk][c], ka * B + b, S);
            p_root = shuffle(root[rk], ka * B + b, S);
        } else {
            X* line = lines + (kb & 1) * (2 * S + 2);  // two in turn, so that one barrier a pivot is enough
            if (b == kb) {
#pragma unroll
                for (int r = 0; r < ROWS; ++r)
                    if (r <= rk) line[S + 2 + a + A * r] = w[r][ck];
            }
            if (a == ka) {
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c)
                    if (c <= ck) line[b + B * c] = w[rk][c];
                if (b == 0) line[S] = root[rk];
            }
            sync();
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                if (r <= rk) f[r] = line[S + 2 + a + A * r];
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
                if (c <= ck) p[c] = line[b + B * c];
            p_root = line[S];
        }
    }

    // Escapes of the words that were eliminated, last eliminated first, for the columns of those that were not, of which
    // each thread has C side by side. escape[h * stride + m], words from `base` on; `turn` as in load. Their rows are
    // divided by d once, rather than every sum. `rows` is memory for handed_down(S) numbers.
    __device__ __forceinline__ void substitute(X* escape, int stride, int base, int turn, X* rows) {
        Columns e[R];
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) w[R + r][c] *= inverse[R + r];
#pragma unroll
            for (int c = 0; c < C; ++c) e[r].x[c] = root[R + r] * inverse[R + r];
        }
        X* columns = escape + base + turn + b * C;
        add_known(e, columns + (base + turn) * stride, stride, rows);
#pragma unroll
        for (int cj = C; cj < COLUMNS; ++cj) {
            X* below = columns + (base - turn + cj * B) * stride;
            if constexpr (ONE_WARP) {
#pragma unroll
                for (int jb = 0; jb < B; ++jb) add_next(cj, jb, e, below + jb * stride);
            } else {
#pragma unroll 1
                for (int jb = 0; jb < B; ++jb) add_next(cj, jb, e, below + jb * stride);
            }
        }
    }

    // Add what passes through the first S / 2 words, whose escapes are known. A thread needs these columns of its rows
    // from all threads of the row: by way of memory, four at a time.
    __device__ __forceinline__ void add_known(Columns (&e)[R], const X* known, int stride, X* rows) {
        constexpr int PITCH = S == 8 ? 4 : S / 2 + 4, RUNS = S / 8;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            Columns own;
#pragma unroll
            for (int c = 0; c < C; ++c) own.x[c] = w[R + r][c];
            *reinterpret_cast<Columns*>(rows + (a + A * r) * PITCH + b * C) = own;
        }
        sync();
        if constexpr (ONE_WARP) {
#pragma unroll
            for (int q = 0; q < RUNS; ++q) add_run(e, known, stride, rows, PITCH, q);
        } else {
#pragma unroll 2
            for (int q = 0; q < RUNS; ++q) add_run(e, known, stride, rows, PITCH, q);
        }
    }

    __device__ __forceinline__ void add_run(
        Columns (&e)[R], const X* known, int stride, const X* rows, const int pitch, const int q
    ) const {
        Run<X, 4> p[R];
#pragma unroll
        for (int r = 0; r < R; ++r) p[r] = *reinterpret_cast<const Run<X, 4>*>(rows + (a + A * r) * pitch + 4 * q);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int j = (4 * q + i) / C + (4 * q + i) % C * B;
            const Columns passed = *reinterpret_cast<const Columns*>(known + j * stride);
#pragma unroll
            for (int r = 0; r < R; ++r)
#pragma unroll
                for (int c = 0; c < C; ++c) e[r].x[c] += p[r].x[i] * passed.x[c];
        }
    }

    // Store the escapes of word j = cj B + jb, which nothing is added to any more, and add what passes through it.
    __device__ __forceinline__ void add_next(const int cj, const int jb, Columns (&e)[R], X* row) const {
        const int j = cj * B + jb, rj = cj * B / A, ja = j % A;
#pragma unroll
        for (int r = 0; r < R; ++r)
            if (R + r == rj && a == ja) *reinterpret_cast<Columns*>(row) = e[r];
        if (j == S - 1 && ONE_WARP) return;
        sync();
        const Columns passed = *reinterpret_cast<const Columns*>(row);
#pragma unroll
        for (int r = 0; r < R; ++r)
            if (R + r >= rj) {
                X p = shuffle(w[R + r][cj], jb, B);
                // A product rather than a choice, which the compiler would make a branch around shuffles.
                if (R + r == rj) p = p * X(a > ja ? 1 : 0);
#pragma unroll
                for (int c = 0; c < C; ++c) e[r].x[c] += p * passed.x[c];
            }
    }
};

// Escapes of four words to the first, into `r`, from their weights `t` and root weights `r`; returns the words' part of Z.
template <class X, bool MULTI>
__device__ __forceinline__ X solve_column(X (&t)[4][4], X (&r)[4]) {
    X inverse[4], product = X(1);
    const X first = r[0], to[4] = {X(0), t[0][1], t[0][2], t[0][3]};
#pragma unroll
    for (int k = 3; k > 0; --k) {
        X d = MULTI ? r[k] : X(0);
#pragma unroll
        for (int j = 0; j < k; ++j) d += t[k][j];
        inverse[k] = inverse_of(d);
        product *= d;
#pragma unroll
        for (int i = 1; i < k; ++i) {
            const X f = t[i][k] * inverse[k];
            r[i] += f * r[k];
#pragma unroll
            for (int j = 0; j < k; ++j) t[i][j] += f * t[k][j];
        }
    }
    r[0] = X(0);
    X last = first;
#pragma unroll
    for (int k = 1; k < 4; ++k) {
#pragma unroll
        for (int j = 1; j < k; ++j) r[k] += t[k][j] * r[j];
        r[k] *= inverse[k];
        last += to[k] * r[k];
    }
    return product * last;
}

// The escapes of S words (a table of S rows) to the half of them that begins at `turn`, by S threads; of four words to all.
// `below` is for what these hand down, and may be where the table is.
template <class X, int S, bool MULTI, bool TOP = true>
__device__ __forceinline__ void solve_half(
    const X* table, int table_stride, X* below, X* escape, int stride, int base, int turn, int lane, int barrier, X* lines,
    Extended<double>& z, bool counts
) {
    if constexpr (S == 4) {
        // Four words are few enough for one thread a column: word i is the column's own with the bits of i changed.
        const int m = lane % 4;
        X t[4][4], r[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const X* row = table + (m ^ i) * table_stride;
            r[i] = row[0];
#pragma unroll
            for (int j = 0; j < 4; ++j) t[i][j] = row[1 + (m ^ j)];
        }
        const X last = solve_column<X, MULTI>(t, r);
#pragma unroll
        for (int i = 0; i < 4; ++i) escape[(base + (m ^ i)) * stride + base + m] = r[i];
        multiply<X>(z, counts && lane == 0 ? double(value_of(last)) : 1.0);
    } else {
        Table<X, S, MULTI> words(lane, barrier, lines);
        words.load(table, table_stride, turn);
        if constexpr (!TOP && S >= 32) sync_named((barrier - 1) / 2, 2 * S);  // the other half has loaded it, too
        words.template eliminate<S / 2>(z, counts);
        words.store(below);
        words.sync();
        const int second = lane / (S / 2);
        solve_half<X, S / 2, MULTI, false>(
            below, stride_below(S), below + second * handed_down(S / 2), escape, stride, base + turn, second * (S / 4),
            lane % (S / 2), 2 * barrier + 1 + second, lines + second * lines_size(S / 2), z, counts && !second
        );
        words.sync();
        words.substitute(escape, stride, base, turn, below);
        if constexpr (S <= 32) __syncwarp();
    }
}

// ---------------------------------------------------------------------------------------------------- one sentence

// NODES is the table's size where that is known at compile time, which spares computing addresses, or 0.
template <class T, int NODES>
struct Sentence {
    const T* scores;
    const T* f;  // direction of derivatives, if any
    int n, size;
    __device__ __forceinline__ int nodes() const { return NODES ? NODES : size; }
    __device__ __forceinline__ T score(int h, int m) const { return scores[h * nodes() + m]; }
};

// Thread t of a sentence sees to word m, and to one part of its heads: words `first` ... `first` + OWN - 1.
template <int N, int HALVES>
struct Place {
    static constexpr int THREADS = HALVES * N, OWN = N / HALVES, WIDTH = THREADS < 32 ? THREADS : 32;
    int t, m, half, first;
    __device__ __forceinline__ explicit Place(int t) : t(t), m(t % N + 1), half(t / N), first(t / N * OWN + 1) {}

    __device__ __forceinline__ void sync() const {
        if constexpr (THREADS <= 32)
            __syncwarp();
        else
            __syncthreads();
    }

    // The values of all threads put together; `space` has a place for each warp.
    template <class R, class Operation>
    __device__ __forceinline__ R together(R x, R* space, Operation operation) const {
#pragma unroll
        for (int step = 1; step < WIDTH; step *= 2) x = operation(x, shuffle_xor(x, step));
        if constexpr (THREADS > 32) {
            if (t % 32 == 0) space[t / 32] = x;
            __syncthreads();
            x = space[0];
#pragma unroll
            for (int i = 1; i < THREADS / 32; ++i) x = operation(x, space[i]);
            __syncthreads();
        }
        return x;
    }

    // Whether it holds for all threads.
    __device__ __forceinline__ bool all(bool condition) const {
        if constexpr (THREADS > 32) return __syncthreads_and(condition);
        const unsigned group = (THREADS == 32 ? ALL_LANES : (1u << THREADS) - 1) << (threadIdx.x % 32 / THREADS * THREADS);
        return (~__ballot_sync(ALL_LANES, condition) & group) == 0;
    }

    // The sum over the threads of the first half, which see to all words; a barrier for all of them. `space` has a place
    // for each warp.
    __device__ __forceinline__ double over_words(double x, double* space) const {
        constexpr int WARPS = N <= 32 ? 1 : N / 32;
#pragma unroll
        for (int step = 1; step < WIDTH; step *= 2) x += shuffle_xor(x, step);
        if constexpr (THREADS > 32) {
            if (t % 32 == 0 && t < N) space[t / 32] = x;  // the other half may still be at work there
            sync();
            x = space[0];
#pragma unroll
            for (int i = 1; i < WARPS; ++i) x += space[i];
        }
        return x;
    }

    // The values of the threads of one word put together; `space` has a place for each thread.
    template <class R, class Operation>
    __device__ __forceinline__ R of_word(R x, R* space, Operation operation) const {
        if constexpr (HALVES == 1) return x;
        space[t] = x;
        sync();
        x = operation(x, space[(t + N) % THREADS]);
        sync();
        return x;
    }
};

// The larger of two numbers. Where one is not a number, it is the other, and the sentence is not safe.
__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double larger(double a, double b) { return fmax(a, b); }

struct Larger {
    template <class R>
    __device__ __forceinline__ R operator()(R a, R b) const {
        return larger(a, b);
    }
};
struct Sum {
    template <class R>
    __device__ __forceinline__ R operator()(R a, R b) const {
        return a + b;
    }
};

template <class X>
__device__ __forceinline__ X weight_of(Real<X> weight, Real<X>) {
    return weight;
}
template <>
__device__ __forceinline__ Dual<double> weight_of<Dual<double>>(double weight, double f) {
    return {weight, weight * f};
}

__device__ __forceinline__ float weight_exp(float x) { return quick_exp2(x * float(LOG2_E)); }
__device__ __forceinline__ double weight_exp(double x) { return exp(x); }

// What is known of a sentence's weights: of all, and this thread's part of two sums.
struct Scale {
    double shift;  // log Z is that of the weights plus the sum of this
    double bound;  // log of the sum of a word's weights, or of 1 where that is less, for double numbers
    bool safe, masked;
};

// Which of COUNT words are possible heads: those before `end` but `self`. As bits, so that one instruction tells.
template <int COUNT>
struct Heads {
    static constexpr int WORDS = (COUNT + 31) / 32;
    unsigned bits[WORDS];
    __device__ __forceinline__ Heads(int end, int self) {
        end = end < COUNT ? end : COUNT;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) {
            const int own = end - 32 * w, without = self - 32 * w;
            bits[w] = own >= 32 ? ~0u : own > 0 ? (1u << own) - 1 : 0u;
            if (without >= 0 && without < 32) bits[w] &= ~(1u << without);
        }
    }
    __device__ __forceinline__ bool has(int i) const { return bits[i / 32] >> i % 32 & 1; }
    __device__ __forceinline__ int count() const {
        int result = 0;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) result += __popc(bits[w]);
        return result;
    }
};

// Weights relative to each word's largest, weights[(m - 1) stride + h]; `space` has a place for each thread.
template <class X, int N, int HALVES, bool MULTI, class T, int NODES>
__device__ __forceinline__ Scale fill(
    const Sentence<T, NODES>& sentence, const Place<N, HALVES>& place, X* weights, double* space
) {
    using R = Real<X>;
    constexpr bool MAY_MASK = sizeof(R) == 8;
    constexpr int OWN = Place<N, HALVES>::OWN;
    const R none = R(-1.0 / 0.0);
    const int m = place.m, self = m - place.first;
    const bool real = m <= sentence.n, with_root = real && place.half == 0;
    const Heads<OWN> heads(real ? sentence.n - place.first + 1 : 0, self);
    R* reals = reinterpret_cast<R*>(space);
    R own[OWN], root = with_root ? R(sentence.score(0, m)) : none, top = MULTI ? root : none;
    const T* column = sentence.scores + place.first * sentence.nodes() + m;
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
        own[i] = heads.has(i) ? R(column[i * sentence.nodes()]) : none;
        top = larger(own[i], top);
    }
    top = place.of_word(top, reals, Larger());
    if (!(top > none)) top = R(0);  // no heads, as in a sentence of one word
    R root_top = R(0);
    if constexpr (!MULTI) {  // a tree uses the root's weights once, so they are scaled together
        root_top = place.together(with_root ? root - top : none, reals, Larger());
        if (!(root_top > none)) root_top = R(0);
    }
    R total = R(0);
    int safe = 0, masked = 0;
    X* row = weights + (m - 1) * weights_stride(N);
    auto set = [&](int h, R x, bool arc) {
        R w = weight_exp(x);  // 0 where there is no arc
        safe += x >= R(-SAFE_SPREAD<R>);
        R f = R(0);
        if constexpr (MAY_MASK) {
            const bool forbidden = arc && x == none;
            masked += forbidden;
            w = forbidden ? R(exp(FORBIDDEN_LOG)) : w;
            total += w;
            if (sentence.f && arc && !forbidden) f = R(sentence.f[h * sentence.nodes() + m]);
        }
        row[h] = weight_of<X>(w, f);
    };
#pragma unroll
    for (int i = 0; i < OWN; ++i) set(place.first + i, own[i] - top, heads.has(i));
    if (place.half == 0) set(0, root - top - root_top, real);
    if (!real && place.half == 0) row[1] = X(1);
    // All arcs are safe or masked; nan is neither.
    Scale scale{with_root ? double(top) : 0.0, 0.0, false, false};
    if (place.t == 0) scale.shift += double(root_top);
    scale.safe = place.all(safe + masked == heads.count() + int(with_root));
    if constexpr (MAY_MASK) {
        scale.masked = !place.all(masked == 0);
        const R sum = place.of_word(total, reals, Sum());
        scale.bound = with_root && sum > R(1) ? log(double(sum)) : 0.0;
    }
    return scale;
}

// A logarithm as accurate as T.
template <class T>
__device__ __forceinline__ double log_of(const Extended<double>& z) {
    if constexpr (sizeof(T) == 8) return log(z.m) + double(z.e) * LN_2;
    const float m = float(z.m);
    return (double(z.e) + double(log2f(m))) * LN_2 + (z.m - double(m));  // what rounding m took is at most 1e-7
}

// log Z from each thread's product of pivots. Whether `scale` holds: trees with forbidden arcs are too few to notice.
struct Result {
    double log_z;
    bool good;
};
template <class X, class T, int N, int HALVES>
__device__ __forceinline__ Result finish(
    const Extended<double>& z, const Scale& scale, int n, const Place<N, HALVES>& place, double* space
) {
    const double own = log_of<T>(normal(z.m, z.e));
    Result result{place.over_words(own + scale.shift, space), scale.safe};
    if constexpr (sizeof(Real<X>) == 8) {
        const double margin = place.over_words(own - scale.bound, space + 8);
        const bool enough = margin >= FORBIDDEN_LOG + 2.0 * log(double(n)) - NEGLIGIBLE_LOG;
        result.good = scale.safe && (!scale.masked || enough);
    }
    if (n == 0) result = {0.0, true};
    return result;
}

// P(h -> m) = W E over the sum of it for all heads of m: into mu, or its derivative if X has one. Every cell is written.
template <class X, int N, class T, int NODES>
__device__ __forceinline__ void normalise(
    const Sentence<T, NODES>& sentence, const Place<N, 2>& place, const X* weights, const X* escape, X* space, bool masked, T* mu
) {
    constexpr int OWN = Place<N, 2>::OWN;
    const int m = place.m, nodes = sentence.nodes();
    const bool real = m <= sentence.n;
    const X* row = weights + (m - 1) * weights_stride(N) + place.first;
    const X* column = escape + (place.first - 1) * escapes_stride(N) + m - 1;
    X mass[OWN], root = place.half == 0 ? weights[(m - 1) * weights_stride(N)] : X(0), total = root;
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
        mass[i] = row[i] * column[i * escapes_stride(N)];  // weights are zero where there is no arc
        total += mass[i];
    }
    total = place.of_word(total, space, Sum());
    if (!mu) return;
    const X inverse = inverse_of(total);
    auto write = [&](int h, T* cell, X x) {
        const bool possible = real && !(masked && h <= sentence.n && h != m && sentence.score(h, m) == T(-1.0 / 0.0));
        if (h < nodes) *cell = possible ? T(last_of(x * inverse)) : T(0);
    };
    if (m < nodes) {
        T* own = mu + place.first * nodes + m;
#pragma unroll
        for (int i = 0; i < OWN; ++i) write(place.first + i, own + i * nodes, mass[i]);
        if (place.half == 0) write(0, mu + m, root);
    }
    for (int h = place.t; h < nodes; h += Place<N, 2>::THREADS) mu[h * nodes] = T(0);
}

// --------------------------------------------------------------------------------------------------------- kernels
//
// A block has threads_of_block(N, HALVES) threads, and for each of its sentences workspace_size(N, HALVES) numbers of
// shared memory. Sentences are those of the list `which`, or all if it is null. Grid: as many blocks as one likes;
// FULL: all sentences, nodes = N + 1, and a block for every sentence that it has room for.

template <class T, class X, int N, int HALVES, bool FULL>
struct Block {
    using Own = Sentence<T, FULL ? N + 1 : 0>;
    static constexpr int THREADS = threads_of_block(N, HALVES), GROUPS = THREADS / (HALVES * N);

    // Calls `work(sentence, place, space, number, wanted)`; threads without a sentence repeat one, unwanted.
    template <class Work>
    static __device__ __forceinline__ void each(
        const T* scores, const T* f, const long long* lengths, int batch, int nodes, List which, char* shared, Work work
    ) {
        const int group = threadIdx.x / (HALVES * N), count = which.count(batch);
        const Place<N, HALVES> place(threadIdx.x % (HALVES * N));
        X* space = reinterpret_cast<X*>(shared) + group * workspace_size(N, HALVES);
#pragma unroll 1
        for (int start = blockIdx.x * GROUPS; start < count; start += gridDim.x * GROUPS) {
            const bool wanted = start + group < count;
            const long long number = which.number(wanted ? start + group : count - 1), cells = number * nodes * nodes;
            work(Own{scores + cells, f ? f + cells : nullptr, int(lengths[number]), nodes}, place, space, number, wanted);
            if constexpr (FULL) return;
            place.sync();
        }
        which.empty(count);
    }
};

// log Z, unless it is null, and marginals, or if X is Dual their derivatives, of one sentence, if it is wanted. False if X
// cannot hold its weights.
template <class X, bool MULTI, class T, int NODES, int N>
__device__ __forceinline__ bool sums(
    const Sentence<T, NODES>& sentence, const Place<N, 2>& place, X* space, bool wanted, T* log_z, T* mu
) {
    X* escape = space + N * weights_stride(N);
    X* below = escape + N * escapes_stride(N);
    const Scale scale = fill<X, N, 2, MULTI>(sentence, place, space, reinterpret_cast<double*>(below));
    Extended<double> z{1.0, 0};
    place.sync();
    solve_half<X, N, MULTI>(
        space, weights_stride(N), below + place.half * handed_down(N), escape, escapes_stride(N), 0, place.half * (N / 2),
        place.t % N, 1 + place.half, below + 2 * handed_down(N) + place.half * lines_size(N), z, place.half == 0
    );
    // A barrier is in there: escapes are known to all threads after it.
    const Result result = finish<X, T>(z, scale, sentence.n, place, reinterpret_cast<double*>(below));
    if constexpr (2 * N <= 32) place.sync();
    if (wanted && result.good && log_z && place.t == 0) *log_z = T(result.log_z);
    normalise<X, N>(
        sentence, place, space, escape, below + (2 * N > 32 ? 64 : 0), sizeof(X) > 4 && scale.masked,
        wanted && result.good ? mu : nullptr
    );
    return result.good;
}

template <class T, class X, int N, bool MULTI, bool FULL>
__global__ void __launch_bounds__(threads_of_block(N, 2), blocks<X>(N)) matrix_tree_marginals(
    const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* log_z, T* mu, int* which, int* done,
    int* rest
) {
    SHARED_MEMORY(shared);
    Block<T, X, N, 2, FULL>::each(
        scores, f, lengths, batch, nodes, {which, done}, shared,
        [&](const auto& sentence, const Place<N, 2>& place, X* space, long long number, bool wanted) {
            T* own_log_z = log_z ? log_z + number : nullptr;
            const bool good = sums<X, MULTI>(
                sentence, place, space, wanted, own_log_z, mu ? mu + number * nodes * nodes : nullptr
            );
            if (!good && wanted && place.t == 0) rest[1 + atomicAdd(rest, 1)] = int(number);
        }
    );
}

// What float numbers could not hold, in one kernel: with double ones, or if these cannot either, at any scale. N >= 32, so
// that a block has one sentence at a time; shared memory for whichever of the two needs more. mu may be null.
template <class T, int N, bool MULTI>
__global__ void __launch_bounds__(threads_of_block(N, 2)) matrix_tree_rest(
    const T* scores, const long long* lengths, int nodes, T* log_z, T* mu, int* which, int* done
) {
    SHARED_MEMORY(shared);
    Block<T, double, N, 2, false>::each(
        scores, nullptr, lengths, 0, nodes, {which, done}, shared,
        [&](const auto& sentence, const Place<N, 2>& place, double* space, long long number, bool) {
            T* own_mu = mu ? mu + number * nodes * nodes : nullptr;
            if (sums<double, MULTI>(sentence, place, space, true, log_z + number, own_mu)) return;
            __syncthreads();
            walks::walk_sentence<Extended<T>, T, MULTI>(
                sentence.scores, nullptr, sentence.n, nodes, log_z + number, own_mu, nullptr,
                reinterpret_cast<Extended<T>*>(shared)
            );
        }
    );
}

// log Z alone: one group eliminates all words but the first.
template <class T, class X, int N, bool MULTI>
__global__ void __launch_bounds__(threads_of_block(N, 1)) matrix_tree_log_partition(
    const T* scores, const long long* lengths, int batch, int nodes, T* log_z, int* which, int* done, int* rest
) {
    SHARED_MEMORY(shared);
    Block<T, X, N, 1, false>::each(
        scores, nullptr, lengths, batch, nodes, {which, done}, shared,
        [&](const auto& sentence, const Place<N, 1>& place, X* space, long long number, bool wanted) {
            X* lines = space + N * weights_stride(N);
            double* doubles = reinterpret_cast<double*>(lines);
            const Scale scale = fill<X, N, 1, MULTI>(sentence, place, space, doubles);
            Extended<double> z{1.0, 0};
            place.sync();
            Table<X, N, MULTI> words(place.t, 1, lines);
            words.load(space, weights_stride(N), 0);
            words.template eliminate<1>(z, true);
            if (place.t == 0) multiply<X>(z, double(value_of(words.root[0])));
            place.sync();
            const Result result = finish<X, T>(z, scale, sentence.n, place, doubles);
            if (!wanted || place.t > 0) return;
            if (!result.good) rest[1 + atomicAdd(rest, 1)] = int(number);
            if (result.good) log_z[number] = T(result.log_z);
        }
    );
}
