// Projective trees of a batch: log Z, marginals and covariances, one block of threads a sentence.
//
// The chart and its numbers are in eisner_chart.cuh. The outside pass has the same sums, from wide spans to narrow,
// with the derivatives of log Z: O[h, e] by C[h, e], and D[i, j] by Q[i, j] (and its mirror image, D[j, i]); the
// posterior of an arc is I times the derivative by I. O takes the place of W. Marginals are gathered in shared memory
// and written row by row, but not in a packed chart: there they are written at once, and D, which is symmetric, takes a
// triangle. So 128 words of float numbers have room in the 227 KB of a multiprocessor.
//
// X is float, double or Extended<double>; for covariances Dual<double> or Sloped<Extended<double>>. A kernel with float
// or double numbers leaves the sentences that they do not hold to the next: `rest[0]` counts them, from 0, and their
// numbers follow. It takes those in `which`, a list of the same form, or all if that is null, and leaves it empty; `done`
// is a count of blocks, 0 between kernels. Extended numbers hold all.
//
// Memory, for the largest p, which is nodes - 1, or nodes for multi-root trees, or PLACES if that is not 0:
//     bytes = p P cell + 48 (p + 1), rounded up to a multiple of 256, with P = p + (PARTS - 1 - p) mod 32
//     cell  = 3 size(X) for log Z, 4 size(X) + size(T) for marginals and covariances
//     size  = 4, 8, 16 for float, double, Extended; 16, 24 for Dual<double>, Sloped
// or eisner_packed_bytes(PLACES, PARTS, MULTI) if PACKED,
// in shared memory for PLACES > 0; for PLACES = 0 in `workspace`, for each block of the grid. The grid may have any
// number of blocks: each takes every gridDim.x-th sentence. Threads: a multiple of 32, at most MOST_THREADS, about p
// PARTS or half of that. For 32 words PARTS = 2 and 64 threads.
//
// O(n^3) work: 0.5 n^3 products for log Z, 1.5 n^3 with marginals, of two cells each. With B = 4096, n = 32 and float
// that is 1.6 GB through shared memory, for 36 MB through the device's: 55 us at 132 multiprocessors x 128 bytes a
// cycle, seven times the device memory's 8 us, and 90 us with the lanes that have no span of their own. Only register
// tiles could change that, and the spans of 32 words are too few for them.

#include "eisner_chart.cuh"

__device__ __forceinline__ Extended<double> inverse_of(Extended<double> x) {
    return Arithmetic<Extended<double>>::inverse(x);
}
__device__ __forceinline__ Sloped<Extended<double>> inverse_of(Sloped<Extended<double>> x) {
    return Arithmetic<Sloped<Extended<double>>>::inverse(x);
}

// The sum over all trees; every thread has it.
template <class Chart>
__device__ typename Chart::Root total(const Chart& at) {
    using A = Arithmetic<typename Chart::Root>;
    const int pitch = at.pitch(), last = at.p - 1;
    if constexpr (Chart::MULTI) return widened(at.c[last]);
    auto sum = A::zero();
    for (int i = threadIdx.x % 32; i < at.p; i += 32) {
        sum = A::fma(A::mul(at.root[i], widened(at.c[i * pitch])), widened(at.c[i * pitch + last]), sum);
    }
    return sum_of_parts<32>(sum);
}

// Fills O and D, widest spans first, and calls store(head, modifier, posterior) for every arc between places, and
// store_root(modifier, posterior) for those from a root that has no place.
template <class Chart, class Store, class StoreRoot>
__device__ void outside(const Chart& at, typename Chart::Root sum, Store store, StoreRoot store_root) {
    using X = typename Chart::X;
    using A = Arithmetic<X>;
    using R = Arithmetic<typename Chart::Root>;
    constexpr int PARTS = Chart::PARTS, FIRST = Chart::FIRST;
    const int p = at.p, pitch = at.pitch(), part = threadIdx.x % PARTS, last = p - 1;
    const X *const c = at.c, *const arcs = at.i(), *const w = at.w();
    const auto square = at.square();
    X *const o = at.w(), *const d = o + square, *const packed = reinterpret_cast<X*>(at.after);
    const auto inverse = inverse_of(sum);
    if constexpr (!Chart::MULTI) {
        sync_block();  // all have read the root's weights
        for (int i = threadIdx.x; i < p; i += blockDim.x) {
            const auto share = R::mul(at.root[i], inverse);
            const auto left = widened(c[i * pitch]), right = widened(c[i * pitch + last]);
            at.root[i] = R::mul(share, left);
            at.left[i] = narrowed(R::mul(share, right), X());
            store_root(i + 1, R::mul(R::mul(share, left), right));
        }
        sync_block();
    }
    for (int width = last; width > 0; --width) {
        for (int first = 0; warp_has_spans<PARTS>(first, p - width); first += blockDim.x / PARTS) {
            const int i = first + threadIdx.x / PARTS, j = i + width;
            const bool mine = j < p;
            X right = A::zero(), left = A::zero(), by_right_arc = A::zero(), by_left_arc = A::zero();
            if (mine) {
                // The wider spans: first those that begin at r < i and end at j, then those from i to r > j.
                //     C[r, j] has I[r, i] C[i, j],    Q[r, j] has C[r, i - 1] C[j, i],   C[j, r] has I[j, i] C[i, r]
                //     C[r, i] has I[r, j] C[j, i],    Q[i, r] has C[i, j] C[r, j + 1],   C[i, r] has I[i, j] C[j, r]
                // With (u, v) = (j, i), then (i, j), that is O[r, u] I[r, v], D[r, u] C[r, v -+ 1], O[u, r] C[v, r].
                // `far` is of C[i, j] at first and `inner` of C[j, i]; from the one to the other they change places.
                const bool leftwards = part < i;
                const int r = leftwards ? part : part + width + 1, u = leftwards ? j : i, v = leftwards ? i : j;
                const X *wider = o + r * pitch + u, *arc = arcs + r * pitch + v, *own = o + u * pitch + r;
                const X *beyond = c + r * pitch + (leftwards ? v - 1 : v + 1), *rest = c + v * pitch + r;
                X far = A::zero(), inner = A::zero(), by_arc = A::zero();
                const int turn = leftwards ? i - 1 - (i - 1 - part) % PARTS : -1;
                // In the triangle, D[r, j] is one row, and D[i, r] a column, whose cells are farther and farther apart.
                const X* span = packed + (leftwards ? triangle_row(j) + r : triangle_row(r) + i);
                int step = leftwards ? PARTS : triangle_row(r + PARTS) - triangle_row(r);
                int bend = leftwards ? 0 : PARTS * PARTS;
#pragma unroll 4
                for (int s = part; s < last - width; s += PARTS) {
                    far = accumulated(wider[0], arc[0], far);
                    inner = accumulated(Chart::PACKED ? span[0] : wider[square], beyond[0], inner);
                    by_arc = accumulated(own[0], rest[0], by_arc);
                    wider += PARTS * pitch, arc += PARTS * pitch, beyond += PARTS * pitch, own += PARTS, rest += PARTS;
                    span += step, step += bend;
                    if (s == turn) {
                        const int rows = (width + 1) * pitch;
                        wider += rows - width, arc += rows + width, beyond += rows + width + 2;
                        own += width + 1 - width * pitch, rest += width + 1 + width * pitch;
                        right = far, far = inner, inner = right;
                        by_left_arc = by_arc, by_arc = A::zero();
                        const int next = s + PARTS + width + 1;
                        span = packed + triangle_row(next) + i;
                        step = triangle_row(next + PARTS) - triangle_row(next), bend = PARTS * PARTS;
                    }
                }
                right = inner, left = far, by_right_arc = by_arc;
            }
            right = sum_of_parts<PARTS>(right);
            left = sum_of_parts<PARTS>(left);
            by_right_arc = sum_of_parts<PARTS>(by_right_arc);
            by_left_arc = sum_of_parts<PARTS>(by_left_arc);
            if (mine && part == 0) {
                const int ij = i * pitch + j, ji = j * pitch + i;
                if constexpr (Chart::MULTI) {
                    if (width == last) right = A::add(right, narrowed(inverse, X()));
                } else {
                    if (j == last) right = A::add(right, narrowed(at.root[i], X()));
                    if (i == 0) left = A::add(left, at.left[j]);
                }
                by_right_arc = A::add(right, by_right_arc);
                by_left_arc = A::add(left, by_left_arc);
                const X by_span = A::add(A::mul(by_right_arc, w[ij]), A::mul(by_left_arc, w[ji]));
                if constexpr (!Chart::PACKED) {
                    d[ij] = d[ji] = by_span;
                } else if (width > 1) {
                    packed[triangle_row(j) + i] = by_span;
                }
                o[ij] = right;
                o[ji] = left;
                store(i + FIRST, j + FIRST, A::mul(by_right_arc, arcs[ij]));
                if (i + FIRST > 0) store(j + FIRST, i + FIRST, A::mul(by_left_arc, arcs[ji]));
            }
        }
        sync_block();
    }
}

// ---- Results -------------------------------------------------------------------------------------------------------

// log Z. +inf where the numbers do not hold it, or may not, -inf where there is no tree.
template <class X>
__device__ double log_sum(double z, const Units& units, const Range<Real<X>>& range) {
    using Holds = Limits<Real<X>>;
    const bool complete = !any_thread(range.smallest < Holds::FLOOR || range.largest > Holds::CEILING);
    const bool large = units.slack <= Holds::SLACK && z * exp(-units.slack) >= Holds::SMALLEST;
    return z > 0.0 && (complete || large) ? log(z) + units.log_weight : infinity();
}
template <class X>
__device__ double log_sum(Dual<double> z, const Units& units, const Range<Real<X>>& range) {
    return log_sum<X>(z.value, units, range);
}
template <class X>
__device__ double log_sum(Extended<double> z, const Units&, const Range<Real<X>>&) {
    return z.e < FORBIDDEN_EXPONENT / 2 ? -infinity() : log(z.m) + double(z.e) * LN_2;
}
template <class X>
__device__ double log_sum(Sloped<Extended<double>> z, const Units& units, const Range<Real<X>>& range) {
    return log_sum<X>(z.value, units, range);
}

// An arc's probability, or its derivative where there are slopes.
__device__ __forceinline__ double result(double x, double) { return x; }
__device__ __forceinline__ float result(float x, double) { return x; }
template <class T>
__device__ __forceinline__ double result(Dual<T> x, double unit) {
    return unit * double(x.slope);
}
__device__ __forceinline__ double result(Extended<double> x, double) {
    return x.e > 0 ? 1.0 : x.m * power_of_two<double>(x.e);
}
__device__ __forceinline__ double result(Sloped<Extended<double>> x, double unit) {
    return unit * x.slope * result(x.value, unit);
}

// Writes value(h, m) for the arcs of a sentence from head `first` on, and zeros wherever there is no arc.
template <class Chart, class T, class Value>
__device__ void write(const Chart& at, T* cells, int first, Value value) {
    for (int h = threadIdx.x; h < at.nodes; h += blockDim.x) cells[(long long)(h)*at.nodes] = T(0);
    for (int m = 1 + threadIdx.x % 32; m < at.nodes; m += 32) {
#pragma unroll 4
        for (int h = threadIdx.x / 32; h < at.nodes; h += blockDim.x / 32) {
            const bool is_arc = h <= at.n && m <= at.n && h != m;
            if (!is_arc || h >= first) cells[(long long)(h)*at.nodes + m] = is_arc ? value(h, m) : T(0);
        }
    }
}

// log Z of every sentence; -inf where there is no tree.
// Arguments: scores (B, nodes, nodes), lengths (B,) int64, batch, nodes, log_z (B,), which (1 + B,) int32, done,
//            rest (1 + B,) int32, workspace.
template <class T, class X, bool MULTI, int PLACES, int PARTS>
__global__ void __launch_bounds__(MOST_THREADS, 1)
    eisner_log_partition(const T* scores, const long long* lengths, int batch, int nodes, T* log_z, int* which,
                         int* done, int* rest, char* workspace) {
    const long long bytes = eisner_bytes(nodes - 1 + MULTI, PARTS, 3 * sizeof(X));
    each_sentence<PLACES>(batch, {which, done}, workspace, bytes, [&](long long b, char* memory) {
        const Chart<T, X, MULTI, PLACES, PARTS> at(
            scores + b * nodes * nodes, nullptr, int(lengths[b]), nodes, memory, 3
        );
        double sum = 0.0;
        if (at.n > 0) {
            const Units units = load(at);
            const auto range = inside(at);
            sum = log_sum<X>(total(at), units, range);
        }
        if (threadIdx.x > 0) return;
        if (sum == infinity()) rest[1 + atomicAdd(rest, 1)] = int(b);
        log_z[b] = T(sum);
    });
}

// log Z, unless it is null, and arc marginals, or where X has slopes Cov(f, 1[arc]); zeros where there is no tree.
// Arguments: scores (B, nodes, nodes), f like scores or null, lengths (B,) int64, batch, nodes, log_z (B,),
//            mu like scores, which (1 + B,) int32, done, rest (1 + B,) int32, workspace.
template <class T, class X, bool MULTI, int PLACES, int PARTS, bool PACKED = false>
__global__ void __launch_bounds__(MOST_THREADS, 1)
    eisner_marginals(const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* log_z, T* mu,
                     int* which, int* done, int* rest, char* workspace) {
    constexpr int CELL = 4 * sizeof(X) + sizeof(T);
    const long long bytes = eisner_bytes(nodes - 1 + MULTI, PARTS, CELL), cells = (long long)(nodes)*nodes;
    each_sentence<PLACES>(batch, {which, done}, workspace, bytes, [&](long long b, char* memory) {
        const Chart<T, X, MULTI, PLACES, PARTS, PACKED> at(
            scores + b * cells, f + (f == nullptr ? 0 : b * cells), int(lengths[b]), nodes, memory, PACKED ? 3 : 4
        );
        T *const own = mu + b * cells, *const gathered = reinterpret_cast<T*>(at.after);
        const int pitch = at.pitch();
        const auto place = [&](int h, int m) -> T& {
            return PACKED ? own[h * nodes + m] : gathered[(h - at.FIRST) * pitch + m - at.FIRST];
        };
        double sum = 0.0;
        if (at.n > 0) {
            const Units units = load(at);
            const auto range = inside(at);
            const auto z = total(at);
            sum = log_sum<X>(z, units, range);
            if (sum > -infinity() && sum < infinity()) {
                outside(
                    at, z, [&](int h, int m, X x) { place(h, m) = T(result(x, units.slope)); },
                    [&](int m, typename Wider<X>::type x) { own[m] = T(result(x, units.slope)); }
                );
                write(at, own, PACKED ? nodes : at.FIRST, place);  // all heads below that are written already
            }
        }
        if (at.n == 0 || sum == -infinity() || sum != sum) {
            write(at, own, 0, [&](int, int) { return sum == sum ? T(0) : T(sum); });
        }
        if (threadIdx.x > 0) return;
        if (sum == infinity()) rest[1 + atomicAdd(rest, 1)] = int(b);
        if (log_z != nullptr) log_z[b] = T(sum);
    });
}
