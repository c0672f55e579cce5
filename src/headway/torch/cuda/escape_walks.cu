// Non-projective trees at any scale and of any length: kernels around `walks.cuh`.
//
// This is for sentences with forbidden arcs or weights far apart, for derivatives (Sloped numbers), and for sentences
// longer than registers hold (`matrix_tree.cu` has those).
//
// Shapes as in `matrix_tree.cu`; n is anything. A block needs walk_numbers(nodes - 1) numbers, in shared memory where
// `workspace` is null, else there, for each block. Sentences are those of a list, which is empty afterwards, or all.

#include "walks.cuh"

template <class X, class T, bool MULTI>
__device__ void all_walks(
    const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* log_z, T* mu, T* slope, List which,
    char* shared, char* workspace
) {
    const long long cells = (long long)nodes * nodes;
    const long long bytes = walks::walk_numbers(nodes - 1) * (long long)sizeof(X);
    X* space = reinterpret_cast<X*>(workspace ? workspace + blockIdx.x * bytes : shared);
    const int count = which.count(batch);
    for (int i = blockIdx.x; i < count; i += gridDim.x) {
        const long long b = which.number(i);
        walks::walk_sentence<X, T, MULTI>(
            scores + b * cells, f ? f + b * cells : nullptr, int(lengths[b]), nodes, log_z ? log_z + b : nullptr,
            mu ? mu + b * cells : nullptr, slope ? slope + b * cells : nullptr, space
        );
    }
    which.empty(count);
}

// log Z and marginals; mu may be null.
template <class T, bool MULTI>
__global__ void __launch_bounds__(128) escape_walks_marginals(
    const T* scores, const long long* lengths, int batch, int nodes, T* log_z, T* mu, int* which, int* done, char* workspace
) {
    SHARED_MEMORY(shared);
    all_walks<Extended<T>, T, MULTI>(
        scores, nullptr, lengths, batch, nodes, log_z, mu, nullptr, {which, done}, shared, workspace
    );
}

// Cov(f, 1[arc]) for every arc: the derivative of the marginals in the direction f.
template <class T, bool MULTI>
__global__ void __launch_bounds__(128) escape_walks_covariance(
    const T* scores, const T* f, const long long* lengths, int batch, int nodes, T* covariance, int* which, int* done,
    char* workspace
) {
    SHARED_MEMORY(shared);
    all_walks<Sloped<Extended<T>>, T, MULTI>(
        scores, f, lengths, batch, nodes, nullptr, nullptr, covariance, {which, done}, shared, workspace
    );
}
