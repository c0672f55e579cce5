// The walks of non-projective trees at any scale and of any length: Extended numbers, in memory, one block a sentence.
//
// The threads of a block share the cells of one table; divide and conquer goes depth first, as in
// `headway.inference.escape_walks`, whose order and names these are. Where there are no trees, log Z is -inf and
// everything else zero. O(n^3) operations a sentence.

#pragma once

#include "numbers.cuh"

namespace walks {

// Tables of all levels and the escapes. A level has all words of the one before, of which half are then eliminated.
__host__ __device__ constexpr long long walk_numbers(int n) {
    long long total = 2LL * n * (n + 1);
    for (int size = n; size > 1; size = (size + 1) / 2) total += (long long)size * (size + 1);
    return total;
}

constexpr int MOST_LEVELS = 24;

// A block at work on one sentence of n words.
template <class X, bool MULTI>
struct Walks {
    using Q = Arithmetic<X>;
    int n;
    X* escape;  // n x (n + 1), [head, modifier]
    Extended<double> z;  // product of the pivots, which thread 0 knows

    // Row k becomes p_k, by the first warp; the others wait.
    __device__ void divide(X* table, int size, int k, bool counts) {
        if (threadIdx.x < 32) {
            X* row = table + k * (size + 1);
            X d = Q::zero();
            for (int j = (MULTI ? 0 : 1) + threadIdx.x; j <= k; j += 32) d = Q::add(d, row[j]);
            for (int step = 1; step < 32; step *= 2) d = Q::add(d, shuffle(d, threadIdx.x ^ step, 32));
            const X inverse = Q::inverse(d);
            for (int j = threadIdx.x; j <= k; j += 32) row[j] = Q::mul(row[j], inverse);
            if (counts) times(d);
        }
        __syncthreads();
    }

    __device__ void times(X x) {
        const auto value = value_of(x);
        z = normal(z.m * double(value.m), z.e + value.e);
    }

    // Eliminate the words size - 1 ... keep.
    __device__ void eliminate(X* table, int size, int keep, bool counts) {
        for (int k = size - 1; k >= keep; --k) {
            divide(table, size, k, counts);
            const X* p = table + k * (size + 1);
            for (int cell = threadIdx.x; cell < k * (k + 1); cell += blockDim.x) {
                X* row = table + cell / (k + 1) * (size + 1);
                const int j = cell % (k + 1);
                row[j] = Q::fma(row[k + 1], p[j], row[j]);
            }
            __syncthreads();
        }
    }

    // Escapes of the eliminated words (from place `others` on) to the `keep` columns; some lanes share a column.
    __device__ void substitute(const X* table, int size, int keep, int columns, int others) {
        int lanes = 1;
        while (lanes < 32 && 2 * lanes * keep <= int(blockDim.x)) lanes *= 2;
        const int lane = threadIdx.x % lanes, team = threadIdx.x / lanes, teams = blockDim.x / lanes;
        for (int start = 0; start < keep; start += teams) {
            const int column = columns + min_of(start + team, keep - 1);  // lanes without one repeat the last
            for (int k = keep; k < size; ++k) {
                const X* p = table + k * (size + 1);
                X e = lane == 0 ? p[0] : Q::zero();
                for (int j = lane; j < k; j += lanes) {
                    const int word = j < keep ? columns + j : others + j - keep;
                    e = Q::fma(p[1 + j], escape[word * (n + 1) + column], e);
                }
                for (int step = 1; step < lanes; step *= 2) e = Q::add(e, shuffle(e, (threadIdx.x & 31) ^ step, 32));
                if (start + team < keep && lane == 0) escape[(others + k - keep) * (n + 1) + column] = e;
                __syncwarp();
            }
        }
        __syncthreads();
    }

    static __device__ int min_of(int a, int b) { return a < b ? a : b; }

    // The words of `table`, whose rows are `stride` apart, with the `keep` words from `first` on before the others.
    __device__ void copy(const X* table, int stride, X* below, int size, int first, int keep) {
        const int others = first > 0 ? 0 : keep;
        auto from = [&](int i) { return i < keep ? first + i : others + i - keep; };
        for (int cell = threadIdx.x; cell < size * (size + 1); cell += blockDim.x) {
            const int i = cell / (size + 1), j = cell % (size + 1);
            below[cell] = table[from(i) * stride + (j == 0 ? 0 : 1 + from(j - 1))];
        }
        __syncthreads();
    }

    // All escapes, from the weights in `tables` [modifier, head]; the levels follow one another there.
    __device__ void solve(X* tables) {
        X* table[MOST_LEVELS];
        int begin[MOST_LEVELS], count[MOST_LEVELS], stride[MOST_LEVELS], stage[MOST_LEVELS];
        int level = 0;
        table[0] = tables, begin[0] = 0, count[0] = n, stride[0] = n + 1, stage[0] = 0;
        while (level >= 0) {
            const int lo = begin[level], size = count[level], half = (size + 1) / 2;
            if (size == 1) {
                if (threadIdx.x == 0) {
                    escape[lo * (n + 1) + lo] = Q::zero();
                    if (lo == 0) times(table[level][0]);
                }
                __syncthreads();
                --level;
                continue;
            }
            if (stage[level] == 1) substitute(table[level + 1], size, half, lo, lo + half);
            if (stage[level] == 2) {
                substitute(table[level + 1], size, size - half, lo + half, lo);
                --level;
                continue;
            }
            const int first = stage[level] == 0 ? 0 : half, keep = stage[level] == 0 ? half : size - half;
            table[level + 1] = table[level] + (level == 0 ? n : stride[level] - 1) * stride[level];
            copy(table[level], stride[level], table[level + 1], size, first, keep);
            eliminate(table[level + 1], size, keep, lo == 0 && first == 0);
            ++stage[level];
            ++level;
            begin[level] = lo + first, count[level] = keep, stride[level] = size + 1, stage[level] = 0;
        }
    }
};

template <class T>
__device__ __forceinline__ void set_weight(Extended<T>& weight, T score, const T*, long long) {
    weight = extended_exp<T>(double(score));
}
template <class T>
__device__ __forceinline__ void set_weight(Sloped<Extended<T>>& weight, T score, const T* f, long long cell) {
    weight = {extended_exp<T>(double(score)), score > T(-1.0 / 0.0) ? f[cell] : T(0)};
}

template <class T>
__device__ __forceinline__ T slope_over(Extended<T>, Extended<T>) {
    return T(0);
}
template <class T>
__device__ __forceinline__ T slope_over(Sloped<Extended<T>> x, Sloped<Extended<T>> total) {
    return x.slope - total.slope;
}

// P(h -> m) = W E over the sum of it for all heads of m, one thread a word; every cell of the results is written.
template <class X, class T>
__device__ void normalise(const X* weights, const X* escape, int n, int nodes, bool possible, T* mu, T* slope) {
    using Q = Arithmetic<X>;
    for (int m = threadIdx.x; m < nodes; m += blockDim.x) {
        const bool real = possible && m > 0 && m <= n;
        const X* row = weights + (m - 1) * (n + 1);
        auto mass = [&](int h) { return h == 0 ? row[0] : Q::mul(row[h], escape[(h - 1) * (n + 1) + m - 1]); };
        X total = Q::zero();
        for (int h = 0; real && h <= n; ++h)
            if (h != m) total = Q::add(total, mass(h));
        for (int h = 0; h < nodes; ++h) {
            const bool arc = real && h <= n && h != m;
            const X x = arc ? mass(h) : Q::zero();
            const T p = arc ? T(Q::ratio(x, total)) : T(0);
            if (mu) mu[(long long)h * nodes + m] = p;
            if (slope) slope[(long long)h * nodes + m] = p > T(0) ? p * slope_over(x, total) : p;
        }
    }
    __syncthreads();
}

// One sentence: log Z and marginals, or the derivatives of these in the direction f if X has slopes. Results that are not
// wanted are null. `space` has walk_numbers(n) numbers.
template <class X, class T, bool MULTI>
__device__ void walk_sentence(const T* scores, const T* f, int n, int nodes, T* log_z, T* mu, T* slope, X* space) {
    X* weights = space + n * (n + 1);
    for (int cell = threadIdx.x; cell < n * (n + 1); cell += blockDim.x) {
        const int m = cell / (n + 1) + 1, h = cell % (n + 1);
        if (h == m)
            weights[cell] = Arithmetic<X>::zero();
        else
            set_weight(weights[cell], scores[(long long)h * nodes + m], f, (long long)h * nodes + m);
    }
    __syncthreads();
    Walks<X, MULTI> words{n, space, {1.0, 0}};
    if (n > 0) words.solve(weights);
    double* known = reinterpret_cast<double*>(weights + n * (n + 1));  // below the weights nothing is needed any more
    if (threadIdx.x == 0) {
        const double value = log(words.z.m) + double(words.z.e) * LN_2;
        *known = words.z.e < FORBIDDEN_EXPONENT / 2 ? -1.0 / 0.0 : value;
        if (log_z) *log_z = T(*known);
    }
    __syncthreads();
    const bool possible = *known != -1.0 / 0.0;  // nan is passed on
    __syncthreads();
    normalise<X, T>(weights, space, n, nodes, possible, mu, slope);
}

}  // namespace walks
