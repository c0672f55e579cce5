// The numbers that sums over trees are made of. One algorithm serves all of them.
//
//   float, double   weights as they are, where no product of two leaves their range
//   Dual<T>         a weight and its derivative in some direction
//   Extended<T>     m 2^e with an exponent of 64 bits: the same relative accuracy at any scale. A forbidden arc is not
//                   zero but FORBIDDEN, smaller than any product of weights that are not: so nothing is ever divided by
//                   zero, and sums lose such terms as they lose any term that is too small
//   Sloped<X>       a number and its logarithmic derivative in some direction, which is a mean of bounded numbers

#pragma once

#ifndef HEADWAY_ON_CPU
// Named barriers let the groups of one block wait for their own threads only.
__device__ __forceinline__ void sync_named(int name, int count) {
    asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(count) : "memory");
}
#define SHARED_MEMORY(name) extern __shared__ __align__(16) char name[]

// A kernel that reads a list may be launched while the one before it ends, and waits for that here.
__device__ __forceinline__ void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// 1 / x and 2^x in one instruction each, within two units of the last bit; subnormal numbers count as zero.
__device__ __forceinline__ float quick_inverse(float x) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
__device__ __forceinline__ float quick_exp2(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
#endif

// Sentences that one kernel leaves to the next: which[0] of them, their numbers behind it; null for all of a batch. The
// kernel that reads a list empties it: the last of its blocks to finish, by the count `done`, which ends as it began.
struct List {
    int* which;
    int* done;
    __device__ __forceinline__ int count(int batch) const {
        if (!which) return batch;
        wait_for_kernel_before();
        return which[0];
    }
    __device__ __forceinline__ int number(int i) const { return which ? which[1 + i] : i; }
    __device__ __forceinline__ void empty(int count) const {
        if (!which || count == 0) return;
        __syncthreads();
        if (threadIdx.x > 0 || atomicAdd(done, 1) < int(gridDim.x) - 1) return;
        which[0] = 0;
        *done = 0;
    }
};

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr double LOG2_E = 1.4426950408889634, LN_2 = 0.6931471805599453, LN_2_REST = 2.3190468138462996e-17;
constexpr double LARGEST_LOG = 5e11;  // of a weight, in nats; lower ones are as good as this
constexpr long long FORBIDDEN_EXPONENT = -(1LL << 50);
constexpr long long ZERO_EXPONENT = -(1LL << 60);

template <class T>
struct Bits;
template <>
struct Bits<float> {
    static constexpr int MANTISSA = 23, BIAS = 127;
    using Whole = int;
    static __device__ __forceinline__ Whole of(float x) { return __float_as_int(x); }
    static __device__ __forceinline__ float from(Whole bits) { return __int_as_float(bits); }
};
template <>
struct Bits<double> {
    static constexpr int MANTISSA = 52, BIAS = 1023;
    using Whole = long long;
    static __device__ __forceinline__ Whole of(double x) { return __double_as_longlong(x); }
    static __device__ __forceinline__ double from(Whole bits) { return __longlong_as_double(bits); }
};

// 2^k, and 0 where that is too small to matter; k <= 0.
template <class T>
__device__ __forceinline__ T power_of_two(long long k) {
    using Whole = typename Bits<T>::Whole;
    return k < -100 ? T(0) : Bits<T>::from(Whole(k + Bits<T>::BIAS) << Bits<T>::MANTISSA);
}

template <class T>
struct Extended {
    T m;  // in [1, 2), or 0
    long long e;
};

template <class X>
struct Sloped;

template <class T>
struct Dual {
    T value, slope;
    Dual() = default;
    __device__ __forceinline__ constexpr Dual(T value, T slope = T(0)) : value(value), slope(slope) {}
};
template <class T>
__device__ __forceinline__ Dual<T> operator+(Dual<T> a, Dual<T> b) {
    return {a.value + b.value, a.slope + b.slope};
}
template <class T>
__device__ __forceinline__ Dual<T> operator*(Dual<T> a, Dual<T> b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
}
template <class T>
__device__ __forceinline__ void operator+=(Dual<T>& a, Dual<T> b) {
    a = a + b;
}
template <class T>
__device__ __forceinline__ void operator*=(Dual<T>& a, Dual<T> b) {
    a = a * b;
}

template <class X>
struct RealOf {
    using type = X;
};
template <class T>
struct RealOf<Extended<T>> {
    using type = T;
};
template <class T>
struct RealOf<Dual<T>> {
    using type = T;
};
template <class X>
struct RealOf<Sloped<X>> {
    using type = typename RealOf<X>::type;
};
template <class X>
using Real = typename RealOf<X>::type;

template <class X>
struct Sloped {
    X value;
    Real<X> slope;
};

// m 2^e with m in [1, 2); zero and nan stay. Written without a branch, after which shuffles would be slow.
template <class T>
__device__ __forceinline__ Extended<T> normal(T m, long long e) {
    using Whole = typename Bits<T>::Whole;
    const bool regular = m > T(0);
    const Whole bits = Bits<T>::of(m);
    const int k = int(bits >> Bits<T>::MANTISSA) - Bits<T>::BIAS;  // m is not subnormal
    const T scaled = Bits<T>::from(bits - (Whole(k) << Bits<T>::MANTISSA));
    return {regular ? scaled : m, regular ? e + k : m == T(0) ? ZERO_EXPONENT : 0};
}

// exp(score); -inf and what is below -LARGEST_LOG are forbidden. What is above, and nan, is nan.
template <class T>
__device__ __forceinline__ Extended<T> extended_exp(double score) {
    if (score < -LARGEST_LOG) return {T(1), FORBIDDEN_EXPONENT};
    if (!(score <= LARGEST_LOG)) return {T(0.0 / 0.0), 0};
    const double k = rint(score * LOG2_E);
    const double rest = fma(-k, LN_2_REST, fma(-k, LN_2, score));
    return normal(T(exp(rest)), (long long)(k));
}

template <class X>
struct Arithmetic {  // float and double
    static __device__ __forceinline__ X zero() { return X(0); }
    static __device__ __forceinline__ X one() { return X(1); }
    static __device__ __forceinline__ X add(X a, X b) { return a + b; }
    static __device__ __forceinline__ X mul(X a, X b) { return a * b; }
    static __device__ __forceinline__ X fma(X a, X b, X c) { return a * b + c; }
    static __device__ __forceinline__ X inverse(X a) { return X(1) / a; }
    static __device__ __forceinline__ X ratio(X a, X b) { return a / b; }
};

template <class T>
struct Arithmetic<Extended<T>> {
    using X = Extended<T>;
    static __device__ __forceinline__ X zero() { return {T(0), ZERO_EXPONENT}; }
    static __device__ __forceinline__ X one() { return {T(1), 0}; }
    static __device__ __forceinline__ X add(X a, X b) {
        const long long shift = a.e - b.e;
        const T m = shift >= 0 ? a.m + b.m * power_of_two<T>(-shift) : a.m * power_of_two<T>(shift) + b.m;
        return normal(m, shift >= 0 ? a.e : b.e);
    }
    static __device__ __forceinline__ X mul(X a, X b) { return normal(a.m * b.m, a.e + b.e); }
    static __device__ __forceinline__ X fma(X a, X b, X c) { return add(mul(a, b), c); }
    static __device__ __forceinline__ X inverse(X a) { return normal(T(1) / a.m, -a.e); }
    static __device__ __forceinline__ T ratio(X a, X b) {  // a <= b
        return a.m == T(0) ? T(0) : a.m / b.m * power_of_two<T>(a.e - b.e);
    }
};

template <class V>
struct Arithmetic<Sloped<V>> {
    using X = Sloped<V>;
    using T = Real<V>;
    using Values = Arithmetic<V>;
    static __device__ __forceinline__ X zero() { return {Values::zero(), T(0)}; }
    static __device__ __forceinline__ X one() { return {Values::one(), T(0)}; }
    static __device__ __forceinline__ X add(X a, X b) {
        const V sum = Values::add(a.value, b.value);
        // The larger term's slope moves towards the other's: neither is multiplied by more than a share.
        const T share_a = Values::ratio(a.value, sum), share_b = Values::ratio(b.value, sum);
        const T slope = share_a > share_b ? a.slope + share_b * (b.slope - a.slope)
                                          : b.slope + share_a * (a.slope - b.slope);
        return {sum, slope};
    }
    static __device__ __forceinline__ X mul(X a, X b) { return {Values::mul(a.value, b.value), a.slope + b.slope}; }
    static __device__ __forceinline__ X fma(X a, X b, X c) { return add(mul(a, b), c); }
    static __device__ __forceinline__ X inverse(X a) { return {Values::inverse(a.value), -a.slope}; }
    static __device__ __forceinline__ T ratio(X a, X b) { return Values::ratio(a.value, b.value); }
};

// The number without its slope, and the last thing that is known of it: its slope if it has one.
template <class X>
__device__ __forceinline__ X value_of(X x) {
    return x;
}
template <class T>
__device__ __forceinline__ T value_of(Dual<T> x) {
    return x.value;
}
template <class X>
__device__ __forceinline__ X last_of(X x) {
    return x;
}
template <class T>
__device__ __forceinline__ T last_of(Dual<T> x) {
    return x.slope;
}
template <class X>
__device__ __forceinline__ X value_of(Sloped<X> x) {
    return x.value;
}

__device__ __forceinline__ float inverse_of(float x) { return quick_inverse(x); }
__device__ __forceinline__ double inverse_of(double x) { return 1.0 / x; }
template <class T>
__device__ __forceinline__ Dual<T> inverse_of(Dual<T> x) {
    const T inverse = inverse_of(x.value);
    return {inverse, -x.slope * inverse * inverse};
}

// From the lane `source` of each `width` lanes, and from the lane whose number differs in the bits of `other`.
template <class T>
__device__ __forceinline__ T shuffle(T x, int source, int width) {
    return __shfl_sync(ALL_LANES, x, source, width);
}
template <class T>
__device__ __forceinline__ Extended<T> shuffle(Extended<T> x, int source, int width) {
    return {shuffle(x.m, source, width), shuffle(x.e, source, width)};
}
template <class T>
__device__ __forceinline__ Dual<T> shuffle(Dual<T> x, int source, int width) {
    return {shuffle(x.value, source, width), shuffle(x.slope, source, width)};
}
template <class X>
__device__ __forceinline__ Sloped<X> shuffle(Sloped<X> x, int source, int width) {
    return {shuffle(x.value, source, width), shuffle(x.slope, source, width)};
}
template <class T>
__device__ __forceinline__ T shuffle_xor(T x, int other) {
    return __shfl_xor_sync(ALL_LANES, x, other);
}
template <class T>
__device__ __forceinline__ Dual<T> shuffle_xor(Dual<T> x, int other) {
    return {shuffle_xor(x.value, other), shuffle_xor(x.slope, other)};
}
