// Non-projective trees: log Z, marginals and their derivatives by escape walks, one block of threads a sentence.
//
// The algorithm is `headway.inference.matrix_tree`'s (DESIGN 5.1): words are eliminated one after the other, and the
// escapes E[h, m] of all columns m come from divide and conquer. The columns of one half of the words need the other half
// eliminated. So two groups of threads begin, each eliminating one half of the N words; each group then splits in two,
// which go on with what the group has left, until a group has two words. On the way back each group finds the escapes of
// the words that it had eliminated. A table of S words always has S threads, so nobody waits for anybody, and all groups
// of a warp do the same steps side by side.
//
// A group keeps its table in registers. Thread (a, b) of A x B has the rows a, a + A, ... and the columns b, b + B, ...:
// what one pivot has to tell a thread is one number per row and one per column, rather than one per cell, and the rows
// and columns that are still there stay evenly shared out. Loops over the pivots' rows and columns of a thread are
// unrolled, so that each register has a constant index; the loop over threads that hold the pivot is not.
//
// Words beyond a sentence's end, up to N, all have word 1 as their only head, and are nobody's head.
//
// Shapes: scores, f, mu and slope (batch, nodes, nodes) [head, modifier]; lengths and log_z (batch,). N >= nodes - 1 is
// 8, 16, 32, 64, 128 or 256. 2 N threads a sentence, `threads(N)` a block. O(n^3) operations, and every score is read and
// every result written once.

#include "numbers.cuh"

// Weights within this many nats of their row's largest need no more than float's (double's) range: no arc is forbidden,
// entries only grow, and a product of two small ones is far from underflow.
template <class T>
constexpr double SAFE_SPREAD = 300.0;
template <>
constexpr double SAFE_SPREAD<float> = 37.0;

// What lies between two levels of the recursion: each table as it is handed down, a column for the root first.
__host__ __device__ constexpr int handed_down(int size) {
    return size <= 2 ? 0 : (size / 2) * (size / 2 + 1) + 2 * handed_down(size / 2);
}

// Two pivot rows and columns for each group that is larger than a warp.
__host__ __device__ constexpr int lines_size(int size) {
    return size <= 32 ? 0 : 4 * size + 2 > 2 * lines_size(size / 2) ? 4 * size + 2 : 2 * lines_size(size / 2);
}

// Numbers in the workspace of a sentence: weights, escapes, and for both groups what is handed down, and lines.
__host__ __device__ constexpr int workspace_size(int n) {
    return 2 * n * (n + 1) + 2 * handed_down(n) + 2 * lines_size(n);
}

__host__ __device__ constexpr int threads(int n) { return 2 * n < 64 ? 64 : 2 * n; }

// A product of pivots that neither overflows nor is rounded to a logarithm at each step.
struct Product {
    Extended<double> value{1.0, 0};
    __device__ __forceinline__ void times(double x) { value = normal(value.m * x, value.e); }
    __device__ __forceinline__ double log() const { return ::log(value.m) + double(value.e) * LN_2; }
};

// The rows and columns of a group of S threads.
template <int S>
struct Grid {
    static constexpr int A = S >= 256 ? 16 : S >= 128 ? 16 : S >= 32 ? 8 : S >= 8 ? 4 : 2;
    static constexpr int B = S / A < A ? (S >= 256 ? 16 : S >= 64 ? 8 : S >= 16 ? 4 : 2) : A;
    static constexpr int ROWS = S / A, COLUMNS = S / B;
    static_assert(A * B == S && A % B == 0 && ROWS % 2 == 0 && COLUMNS % 2 == 0);
};

// One table of S words, in the registers of S threads. `lines` is shared memory for groups larger than a warp.
template <class T, int S, bool MULTI>
struct Table {
    using G = Grid<S>;
    static constexpr int A = G::A, B = G::B, ROWS = G::ROWS, COLUMNS = G::COLUMNS, WIDTH = S < 32 ? S : 32;
    T w[ROWS][COLUMNS], root[ROWS];
    int lane, a, b, barrier;
    T* lines;

    __device__ __forceinline__ Table(int lane, int barrier, T* lines)
        : lane(lane), a(lane / B), b(lane % B), barrier(barrier), lines(lines) {}

    __device__ __forceinline__ void sync() const {
        if constexpr (S <= 32)
            __syncwarp();
        else
            sync_named(barrier, S);
    }

    // The words of a table of S x (S + 1), from the word `turn` on.
    __device__ __forceinline__ void load(const T* table, int turn) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const T* row = table + ((a + A * r + turn) & (S - 1)) * (S + 1);
            root[r] = row[0];
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) w[r][c] = row[1 + ((b + B * c + turn) & (S - 1))];
        }
    }

    // Hand the first S / 2 words down.
    __device__ __forceinline__ void store(T* table) const {
#pragma unroll
        for (int r = 0; r < ROWS / 2; ++r) {
            T* row = table + (a + A * r) * (S / 2 + 1);
            if (b == 0) row[0] = root[r];
#pragma unroll
            for (int c = 0; c < COLUMNS / 2; ++c) row[1 + b + B * c] = w[r][c];
        }
    }

    // Eliminate the words S - 1 ... KEEP; row k is left as p_k. Pivots are multiplied into z, each by one thread.
    template <int KEEP>
    __device__ __forceinline__ void eliminate(Product& z, bool counts) {
#pragma unroll
        for (int ck = COLUMNS - 1; ck >= KEEP / B; --ck) {
#pragma unroll 1
            for (int kb = B - 1; kb >= (ck * B < KEEP ? KEEP - ck * B : 0); --kb) {
                pivot(ck, kb, z, counts);
            }
        }
    }

    // ck is constant once the loop around it is unrolled.
    __device__ __forceinline__ void pivot(const int ck, const int kb, Product& z, bool counts) {
        const int rk = ck * B / A, ka = (ck * B + kb) % A;
        T d = MULTI && b == 0 ? root[rk] : T(0);
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            if (c <= ck) d = d + (c < ck || b < kb ? w[rk][c] : T(0));
#pragma unroll
        for (int step = 1; step < B; step *= 2) d += shuffle(d, (lane & (WIDTH - 1)) ^ step, WIDTH);
        if (a == ka) {
            const T inverse = T(1) / d;
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
                if (c <= ck) w[rk][c] *= inverse;
            root[rk] *= inverse;
            if (counts && b == 0) z.times(double(d));
        }
        T f[ROWS], p[COLUMNS], p_root;
        exchange(ck, kb, rk, ka, f, p, p_root);
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            if (r <= rk) {
                root[r] += f[r] * p_root;
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c)
                    if (c <= ck) w[r][c] += f[r] * p[c];
            }
    }

    // What each thread needs of pivot k: its column's entries in the thread's rows, and its row's in the thread's columns.
    __device__ __forceinline__ void exchange(
        const int ck, const int kb, const int rk, const int ka, T (&f)[ROWS], T (&p)[COLUMNS], T& p_root
    ) {
        if constexpr (S <= 32) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                if (r <= rk) f[r] = shuffle(w[r][ck], a * B + kb, S);
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
                if (c <= ck) p[c] = shuffle(w[rk][c], ka * B + b, S);
            p_root = shuffle(root[rk], ka * B + b, S);
        } else {
            T* line = lines + (kb & 1) * (2 * S + 1);  // two in turn, so that one barrier a pivot is enough
            if (b == kb) {
#pragma unroll
                for (int r = 0; r < ROWS; ++r)
                    if (r <= rk) line[S + 1 + a + A * r] = w[r][ck];
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
                if (r <= rk) f[r] = line[S + 1 + a + A * r];
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
                if (c <= ck) p[c] = line[b + B * c];
            p_root = line[S];
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            if (r == rk && a >= ka) f[r] = T(0);  // the pivot's row and those before it are done
    }

    // Escapes of the words that were eliminated, last eliminated first, for the columns of those that were not.
    // escape[h * stride + m], words from `base` on; `turn` as in load.
    __device__ __forceinline__ void substitute(T* escape, int stride, int base, int turn) const {
        constexpr int R = ROWS / 2, C = COLUMNS / 2;
        T e[R][C];
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int c = 0; c < C; ++c) e[r][c] = root[R + r];
        T* columns = escape + base + turn + b;  // turn is 0 or S / 2, so these columns lie side by side
#pragma unroll
        for (int cj = 0; cj < COLUMNS; ++cj) {
            const int rj = cj * B / A;
#pragma unroll 1
            for (int jb = 0; jb < B; ++jb) {
                const int j = cj * B + jb, ja = j % A;
                T* row = columns + (base + ((j + turn) & (S - 1))) * stride;
                if (cj >= C) {
                    if (a == ja) {
#pragma unroll
                        for (int r = 0; r < R; ++r)
                            if (R + r == rj) {
#pragma unroll
                                for (int c = 0; c < C; ++c) row[B * c] = e[r][c];
                            }
                    }
                    sync();
                }
                T known[C];
#pragma unroll
                for (int c = 0; c < C; ++c) known[c] = row[B * c];
#pragma unroll
                for (int r = 0; r < R; ++r)
                    if (R + r >= rj) {
                        T p = from_row(R + r, cj, jb);
                        if (R + r == rj && a <= ja) p = T(0);
#pragma unroll
                        for (int c = 0; c < C; ++c) e[r][c] += p * known[c];
                    }
            }
        }
    }

    // w[r][c] of the thread of column jb in the same rows; threads of one row are neighbours within a warp.
    __device__ __forceinline__ T from_row(const int r, const int c, const int jb) const {
        return shuffle(w[r][c], (lane & (WIDTH - 1)) / B * B + jb, WIDTH);
    }
};

// The escapes of S words (a table of S rows) to the half of them that begins at `turn`, by S threads.
template <class T, int S, bool MULTI>
__device__ __forceinline__ void solve_half(
    const T* table, T* below, T* escape, int stride, int base, int turn, int lane, int barrier, T* lines, Product& z,
    bool counts
) {
    if constexpr (S == 2) {
        const T* kept = table + turn * 3;
        const T* other = table + (1 - turn) * 3;
        const T d = other[1 + turn] + (MULTI ? other[0] : T(0));
        const T e = other[0] / d;
        if (lane == 0) {
            escape[(base + turn) * stride + base + turn] = T(0);
            escape[(base + 1 - turn) * stride + base + turn] = e;
            if (counts) {
                z.times(double(d));
                z.times(double(kept[2 - turn] * e + kept[0]));
            }
        }
    } else {
        Table<T, S, MULTI> words(lane, barrier, lines);
        words.load(table, turn);
        words.template eliminate<S / 2>(z, counts);
        words.store(below);
        words.sync();
        const int second = lane / (S / 2);
        solve_half<T, S / 2, MULTI>(
            below, below + (S / 2) * (S / 2 + 1) + second * handed_down(S / 2), escape, stride, base + turn,
            second * (S / 4), lane % (S / 2), 2 * barrier + 1 + second, lines + second * lines_size(S / 2), z,
            counts && !second
        );
        words.sync();
        words.substitute(escape, stride, base, turn);
    }
}

// ------------------------------------------------------------------------------------------ one sentence, 2 N threads

// Thread t of a sentence sees to word m = t % N + 1, and to one half of its heads: words `first` ... `first` + N / 2 - 1.
template <int N>
struct Place {
    int t, m, half, first;
    __device__ __forceinline__ explicit Place(int t) : t(t), m(t % N + 1), half(t / N), first(t / N * (N / 2) + 1) {}
    __device__ __forceinline__ void sync() const {
        if constexpr (2 * N <= 32)
            __syncwarp();
        else
            __syncthreads();
    }
};

template <class T>
struct Sentence {
    const T* scores;
    int n, nodes;
    __device__ __forceinline__ T score(int h, int m) const { return scores[h * nodes + m]; }
    __device__ __forceinline__ bool has(int h, int m) const { return h <= n && m <= n && h != m; }
};

// The larger (sum) of two threads' values, one for each half of a word's heads; `space` has 2 N places.
template <int N, class T>
__device__ __forceinline__ T larger_of_halves(T x, const Place<N>& place, T* space) {
    space[place.t] = x;
    place.sync();
    const T other = space[(place.t + N) % (2 * N)];
    place.sync();
    return x > other ? x : other;
}

// Weights relative to each word's largest, weights[(m - 1) (N + 1) + h]; the tops add up to `shift`, which thread 0
// knows. False if they may be too far apart for T.
template <class T, int N, bool MULTI>
__device__ __forceinline__ bool fill_plain(const Sentence<T>& sentence, const Place<N>& place, T* weights, double& shift) {
    const T none = T(-1.0 / 0.0);
    const int m = place.m, n = sentence.n;
    const bool with_root = place.half == 0 && m <= n;
    T own[N / 2], root = with_root ? sentence.score(0, m) : none, top = MULTI ? root : none;
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
        const int h = place.first + i;
        own[i] = sentence.has(h, m) ? sentence.score(h, m) : none;
        top = own[i] > top ? own[i] : top;
    }
    T* space = weights;
    top = larger_of_halves<N>(top, place, space);
    if (!(top > none)) top = T(0);  // no heads, as in a sentence of one word
    T root_top = with_root ? root - top : none;
    if constexpr (!MULTI) {
        // The root's weights are used once in a tree, so they are scaled together.
        space[place.t] = root_top;
        place.sync();
        for (int i = 0; i < N; ++i) root_top = space[i] > root_top ? space[i] : root_top;
        place.sync();
        if (!(root_top > none)) root_top = T(0);
    } else {
        root_top = T(0);
    }
    if (place.half == 0) space[place.t] = m <= n ? top : T(0);
    place.sync();
    if (place.t == 0) {
        shift = double(root_top);
        for (int i = 0; i < N; ++i) shift += double(space[i]);
    }
    place.sync();
    T lowest = T(0);
    T* row = weights + (m - 1) * (N + 1);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
        const int h = place.first + i;
        const T x = own[i] - top;
        if (sentence.has(h, m)) lowest = x >= lowest ? lowest : x;  // also if x is nan
        row[h] = m > n ? T(h == 1) : sentence.has(h, m) ? exp(x) : T(0);
    }
    if (place.half == 0) {
        const T x = root - top - root_top;
        if (m <= n) lowest = x >= lowest ? lowest : x;
        row[0] = m <= n ? exp(x) : T(0);
    }
    return lowest >= T(-SAFE_SPREAD<T>);
}

// P(h -> m) = W E over the sum of it for all heads of m; every cell of mu is written. `space` has 2 N places.
template <class T, int N>
__device__ __forceinline__ void normalise(
    const Sentence<T>& sentence, const Place<N>& place, const T* weights, const T* escape, T* space, T* mu
) {
    const int m = place.m, nodes = sentence.nodes;
    const T* row = weights + (m - 1) * (N + 1);
    T mass[N / 2], root = place.half == 0 ? row[0] : T(0), total = root;
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
        const int h = place.first + i;
        mass[i] = sentence.has(h, m) ? row[h] * escape[(h - 1) * (N + 1) + m - 1] : T(0);
        total += mass[i];
    }
    space[place.t] = total;
    place.sync();
    const T inverse = m <= sentence.n ? T(1) / (total + space[(place.t + N) % (2 * N)]) : T(0);
    if (!mu) return;
    if (m < nodes) {
#pragma unroll
        for (int i = 0; i < N / 2; ++i)
            if (place.first + i < nodes) mu[(place.first + i) * nodes + m] = mass[i] * inverse;
        if (place.half == 0) mu[m] = m <= sentence.n ? root * inverse : T(0);
    }
    for (int h = place.t; h < nodes; h += 2 * N) mu[h * nodes] = T(0);
}

// Whether it holds for all threads of the sentence; `space` may have anything else from its N + 1st row on.
template <int N, class T>
__device__ __forceinline__ bool all_of_sentence(bool holds, const Place<N>& place, T* space) {
    T* flags = space + N * (N + 1);
    flags[place.t] = T(holds);
    place.sync();
    bool all = true;
    for (int i = 0; i < 2 * N; ++i) all = all && flags[i] == T(1);
    place.sync();
    return all;
}

// ----------------------------------------------------------------------------------------------------------- kernels
//
// A block has threads(N) threads, and threads(N) / (2 N) sentences with workspace_size(N) numbers of shared memory each.

// log Z and marginals. Sentences whose weights T cannot hold are left to matrix_tree_rest: rest[0] counts them, and
// their numbers follow. Grid: one group of 2 N threads a sentence.
template <class T, int N, bool MULTI>
__global__ void __launch_bounds__(threads(N)) matrix_tree_marginals(
    const T* scores, const long long* lengths, int batch, int nodes, T* log_z, T* mu, int* rest
) {
    SHARED_MEMORY(shared);
    constexpr int GROUPS = threads(N) / (2 * N);
    const int group = threadIdx.x / (2 * N), given = blockIdx.x * GROUPS + group;
    const bool wanted = given < batch;  // threads without a sentence still take part in shuffles
    const long long number = wanted ? given : batch - 1;
    const Place<N> place(threadIdx.x % (2 * N));
    const Sentence<T> sentence{scores + number * nodes * nodes, int(lengths[number]), nodes};
    T* space = reinterpret_cast<T*>(shared) + group * workspace_size(N);
    double shift = 0.0;
    const bool safe = all_of_sentence<N>(fill_plain<T, N, MULTI>(sentence, place, space, shift), place, space);
    if (!safe && wanted && place.t == 0) rest[1 + atomicAdd(rest, 1)] = int(number);
    if (GROUPS == 1 && !safe) return;
    T* escape = space + N * (N + 1);
    T* below = escape + N * (N + 1);
    Product z;
    solve_half<T, N, MULTI>(
        space, below + place.half * handed_down(N), escape, N + 1, 0, place.half * (N / 2), place.t % N,
        1 + place.half, below + 2 * handed_down(N) + place.half * lines_size(N), z, place.half == 0
    );
    double* logs = reinterpret_cast<double*>(below);
    place.sync();
    logs[place.t] = z.log();
    place.sync();
    if (place.t == 0 && wanted && safe) {
        for (int i = 0; i < N; ++i) shift += logs[i];
        log_z[number] = T(sentence.n == 0 ? 0.0 : shift);
    }
    place.sync();
    normalise<T, N>(
        sentence, place, space, escape, below, wanted && safe ? mu + number * nodes * nodes : nullptr
    );
}
