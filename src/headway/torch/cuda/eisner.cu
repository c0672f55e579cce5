// Projective trees of a batch: log Z, marginals, covariances and the best tree, one block of threads a sentence.
//
// The recurrences are Eisner's (1996), as `headway.inference.span_chart` states them. C[h, e] sums the trees over the
// words from h to e (either side of h) with root h, I[h, m] those between h and m with the arc h -> m; for i < j
//
//     Q[i, j] = sum_{i <= k < j}  C[i, k] C[j, k + 1]         I[i, j] = W[i, j] Q[i, j],   I[j, i] = W[j, i] Q[i, j]
//     C[i, j] = sum_{i < k <= j}  I[i, k] C[k, j]             C[j, i] = sum_{i <= k < j} I[j, k] C[k, i]
//
// with C[h, h] = 1. Multi-root trees put the root into the chart as node 0 (Z = C[0, n]); single-root trees sum over its
// one child, Z = sum_m W[0, m] C[m, 1] C[m, n]. The outside pass is the same sums with the derivatives of log Z: O[h, e]
// by C[h, e], and D[i, j] by Q[i, j]. Every sum over narrower (or wider) spans and the span's own arc are finished
// together, so a width costs one barrier, and there are 2 n of them.
//
// *Numbers.* Each word's weights are divided by the sum over its heads, or all by 6.75 times the largest, the rate at
// which projective trees multiply, whichever leaves more. No sum over trees or parts of trees then exceeds about 1:
// trees are a part of all choices of heads. So doubles serve any sentence with Z >= SMALLEST_SUM: a term lost to
// underflow is 1e-30 of it, and the error of a probability is some 1e-15. Other sentences are left to the same kernel
// with Extended numbers (WIDE). Floats with an exponent beside them would cost as much as doubles: shared memory's
// bandwidth decides.
//
// *Layout.* Squares [head, end] of p x pitch cells: C, I, then W, which O replaces from the widest span down, then D with
// its mirror image. PARTS neighbouring lanes share the sum of a span, its neighbours hold the next spans, and a pitch of
// PARTS - 1 modulo 16 puts the cells they read, by rows or by columns, into different banks.
//
// p = n words, or n + 1 places for multi-root trees; P = p + (PARTS - 1 - p) mod 16;
//     bytes(nodes) = squares p P size + 48 (p + 1), rounded up to a multiple of 256, for the largest p = nodes - 1 (+ 1)
//     squares      3 for log_partition and argmax, 4 for marginals and covariance
//     size         8; WIDE: 16. covariance: 16; WIDE: 24
// Where bytes(nodes) of shared memory cannot be had, `workspace` is bytes(nodes) per block of the grid, and no shared
// memory is needed; otherwise it is null. The grid may have any number of blocks: each takes every gridDim.x-th sentence.
// Threads: a multiple of 32, at most MOST_THREADS; about p PARTS / 2 or p PARTS.
//
// O(n^3) work: 0.5 n^3 products for log Z, 1.5 n^3 with marginals, of two cells each. With B = 4096 and n = 32 that is
// 6.4 GB through shared memory for 36 MB through the device's: 130 us at 132 multiprocessors x 128 bytes a cycle, ten
// times the device memory's 8 us. Only register tiles could change that, and spans of 32 words are too few for them.

#include "numbers.cuh"

constexpr int MOST_THREADS = 512;
constexpr double SMALLEST_SUM = 1e-290;
constexpr double GROWTH = 1.9095425048844386;  // log 6.75

__device__ __forceinline__ double infinity() { return __longlong_as_double(0x7ff0000000000000LL); }

__device__ __forceinline__ Extended<double> inverse_of(Extended<double> x) {
    return Arithmetic<Extended<double>>::inverse(x);
}
__device__ __forceinline__ Sloped<Extended<double>> inverse_of(Sloped<Extended<double>> x) {
    return Arithmetic<Sloped<Extended<double>>>::inverse(x);
}

// A score: sums are maxima, products are sums.
struct Best {
    double value;
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

constexpr __host__ __device__ int eisner_pitch(int places, int parts) {
    return places + (parts + 15 - places % 16) % 16;
}
constexpr __host__ __device__ long long eisner_bytes(int places, int parts, int squares, int size) {
    const long long bytes = (long long)(squares)*places * eisner_pitch(places, parts) * size + 48 * (places + 1);
    return (bytes + 255) / 256 * 256;
}

__device__ __forceinline__ void sync_block() {
    if (blockDim.x == 32) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

// One sentence: its scores, and where its chart lies.
template <class T, class X, bool MULTI, int PARTS>
struct Sentence {
    static constexpr int FIRST = MULTI ? 0 : 1;  // the node at place 0

    const T* scores;
    const T* f;  // null unless X has slopes
    int n, nodes, p, pitch;
    X *c, *i, *w, *o, *d, *root;
    double *gauge, *more;  // of each word

    __device__ Sentence(const T* all_scores, const T* all_f, long long b, int length, int nodes, char* memory, int squares)
        : scores(all_scores + b * nodes * nodes),
          f(all_f == nullptr ? nullptr : all_f + b * nodes * nodes),
          n(length),
          nodes(nodes),
          p(length + 1 - FIRST),
          pitch(eisner_pitch(p, PARTS)) {
        const long long square = (long long)(p) * pitch;
        c = reinterpret_cast<X*>(memory);
        i = c + square;
        w = o = i + square;
        d = o + square;
        root = c + squares * square;
        gauge = reinterpret_cast<double*>(root + p + 1);
        more = gauge + p + 1;
    }

    __device__ __forceinline__ double score(int h, int m) const {
        const double s = double(scores[(long long)(h)*nodes + m]);
        return s < -LARGEST_LOG ? -infinity() : s;
    }
};

// The sum over lanes of a warp.
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

// ---- Weights -------------------------------------------------------------------------------------------------------

// Sets gauge[m - 1], the logarithm that word m's weights are divided by. The root's arcs of single-root trees stay out:
// one of them is used, and they have a gauge of their own.
template <class Sentence>
__device__ void set_gauge(const Sentence& at) {
    for (int m = 1 + threadIdx.x; m <= at.n; m += blockDim.x) {
        double top = -infinity();
#pragma unroll 8
        for (int h = Sentence::FIRST; h <= at.n; ++h) top = h == m ? top : fmax(top, at.score(h, m));
        float total = 0.0f;
#pragma unroll 8
        for (int h = Sentence::FIRST; h <= at.n; ++h) total += h == m ? 0.0f : expf(float(at.score(h, m) - top));
        at.gauge[m - 1] = top > -infinity() ? top : 0.0;
        at.more[m - 1] = top > -infinity() ? log(double(total)) : 0.0;
    }
    sync_block();
    double by_heads = 0.0;
    for (int m = 1 + threadIdx.x % 32; m <= at.n; m += 32) by_heads += at.more[m - 1];
    const bool choose_heads = sum_of_lanes(by_heads) < GROWTH * at.n;
    for (int m = 1 + threadIdx.x; m <= at.n; m += blockDim.x) at.gauge[m - 1] += choose_heads ? at.more[m - 1] : GROWTH;
    sync_block();
}

// f less its value at each word's best head, which changes no covariance and leaves little to cancel, over the largest
// of what is left, which is returned. at.more[m - 1] is left as the value at the best head.
template <class Sentence>
__device__ double set_direction(const Sentence& at) {
    double largest = 0.0;
    for (int m = 1 + threadIdx.x % 32; m <= at.n; m += 32) {
        int best = m;
        double top = -infinity();
        for (int h = Sentence::FIRST; h <= at.n; ++h) {
            if (h == m || !(at.score(h, m) > top)) continue;
            best = h, top = at.score(h, m);
        }
        const double at_best = best == m ? 0.0 : double(at.f[(long long)(best)*at.nodes + m]);
        for (int h = 0; h <= at.n; ++h) {
            if (h == m || at.score(h, m) == -infinity()) continue;
            largest = fmax(largest, fabs(double(at.f[(long long)(h)*at.nodes + m]) - at_best));
        }
        if (threadIdx.x < 32) at.more[m - 1] = at_best;
    }
    largest = max_of_lanes(largest);
    sync_block();
    return largest;
}

template <class X>
struct Weight;
template <>
struct Weight<double> {
    static constexpr bool GAUGED = true, SLOPED = false;
    static __device__ __forceinline__ double of(double score, double) { return exp(score); }
};
template <>
struct Weight<Dual<double>> {
    static constexpr bool GAUGED = true, SLOPED = true;
    static __device__ __forceinline__ Dual<double> of(double score, double slope) {
        const double value = exp(score);
        return {value, value * slope};
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

// What the results must be scaled by.
struct Units {
    double log_weight;  // of all trees
    double slope;
};

// Fills W and the root's weights.
template <class T, class X, bool MULTI, int PARTS>
__device__ Units load(const Sentence<T, X, MULTI, PARTS>& at) {
    constexpr int FIRST = MULTI ? 0 : 1;
    const int lane = threadIdx.x % 32;
    Units units{0.0, 1.0};
    if constexpr (Weight<X>::GAUGED) set_gauge(at);
    if constexpr (Weight<X>::SLOPED) units.slope = set_direction(at);
    const double per_slope = units.slope > 0.0 ? 1.0 / units.slope : 0.0;

    double of_roots = 0.0;
    if constexpr (Weight<X>::GAUGED) {
        for (int m = 1 + lane; m <= at.n; m += 32) units.log_weight += at.gauge[m - 1];
        units.log_weight = sum_of_lanes(units.log_weight);
        if constexpr (!MULTI) {
            of_roots = -infinity();
            for (int m = 1 + lane; m <= at.n; m += 32) of_roots = fmax(of_roots, at.score(0, m) - at.gauge[m - 1]);
            of_roots = max_of_lanes(of_roots);
            of_roots = of_roots > -infinity() ? of_roots : 0.0;
            units.log_weight += of_roots;
        }
    }
    const auto weight = [&](int h, int m, double gauge) {
        const double score = at.score(h, m);
        double slope = 0.0;
        if constexpr (Weight<X>::SLOPED) {
            if (score > -infinity()) slope = per_slope * (double(at.f[(long long)(h)*at.nodes + m]) - at.more[m - 1]);
        }
        if constexpr (Weight<X>::GAUGED) return Weight<X>::of(score - at.gauge[m - 1] - gauge, slope);
        return Weight<X>::of(score, slope);
    };
    for (int h = FIRST + threadIdx.x / 32; h <= at.n; h += blockDim.x / 32) {
        if (MULTI && lane == 0) at.w[h * at.pitch] = Weight<X>::of(-infinity(), 0.0);
        for (int m = 1 + lane; m <= at.n; m += 32) {
            if (m != h) at.w[(h - FIRST) * at.pitch + m - FIRST] = weight(h, m, 0.0);
        }
    }
    if constexpr (!MULTI) {
        for (int m = 1 + threadIdx.x; m <= at.n; m += blockDim.x) at.root[m - 1] = weight(0, m, of_roots);
    }
    sync_block();
    return units;
}

// ---- Inside and outside --------------------------------------------------------------------------------------------

// Fills C and I.
template <class T, class X, bool MULTI, int PARTS>
__device__ void inside(const Sentence<T, X, MULTI, PARTS>& at) {
    using A = Arithmetic<X>;
    const int p = at.p, pitch = at.pitch, part = threadIdx.x % PARTS;
    for (int i = threadIdx.x; i < p; i += blockDim.x) at.c[i * pitch + i] = A::one();
    sync_block();
    for (int width = 1; width < p; ++width) {
        for (int first = 0; first < p - width; first += blockDim.x / PARTS) {
            const int i = first + threadIdx.x / PARTS, j = i + width;
            const bool mine = j < p;
            X q = A::zero(), right = A::zero(), left = A::zero();
            if (mine) {
                const X *const ci = at.c + i * pitch, *const cj = at.c + j * pitch;
                const X *const ai = at.i + i * pitch, *const aj = at.i + j * pitch;
#pragma unroll 4
                for (int k = i + 1 + part; k < j; k += PARTS) {
                    q = A::fma(ci[k], cj[k + 1], q);
                    right = A::fma(ai[k], at.c[k * pitch + j], right);
                    left = A::fma(aj[k], at.c[k * pitch + i], left);
                }
            }
            q = sum_of_parts<PARTS>(q);
            right = sum_of_parts<PARTS>(right);
            left = sum_of_parts<PARTS>(left);
            if (mine && part == 0) {
                const int ij = i * pitch + j, ji = j * pitch + i;
                q = A::add(at.c[ji + 1], q);
                const X right_arc = A::mul(q, at.w[ij]), left_arc = A::mul(q, at.w[ji]);
                at.i[ij] = right_arc;
                at.i[ji] = left_arc;
                at.c[ij] = A::add(right, right_arc);
                at.c[ji] = A::add(left_arc, left);
            }
        }
        sync_block();
    }
}

// The sum over all trees; every thread has it.
template <class T, class X, bool MULTI, int PARTS>
__device__ X total(const Sentence<T, X, MULTI, PARTS>& at) {
    using A = Arithmetic<X>;
    if constexpr (MULTI) return at.c[at.p - 1];
    X sum = A::zero();
    for (int i = threadIdx.x % 32; i < at.p; i += 32) {
        sum = A::fma(A::mul(at.root[i], at.c[i * at.pitch]), at.c[i * at.pitch + at.p - 1], sum);
    }
    return sum_of_parts<32>(sum);
}

// Fills O and D, widest spans first, and calls store(head, modifier, its posterior) for every arc.
template <class T, class X, bool MULTI, int PARTS, class Store>
__device__ void outside(const Sentence<T, X, MULTI, PARTS>& at, X sum, Store store) {
    using A = Arithmetic<X>;
    const int p = at.p, pitch = at.pitch, part = threadIdx.x % PARTS, last = p - 1;
    const X inverse = inverse_of(sum);
    if constexpr (!MULTI) {
        sync_block();  // all have read the root's weights
        for (int i = threadIdx.x; i < p; i += blockDim.x) {
            const X share = A::mul(at.root[i], inverse);
            store(0, i + 1, A::mul(A::mul(share, at.c[i * pitch]), at.c[i * pitch + last]));
            at.root[i] = share;
        }
        sync_block();
    }
    for (int width = last; width > 0; --width) {
        for (int first = 0; first < p - width; first += blockDim.x / PARTS) {
            const int i = first + threadIdx.x / PARTS, j = i + width;
            const bool mine = j < p;
            // Spans that begin further left, then those that end further right. Towards the left, C[i, j] is the far
            // part of C[r, j] and C[j, i] the right part of Q[r, j]; towards the right the two change places.
            X far = A::zero(), inner = A::zero(), arc = A::zero();
            X far_left = A::zero(), inner_left = A::zero(), arc_left = A::zero();
            if (mine) {
                for (int s = part; s < last - width; s += PARTS) {
                    const bool leftwards = s < i;
                    const int r = leftwards ? i - 1 - s : width + 1 + s;
                    const int u = leftwards ? j : i, v = leftwards ? i : j, beyond = leftwards ? i - 1 : j + 1;
                    const X* const own = at.o + r * pitch + u;
                    const X a = A::mul(*own, at.i[r * pitch + v]);
                    const X b = A::mul(at.d[r * pitch + u], at.c[r * pitch + beyond]);
                    const X e = A::mul(at.o[u * pitch + r], at.c[v * pitch + r]);
                    if (leftwards) {
                        far_left = A::add(far_left, a), inner_left = A::add(inner_left, b), arc_left = A::add(arc_left, e);
                    } else {
                        far = A::add(far, a), inner = A::add(inner, b), arc = A::add(arc, e);
                    }
                }
            }
            X right = sum_of_parts<PARTS>(A::add(far_left, inner)), left = sum_of_parts<PARTS>(A::add(inner_left, far));
            const X right_rest = sum_of_parts<PARTS>(arc), left_rest = sum_of_parts<PARTS>(arc_left);
            if (mine && part == 0) {
                const int ij = i * pitch + j, ji = j * pitch + i;
                if constexpr (MULTI) {
                    if (width == last) right = A::add(right, inverse);
                } else {
                    if (j == last) right = A::add(right, A::mul(at.root[i], at.c[i * pitch]));
                    if (i == 0) left = A::add(left, A::mul(at.root[j], at.c[j * pitch + last]));
                }
                const X by_right_arc = A::add(right, right_rest), by_left_arc = A::add(left, left_rest);
                const X both = A::add(A::mul(by_right_arc, at.w[ij]), A::mul(by_left_arc, at.w[ji]));
                at.d[ij] = both;
                at.d[ji] = both;
                at.o[ij] = right;
                at.o[ji] = left;
                store(i + at.FIRST, j + at.FIRST, A::mul(by_right_arc, at.i[ij]));
                if (i + at.FIRST > 0) store(j + at.FIRST, i + at.FIRST, A::mul(by_left_arc, at.i[ji]));
            }
        }
        sync_block();
    }
}

// ---- Results -------------------------------------------------------------------------------------------------------

// log Z; +inf where the numbers do not hold it, -inf where there is no tree.
__device__ __forceinline__ double log_sum(double z, Units units) {
    if (z < SMALLEST_SUM) return infinity();
    return log(z) + units.log_weight;
}
__device__ __forceinline__ double log_sum(Dual<double> z, Units units) { return log_sum(z.value, units); }
__device__ __forceinline__ double log_sum(Extended<double> z, Units) {
    if (z.e < FORBIDDEN_EXPONENT / 2) return -infinity();
    return log(z.m) + double(z.e) * LN_2;
}
__device__ __forceinline__ double log_sum(Sloped<Extended<double>> z, Units units) { return log_sum(z.value, units); }

// An arc's probability, or its derivative where there are slopes.
__device__ __forceinline__ double result(double x, double) { return x; }
__device__ __forceinline__ double result(Dual<double> x, double unit) { return unit * x.slope; }
__device__ __forceinline__ double result(Extended<double> x, double) {
    return x.e > 0 ? 1.0 : x.m * power_of_two<double>(x.e);
}
__device__ __forceinline__ double result(Sloped<Extended<double>> x, double unit) {
    return unit * x.slope * result(x.value, unit);
}

template <class Sentence, class T>
__device__ void fill_arcs(const Sentence& at, T* cells, T value) {
    for (int h = threadIdx.x / 32; h <= at.n; h += blockDim.x / 32) {
        for (int m = 1 + threadIdx.x % 32; m <= at.n; m += 32) {
            if (h != m) cells[(long long)(h)*at.nodes + m] = value;
        }
    }
}

// Zeros wherever there is no arc.
template <class Sentence, class T>
__device__ void fill_padding(const Sentence& at, T* cells) {
    for (int h = threadIdx.x / 32; h < at.nodes; h += blockDim.x / 32) {
        for (int m = threadIdx.x % 32; m < at.nodes; m += 32) {
            if (h > at.n || m == 0 || m > at.n || h == m) cells[(long long)(h)*at.nodes + m] = T(0);
        }
    }
}

// Where the chart of this block's sentences lies.
__device__ __forceinline__ char* chart_memory(char* workspace, long long bytes) {
    SHARED_MEMORY(shared);
    return workspace == nullptr ? shared : workspace + blockIdx.x * bytes;
}

// log Z unless it is null, and unless `cells` is null, what `result` makes of every arc. Numbers that are WIDE take on the
// sentences of `rest`, or all if it is null; others add to `rest` what they leave.
template <class T, class X, bool MULTI, bool WIDE, int PARTS, int SQUARES>
__device__ void sum_trees(const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* log_z, T* cells,
                          int* rest, char* workspace) {
    char* const memory = chart_memory(workspace, eisner_bytes(nodes - 1 + MULTI, PARTS, SQUARES, sizeof(X)));
    const bool chosen = WIDE && rest != nullptr;
    const int count = chosen ? rest[0] : batch;
    for (int turn = blockIdx.x; turn < count; turn += gridDim.x) {
        const long long b = chosen ? rest[1 + turn] : turn;
        const Sentence<T, X, MULTI, PARTS> at(scores, f, b, int(lengths[b]), nodes, memory, SQUARES);
        T* const own = cells == nullptr ? nullptr : cells + b * nodes * nodes;
        Units units{0.0, 1.0};
        double log_sum_of_trees = 0.0;
        if (at.n > 0) {
            units = load(at);
            inside(at);
            const X sum = total(at);
            log_sum_of_trees = log_sum(sum, units);
            const bool found = log_sum_of_trees > -infinity() && log_sum_of_trees < infinity();
            if constexpr (SQUARES == 4) {
                if (found) {
                    outside(at, sum, [&](int h, int m, X x) {
                        own[(long long)(h)*nodes + m] = T(result(x, units.slope));
                    });
                } else {
                    fill_arcs(at, own, T(log_sum_of_trees == log_sum_of_trees ? 0.0 : log_sum_of_trees));
                }
            }
        }
        if constexpr (SQUARES == 4) fill_padding(at, own);
        if (threadIdx.x == 0) {
            if (!WIDE && log_sum_of_trees == infinity()) rest[1 + atomicAdd(rest, 1)] = int(b);
            if (log_z != nullptr) log_z[b] = T(log_sum_of_trees);
        }
        sync_block();
    }
}

// ---- Kernels -------------------------------------------------------------------------------------------------------
//
// Launch with WIDE = false and *rest = 0, then with WIDE = true and the same arguments, but for the workspace. Any number
// of blocks will do for the second: most often there is nothing left. `rest` has 1 + B places, the first their number.

template <bool WIDE>
struct NumberOf {
    using type = double;
    using sloped = Dual<double>;
};
template <>
struct NumberOf<true> {
    using type = Extended<double>;
    using sloped = Sloped<Extended<double>>;
};

// log Z of every sentence; -inf where there is no tree.
// Arguments: scores (B, nodes, nodes), lengths (B,) int64, batch, nodes, log_z (B,), rest (1 + B,) int32, workspace.
template <class T, bool MULTI, bool WIDE, int PARTS>
__global__ void __launch_bounds__(MOST_THREADS)
    eisner_log_partition(const T* scores, const long long* lengths, int batch, int nodes, T* log_z, int* rest,
                         char* workspace) {
    using X = typename NumberOf<WIDE>::type;
    sum_trees<T, X, MULTI, WIDE, PARTS, 3>(scores, nullptr, lengths, batch, nodes, log_z, nullptr, rest, workspace);
}

// log Z and arc marginals; zeros where there is no tree.
// Arguments: scores (B, nodes, nodes), lengths (B,) int64, batch, nodes, log_z (B,), mu (B, nodes, nodes),
//            rest (1 + B,) int32, workspace.
template <class T, bool MULTI, bool WIDE, int PARTS>
__global__ void __launch_bounds__(MOST_THREADS)
    eisner_marginals(const T* scores, const long long* lengths, int batch, int nodes, T* log_z, T* mu, int* rest,
                     char* workspace) {
    using X = typename NumberOf<WIDE>::type;
    sum_trees<T, X, MULTI, WIDE, PARTS, 4>(scores, nullptr, lengths, batch, nodes, log_z, mu, rest, workspace);
}

// Cov(f, 1[arc]) for every arc; zeros where there is no tree.
// Arguments: scores (B, nodes, nodes), f like scores, lengths (B,) int64, batch, nodes, covariance like scores,
//            rest (1 + B,) int32, workspace.
template <class T, bool MULTI, bool WIDE, int PARTS>
__global__ void __launch_bounds__(MOST_THREADS)
    eisner_covariance(const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* covariance,
                      int* rest, char* workspace) {
    using X = typename NumberOf<WIDE>::sloped;
    sum_trees<T, X, MULTI, WIDE, PARTS, 4>(scores, f, lengths, batch, nodes, (T*)(nullptr), covariance, rest, workspace);
}

// ---- The best tree -------------------------------------------------------------------------------------------------

// The first t < count whose a[t] + b[t * stride] is largest, found by a warp.
__device__ __forceinline__ int best_term(const Best* a, const Best* b, int stride, int count) {
    double top = -infinity();
    int where = 0;
    for (int t = threadIdx.x % 32; t < count; t += 32) {
        const double value = a[t].value + b[t * stride].value;
        if (value > top) top = value, where = t;
    }
    for (int k = 16; k > 0; k /= 2) {
        const double value = shuffle(top, (threadIdx.x % 32) ^ k, 32);
        const int other = shuffle(where, (threadIdx.x % 32) ^ k, 32);
        if (value > top || (value == top && other < where)) top = value, where = other;
    }
    return where;
}

// Writes the heads of the best tree, from the widest spans down: one warp, which looks again for the terms it chose.
template <class T, bool MULTI, int PARTS>
__device__ bool follow(const Sentence<T, Best, MULTI, PARTS>& at, long long* heads) {
    constexpr int FIRST = MULTI ? 0 : 1, ARC = 1 << 30, END = 1 << 15;
    const int p = at.p, pitch = at.pitch, lane = threadIdx.x % 32;
    int* const todo = reinterpret_cast<int*>(at.gauge);
    int left = 0;
    // An item is a span, or an arc's span, with its head and its other end. Every lane keeps count; all write the same.
    const auto push = [&](int kind, int h, int e) {
        if (h != e) todo[left++] = kind | h * END | e;
    };
    if constexpr (MULTI) {
        if (at.c[p - 1].value == -infinity()) return false;
        push(0, 0, p - 1);
    } else {
        double top = -infinity();
        int child = p;
        for (int i = lane; i < p; i += 32) {
            const double value = at.root[i].value + at.c[i * pitch].value + at.c[i * pitch + p - 1].value;
            if (value > top) top = value, child = i;
        }
        for (int k = 16; k > 0; k /= 2) {
            const double value = shuffle(top, lane ^ k, 32);
            const int other = shuffle(child, lane ^ k, 32);
            if (value > top || (value == top && other < child)) top = value, child = other;
        }
        if (child == p) return false;
        if (lane == 0) heads[child + 1] = 0;
        push(0, child, 0);
        push(0, child, p - 1);
    }
    while (left > 0) {
        __syncwarp();
        const int item = todo[--left], h = item % ARC / END, e = item % END;
        const int i = h < e ? h : e, j = h < e ? e : h;
        __syncwarp();
        if (item >= ARC) {
            const int k = i + best_term(at.c + i * pitch + i, at.c + j * pitch + i + 1, 1, j - i);
            if (lane == 0) heads[e + FIRST] = h + FIRST;
            push(0, i, k);
            push(0, j, k + 1);
        } else {
            const int x = h < e ? i + 1 : i;
            const int k = x + best_term(at.i + h * pitch + x, at.c + x * pitch + e, pitch, j - i);
            push(ARC, h, k);
            push(0, k, e);
        }
    }
    return true;
}

// Heads of the best tree, -1 in padding and at the root; all -1 where there is no tree. Ties go as on the CPU.
// Arguments: scores (B, nodes, nodes), lengths (B,) int64, batch, nodes < 32768, heads (B, nodes) int64, workspace.
template <class T, bool MULTI, int PARTS>
__global__ void __launch_bounds__(MOST_THREADS)
    eisner_argmax(const T* scores, const long long* lengths, int batch, int nodes, long long* heads, char* workspace) {
    char* const memory = chart_memory(workspace, eisner_bytes(nodes - 1 + MULTI, PARTS, 3, sizeof(Best)));
    for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
        const Sentence<T, Best, MULTI, PARTS> at(scores, nullptr, b, int(lengths[b]), nodes, memory, 3);
        for (int m = threadIdx.x; m < nodes; m += blockDim.x) heads[b * nodes + m] = -1;
        if (at.n > 0) {
            load(at);
            inside(at);
            if (threadIdx.x < 32) follow(at, heads + b * nodes);
        }
        sync_block();
    }
}
