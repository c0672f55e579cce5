// The best projective tree of every sentence, one block of threads: the chart of eisner_chart.cuh with maxima for sums.
//
// Scores are added up as doubles, in the order of `headway.inference.eisner`: the same tree, ties included. The way
// back from the widest span looks again for the terms that it chose, a warp at a time.
//
// Memory, for the largest p, which is nodes - 1, or nodes for multi-root trees, or PLACES if that is not 0:
//     bytes = 24 p P + 48 (p + 1), rounded up to a multiple of 256, with P = p + (PARTS - 1 - p) mod 32
// in shared memory for PLACES > 0; for PLACES = 0 in `workspace`, for each block of the grid. The grid may have any
// number of blocks: each takes every gridDim.x-th sentence. Threads: a multiple of 32, at most MOST_THREADS, about p
// PARTS or half of that.
//
// O(n^3) work: 0.5 n^3 sums of two cells, from shared memory, whose bandwidth decides.

#include "eisner_chart.cuh"

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
template <class Chart>
__device__ void follow(const Chart& at, long long* heads) {
    constexpr int FIRST = Chart::FIRST, ARC = 1 << 30, END = 1 << 15;
    const int p = at.p, pitch = at.pitch(), lane = threadIdx.x % 32;
    int* const todo = reinterpret_cast<int*>(at.gauge);
    int left = 0;
    // An item is a span, or an arc's span, with its head and its other end. Every lane keeps count; all write the same.
    const auto push = [&](int kind, int h, int e) {
        if (h != e) todo[left++] = kind | h * END | e;
    };
    if constexpr (Chart::MULTI) {
        if (at.c[p - 1].value == -infinity()) return;
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
        if (child == p) return;
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
            const int k = x + best_term(at.i() + h * pitch + x, at.c + x * pitch + e, pitch, j - i);
            push(ARC, h, k);
            push(0, k, e);
        }
    }
}

// Heads of the best tree, -1 in padding and at the root; all -1 where there is no tree. Ties go as on the CPU.
// Arguments: scores (B, nodes, nodes), lengths (B,) int64, batch, nodes < 32768, heads (B, nodes) int64, workspace.
template <class T, bool MULTI, int PLACES, int PARTS>
__global__ void __launch_bounds__(MOST_THREADS, 1)
    eisner_argmax(const T* scores, const long long* lengths, int batch, int nodes, long long* heads, char* workspace) {
    const long long bytes = eisner_bytes(nodes - 1 + MULTI, PARTS, 3 * sizeof(Best));
    each_sentence<PLACES>(batch, {nullptr, nullptr}, workspace, bytes, [&](long long b, char* memory) {
        const Chart<T, Best, MULTI, PLACES, PARTS> at(
            scores + b * nodes * nodes, nullptr, int(lengths[b]), nodes, memory, 3
        );
        for (int m = threadIdx.x; m < nodes; m += blockDim.x) heads[b * nodes + m] = -1;
        if (at.n == 0) return;
        load(at);
        inside(at);
        if (threadIdx.x < 32) follow(at, heads + b * nodes);
    });
}
