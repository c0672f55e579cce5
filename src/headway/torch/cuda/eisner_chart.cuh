// Eisner's (1996) chart of a sentence in the memory of a block of threads: weights, and the sums from narrow spans to
// wide.
//
// The recurrences are those of `headway.inference.span_chart`. C[h, e] sums the trees over the words from h to e
// (either side of h) with root h, I[h, m] those between h and m with the arc h -> m; for i < j
//
//     Q[i, j] = sum_{i <= k < j}  C[i, k] C[j, k + 1]         I[i, j] = W[i, j] Q[i, j],   I[j, i] = W[j, i] Q[i, j]
//     C[i, j] = sum_{i < k <= j}  I[i, k] C[k, j]             C[j, i] = sum_{i <= k < j} I[j, k] C[k, i]
//
// with C[h, h] = 1. Multi-root trees put the root into the chart as node 0 (Z = C[0, n]); single-root trees sum over
// its one child, Z = sum_m W[0, m] C[m, 1] C[m, n]. All sums of a span are over narrower ones, but for the arc itself,
// which the same thread has: a width costs one barrier.
//
// *Layout.* Squares [head, end] of p rows; p is n, or n + 1 with the root. PARTS neighbouring lanes share the sums of a
// span, the next lanes have the next span, and a pitch of PARTS - 1 modulo 32 puts what they read, by rows or by
// columns, into different banks. With PLACES > 0 the chart lies in shared memory, p <= PLACES, and distances in it are
// known to the compiler; with PLACES = 0 it lies in a workspace, and p is any.
//
// *Numbers.* float or double (or Dual ones) for sentences they hold, Extended for all. The weights of word m are
// divided by
//
//     gauge[m] = sum over heads h of W[h, m] 1.3 |h - m|^-1.5,
//
// about what m contributes to Z: a projective tree of n words has about 6.75^n variants, and arcs of length d are as
// frequent as d^-1.5. Spans then stay near 1: for normal scores of standard deviation 1 and 128 words between 5e-4 and
// 1e4. Two bounds say whether underflow can have mattered. Either no cell of C has left [FLOOR, CEILING], so each
// contains all its terms. Or Z is large beside all that can be lost: divided by the plain sums over the heads, no sum
// over trees or parts of trees exceeds 1, since trees are a part of all choices of heads; `slack` is the difference.

#pragma once

#include "numbers.cuh"

__device__ __forceinline__ double infinity() { return __longlong_as_double(0x7ff0000000000000LL); }

constexpr int MOST_THREADS = 512;

// A score: sums are maxima, products are sums.
struct Best {
    double value;
};
template <>
struct RealOf<Best> {
    using type = double;
};

template <>
struct Arithmetic<Best> {
    static __device__ __forceinline__ Best zero() { return {-infinity()}; }
    static __device__ __forceinline__ Best one() { return {0.0}; }
    static __device__ __forceinline__ Best add(Best a, Best b) { return b.value > a.value ? b : a; }
    static __device__ __forceinline__ Best mul(Best a, Best b) { return {a.value + b.value}; }
    static __device__ __forceinline__ Best fma(Best a, Best b, Best c) { return add(c, mul(a, b)); }
};

__device__ __forceinline__ Best shuffle(Best x, int source, int width) { return {shuffle(x.value, source, width)}; }

__device__ __forceinline__ float exp_of(float x) { return expf(x); }
__device__ __forceinline__ double exp_of(double x) { return exp(x); }

// sum + a b, where the sum need not be normal: that is left to whoever uses it.
template <class X>
__device__ __forceinline__ X accumulated(X a, X b, X sum) {
    return Arithmetic<X>::fma(a, b, sum);
}
__device__ __forceinline__ Extended<double> accumulated(Extended<double> a, Extended<double> b, Extended<double> sum) {
    const double m = a.m * b.m;
    const long long e = a.e + b.e, shift = e - sum.e;
    const double scale = power_of_two<double>(shift > 0 ? -shift : shift);
    return shift > 0 ? Extended<double>{m + sum.m * scale, e} : Extended<double>{sum.m + m * scale, sum.e};
}

// What numbers with a gauge can hold: cells, the logarithm of all slack, and Z less the slack. A term of a cell is the
// product of at most three others and a weight, which the gauge keeps below |h - m|^1.5: with cells below the ceiling none
// overflows, and what underflows is nothing beside the floor.
template <class T>
struct Limits {
    static constexpr T FLOOR = 1e-200, CEILING = 1e25;
    static constexpr double SLACK = 600.0, SMALLEST = 1e-285;
};
template <>
struct Limits<float> {
    static constexpr float FLOOR = 1e-13f, CEILING = 1e9f;
    static constexpr double SLACK = 80.0, SMALLEST = 1e-25;
};

// How a number is made from a score less its gauge, and a slope.
template <class X>
struct Weight {  // float, double
    static constexpr bool GAUGED = true, SLOPED = false;
    static __device__ __forceinline__ X of(X score, double) { return exp_of(score); }
};
template <class T>
struct Weight<Dual<T>> {
    static constexpr bool GAUGED = true, SLOPED = true;
    static __device__ __forceinline__ Dual<T> of(T score, double slope) {
        const T value = exp_of(score);
        return {value, value * T(slope)};
    }
};
template <>
struct Weight<Extended<double>> {
    static constexpr bool GAUGED = false, SLOPED = false;
    static __device__ __forceinline__ Extended<double> of(double score, double) { return extended_exp<double>(score); }
};
template <>
struct Weight<Sloped<Extended<double>>> {
    static constexpr bool GAUGED = false, SLOPED = true;
    static __device__ __forceinline__ Sloped<Extended<double>> of(double score, double slope) {
        return {extended_exp<double>(score), slope};
    }
};
template <>
struct Weight<Best> {
    static constexpr bool GAUGED = false, SLOPED = false;
    static __device__ __forceinline__ Best of(double score, double) { return {score}; }
};

constexpr __host__ __device__ int eisner_pitch(int places, int parts) {
    return places + (parts + 31 - places % 32) % 32;
}
// The bytes of a chart; `cell` is what all its squares have for one place of the pitch.
constexpr __host__ __device__ long long eisner_bytes(int places, int parts, int cell) {
    return ((long long)(places)*eisner_pitch(places, parts) * cell + 48 * (places + 1) + 255) / 256 * 256;
}

// D as a triangle: where the spans that end at j begin. Spans of two places are left out: nobody reads theirs.
constexpr __host__ __device__ int triangle_row(int j) { return (j - 1) * (j - 2) / 2; }
// The bytes of a packed chart of float numbers: three squares, two numbers a word, and the triangle of D.
constexpr __host__ __device__ int eisner_packed_bytes(int places, int parts, bool multi) {
    const int squares = (12 * places * eisner_pitch(places, parts) + 7) / 8 * 8;
    const int words = multi ? 0 : (12 * places + 7) / 8 * 8;
    const int triangle = 4 * triangle_row(places), gauges = 16 * places;
    return (squares + words + (triangle > gauges ? triangle : gauges) + 15) / 16 * 16;
}

__device__ __forceinline__ void sync_block() {
    if (blockDim.x == 32) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}
__device__ __forceinline__ bool any_thread(bool predicate) {
    return blockDim.x == 32 ? __any_sync(ALL_LANES, predicate) != 0 : __syncthreads_or(predicate) != 0;
}

__device__ __forceinline__ double sum_of_lanes(double x) {
    for (int k = 16; k > 0; k /= 2) x += shuffle(x, (threadIdx.x % 32) ^ k, 32);
    return x;
}
__device__ __forceinline__ double max_of_lanes(double x) {
    for (int k = 16; k > 0; k /= 2) x = fmax(x, shuffle(x, (threadIdx.x % 32) ^ k, 32));
    return x;
}
// The sum of what the PARTS lanes of a span have found.
template <int PARTS, class X>
__device__ __forceinline__ X sum_of_parts(X x) {
#pragma unroll
    for (int k = PARTS / 2; k > 0; k /= 2) x = Arithmetic<X>::add(x, shuffle(x, (threadIdx.x % 32) ^ k, 32));
    return x;
}

// Where sums over the root's children are kept: one factor of them may be far from the others.
template <class X>
struct Wider {
    using type = X;
};
template <>
struct Wider<float> {
    using type = double;
};
template <>
struct Wider<Dual<float>> {
    using type = Dual<double>;
};
template <class X>
__device__ __forceinline__ X widened(X x) {
    return x;
}
__device__ __forceinline__ double widened(float x) { return x; }
__device__ __forceinline__ Dual<double> widened(Dual<float> x) { return {x.value, x.slope}; }
template <class X>
__device__ __forceinline__ X narrowed(X x, X) {
    return x;
}
__device__ __forceinline__ float narrowed(double x, float) { return float(x); }
__device__ __forceinline__ Dual<float> narrowed(Dual<double> x, Dual<float>) {
    return {float(x.value), float(x.slope)};
}

// One sentence: its scores, and where its chart lies: squares of X, the arrays of its words, and what comes after. In a
// packed chart that is the triangle of D; the gauges, of which `inside` knows nothing any more, have been there before.
template <class T, class X_, bool MULTI_, int PLACES, int PARTS_, bool PACKED_ = false>
struct Chart {
    using X = X_;
    using Root = typename Wider<X>::type;
    using Score = T;
    static constexpr bool MULTI = MULTI_, PACKED = PACKED_;
    static constexpr int PARTS = PARTS_, FIRST = MULTI ? 0 : 1;  // the node at place 0

    const T *scores, *f;  // f is null unless X has slopes
    int n, nodes, p, own_pitch;
    X* c;
    // Of each word: the weight of the root's arc, then the derivative of log Z by the span from the word to the end;
    // the derivative by the span to the beginning, in the place of the gauge and one number more.
    Root* root;
    X* left;
    double *gauge, *more;
    char* after;

    __device__ Chart(const T* scores, const T* f, int n, int nodes, char* memory, int squares)
        : scores(scores), f(f), n(n), nodes(nodes), p(n + 1 - FIRST), own_pitch(eisner_pitch(p, PARTS)) {
        c = reinterpret_cast<X*>(memory);
        char* const words = memory + (squares * square() * sizeof(X) + 7) / 8 * 8;
        root = reinterpret_cast<Root*>(words);
        if constexpr (PACKED) {
            left = reinterpret_cast<X*>(root + p);
            after = words + (MULTI ? 0 : (p * (sizeof(Root) + sizeof(X)) + 7) / 8 * 8);
            gauge = reinterpret_cast<double*>(after);
            more = gauge + p;
        } else {
            gauge = reinterpret_cast<double*>(root + p + 1);
            more = gauge + p + 1;
            left = reinterpret_cast<X*>(gauge);
            after = words + 48 * (p + 1);
        }
    }
    __device__ __forceinline__ int pitch() const {
        if constexpr (PLACES > 0) return eisner_pitch(PLACES, PARTS);
        return own_pitch;
    }
    __device__ __forceinline__ long long square() const {
        if constexpr (PLACES > 0) return PLACES * eisner_pitch(PLACES, PARTS);
        return (long long)(p)*own_pitch;
    }
    __device__ __forceinline__ X* i() const { return c + square(); }
    __device__ __forceinline__ X* w() const { return c + 2 * square(); }

    __device__ __forceinline__ double score(int h, int m) const { return double(scores[(long long)(h)*nodes + m]); }
    __device__ __forceinline__ double slope(int h, int m) const { return double(f[(long long)(h)*nodes + m]); }
};

// ---- Sentences ----------------------------------------------------------------------------------------------------

// Calls body(sentence, its memory) for each sentence of this block: those of a list, which is empty afterwards, or all.
template <int PLACES, class Body>
__device__ void each_sentence(int batch, List which, char* workspace, long long bytes, Body body) {
    SHARED_MEMORY(shared);
    const int count = which.count(batch);
    for (int turn = blockIdx.x; turn < count; turn += gridDim.x) {
        const long long b = which.number(turn);
        if constexpr (PLACES > 0) {
            body(b, shared);
        } else {
            body(b, workspace == nullptr ? shared : workspace + blockIdx.x * bytes);
        }
        sync_block();
    }
    which.empty(count);
}

// ---- Weights -------------------------------------------------------------------------------------------------------

// What the results must be scaled by, and how much less than their bounds numbers may be.
struct Units {
    double log_weight = 0.0;  // of all trees
    double slope = 1.0;
    double slack = 0.0;
};

// Sets gauge[m - 1], the logarithm that word m's weights are divided by, and more[m - 1], how far the sum over its
// heads is above. The root's arcs of single-root trees stay out: one of them is used, and they have a gauge of their
// own. Neither need be accurate, so single precision does.
template <class Chart>
__device__ void set_gauge(const Chart& at) {
    using T = typename Chart::Score;
    for (int m = 1 + threadIdx.x; m <= at.n; m += blockDim.x) {
        const T* const column = at.scores + m;
        T top = -T(infinity());
#pragma unroll 8
        for (int h = Chart::FIRST; h <= at.n; ++h) {
            const T score = column[h * (long long)(at.nodes)];
            top = score > top && h != m ? score : top;
        }
        float sum = 0.0f, near = 0.0f;
#pragma unroll 8
        for (int h = Chart::FIRST; h <= at.n; ++h) {
            const T score = h == m ? -T(infinity()) : column[h * (long long)(at.nodes)];
            const float length = h == m ? 1.0f : float(h > m ? h - m : m - h);
            const float weight = __expf(float(score - top));
            sum += weight;
            near += weight * rsqrtf(length * length * length);
        }
        const bool headed = !(top < -T(LARGEST_LOG));
        at.gauge[m - 1] = headed ? double(top) + double(logf(1.3f * near)) : 0.0;
        at.more[m - 1] = headed ? fmax(0.0, double(logf(sum / (1.3f * near)))) : 0.0;
    }
    sync_block();
}

// f less its value at each word's best head, which changes no covariance and leaves little to cancel, over the largest
// of what is left, which is returned. more[m - 1] is left as the value at the best head.
template <class Chart>
__device__ double set_direction(const Chart& at) {
    double largest = 0.0;
    for (int m = 1 + threadIdx.x % 32; m <= at.n; m += 32) {
        int best = m;
        double top = -infinity();
        for (int h = Chart::FIRST; h <= at.n; ++h) {
            if (h == m || !(at.score(h, m) > top)) continue;
            best = h, top = at.score(h, m);
        }
        const double at_best = best == m ? 0.0 : at.slope(best, m);
        for (int h = 0; h <= at.n; ++h) {
            if (h == m || at.score(h, m) < -LARGEST_LOG) continue;
            largest = fmax(largest, fabs(at.slope(h, m) - at_best));
        }
        if (threadIdx.x < 32) at.more[m - 1] = at_best;
    }
    sync_block();
    return max_of_lanes(largest);
}

// A score less its gauge: what is left is small, and float keeps enough of it if the gauge is subtracted in two parts.
__device__ __forceinline__ float less(float score, double gauge, float) {
    const float most = float(gauge);
    return (score - most) - float(gauge - double(most));
}
template <class T, class R>
__device__ __forceinline__ R less(T score, double gauge, R) {
    return R(double(score) - gauge);
}

// The weight of an arc, less the gauge.
template <class Number, class Chart>
__device__ __forceinline__ Number weight(const Chart& at, int h, int m, double gauge, double per_slope) {
    const auto score = at.scores[(long long)(h)*at.nodes + m];
    double slope = 0.0;
    if constexpr (Weight<Number>::SLOPED) {
        if (!(score < -LARGEST_LOG)) slope = per_slope * (at.slope(h, m) - at.more[m - 1]);
    }
    if constexpr (Weight<Number>::GAUGED) return Weight<Number>::of(less(score, gauge, Real<Number>()), slope);
    return Weight<Number>::of(double(score), slope);
}

// Fills W and the root's weights, for which the next barrier is `inside`'s.
template <class Chart>
__device__ Units load(const Chart& at) {
    using X = typename Chart::X;
    constexpr int FIRST = Chart::FIRST;
    const int lane = threadIdx.x % 32, pitch = at.pitch();
    Units units;
    double of_roots = 0.0;
    if constexpr (Weight<X>::GAUGED) {
        set_gauge(at);
        for (int m = 1 + lane; m <= at.n; m += 32) units.log_weight += at.gauge[m - 1], units.slack += at.more[m - 1];
        units.log_weight = sum_of_lanes(units.log_weight);
        units.slack = sum_of_lanes(units.slack);
        if constexpr (!Chart::MULTI) {
            of_roots = -infinity();
            for (int m = 1 + lane; m <= at.n; m += 32) of_roots = fmax(of_roots, at.score(0, m) - at.gauge[m - 1]);
            of_roots = max_of_lanes(of_roots);
            of_roots = of_roots < -LARGEST_LOG ? 0.0 : of_roots;
            units.log_weight += of_roots;
        }
    }
    if constexpr (Weight<X>::SLOPED) {
        sync_block();  // all have read `more`
        units.slope = set_direction(at);
    }
    const double per_slope = units.slope > 0.0 ? 1.0 / units.slope : 0.0;
    for (int m = 1 + lane; m <= at.n; m += 32) {
        const double gauge = Weight<X>::GAUGED ? at.gauge[m - 1] : 0.0;
#pragma unroll 4
        for (int h = FIRST + threadIdx.x / 32; h <= at.n; h += blockDim.x / 32) {
            if (m != h) at.w()[(h - FIRST) * pitch + m - FIRST] = weight<X>(at, h, m, gauge, per_slope);
        }
    }
    if constexpr (!Chart::MULTI) {
        for (int m = 1 + threadIdx.x; m <= at.n; m += blockDim.x) {
            const double gauge = Weight<X>::GAUGED ? at.gauge[m - 1] + of_roots : 0.0;
            at.root[m - 1] = weight<typename Chart::Root>(at, 0, m, gauge, per_slope);
        }
    } else {  // no arc leads to the root
        for (int h = threadIdx.x; h <= at.n; h += blockDim.x) at.w()[h * pitch] = Weight<X>::of(-infinity(), 0.0);
    }
    return units;
}

// ---- Spans ---------------------------------------------------------------------------------------------------------

// The smallest and the largest number seen.
template <class R>
struct Range {
    R smallest = R(infinity()), largest = R(0);
    __device__ __forceinline__ void see(R x) {
        smallest = x < smallest ? x : smallest;
        largest = x > largest ? x : largest;
    }
};

// Whether this thread's warp has any of the spans that begin at `first`, of which there are `spans`.
template <int PARTS>
__device__ __forceinline__ bool warp_has_spans(int first, int spans) {
    return first + int(threadIdx.x) / 32 * (32 / PARTS) < spans;
}

// Fills C and I.
template <class Chart>
__device__ Range<Real<typename Chart::X>> inside(const Chart& at) {
    using X = typename Chart::X;
    using A = Arithmetic<X>;
    constexpr int PARTS = Chart::PARTS;
    const int p = at.p, pitch = at.pitch(), part = threadIdx.x % PARTS;
    X *const c = at.c, *const arcs = at.i(), *const w = at.w();
    Range<Real<X>> range;
    for (int i = threadIdx.x; i < p; i += blockDim.x) c[i * pitch + i] = A::one();
    sync_block();
    for (int width = 1; width < p; ++width) {
        for (int first = 0; warp_has_spans<PARTS>(first, p - width); first += blockDim.x / PARTS) {
            const int i = first + threadIdx.x / PARTS, j = i + width;
            const bool mine = j < p;
            X q = A::zero(), right = A::zero(), left = A::zero();
            if (mine) {
                int row_i = i * pitch + i + 1 + part, row_j = row_i + width * pitch;
                int column_i = (i + 1 + part) * pitch + i, column_j = column_i + width;
#pragma unroll 4
                for (int k = part; k < width - 1; k += PARTS) {
                    q = accumulated(c[row_i], c[row_j + 1], q);
                    right = accumulated(arcs[row_i], c[column_j], right);
                    left = accumulated(arcs[row_j], c[column_i], left);
                    row_i += PARTS, row_j += PARTS, column_i += PARTS * pitch, column_j += PARTS * pitch;
                }
            }
            q = sum_of_parts<PARTS>(q);
            right = sum_of_parts<PARTS>(right);
            left = sum_of_parts<PARTS>(left);
            if (mine && part == 0) {
                const int ij = i * pitch + j, ji = j * pitch + i;
                q = A::add(c[ji + 1], q);
                const X right_arc = A::mul(q, w[ij]), left_arc = A::mul(q, w[ji]);
                arcs[ij] = right_arc;
                arcs[ji] = left_arc;
                c[ij] = right = A::add(right, right_arc);
                c[ji] = left = A::add(left_arc, left);
                if constexpr (Weight<X>::GAUGED) {
                    range.see(value_of(right));
                    if (!Chart::MULTI || i > 0) range.see(value_of(left));
                }
            }
        }
        sync_block();
    }
    return range;
}
