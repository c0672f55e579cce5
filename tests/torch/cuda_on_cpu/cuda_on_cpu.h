// CUDA kernels run on the CPU, so that their own source is tested where there is no GPU.
//
// Every thread of a block is a fibre of one system thread. A fibre runs until it meets a barrier, where the next one
// goes on; the values of a shuffle are exchanged between two barriers of its warp. Blocks run one after the other.
// All lanes of a warp must take part in a shuffle, as the kernels of Headway see to.
//
// Between barriers the threads run one after the other, and a warp runs as far as it can before the next: forwards in
// one block, backwards in the next. A kernel that lacks a barrier goes wrong in one of the two: tests run a sentence in
// blocks of both kinds.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <math.h>
#include <memory>
#include <ucontext.h>
#include <vector>

#define HEADWAY_ON_CPU 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__

struct Dim3 {
    unsigned x = 1, y = 1, z = 1;
};

namespace cuda_on_cpu {

constexpr int WARP = 32;
constexpr size_t STACK = 1 << 19;
constexpr size_t GUARD = 4096;  // bytes after the shared memory, which nobody may write

struct Barrier {
    int arrived = 0;
    long generation = 0;
};

struct Fibre {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK]};
    bool done = false;
    int thread = 0;
};

inline Dim3 block_dim, grid_dim, block_index, thread_index;
inline std::vector<Fibre> fibres;
inline ucontext_t scheduler;
inline int current = 0;
inline std::vector<Barrier> warp_barriers;
inline Barrier named[16];
inline std::vector<std::array<char, 64>> slots;
inline std::vector<char> shared_memory;
inline std::function<void()> body;
inline long events = 0;  // barriers opened and threads that ended

inline void pause() {
    swapcontext(&fibres[current].context, &scheduler);
    thread_index.x = fibres[current].thread;
}

inline void wait(Barrier& barrier, int count) {
    const long generation = barrier.generation;
    if (++barrier.arrived == count) {
        barrier.arrived = 0;
        ++barrier.generation;
        ++events;
        return;
    }
    while (barrier.generation == generation) pause();
}

inline int warp_size() {
    const int first = current / WARP * WARP;
    return std::min<int>(WARP, block_dim.x - first);
}

inline void sync_warp() { wait(warp_barriers[current / WARP], warp_size()); }

template <class X>
X exchange(X value, int source) {
    static_assert(sizeof(X) <= 64);
    std::memcpy(slots[current].data(), &value, sizeof(X));
    sync_warp();
    X found;
    std::memcpy(&found, slots[current / WARP * WARP + source].data(), sizeof(X));
    sync_warp();
    return found;
}

inline void run_fibre() {
    body();
    fibres[current].done = true;
    ++events;
    swapcontext(&fibres[current].context, &scheduler);
}

// Run one warp until its threads have ended or wait for others. True if there is more to do.
inline bool run_warp(int warp, bool backwards) {
    const int first = warp * WARP, lanes = std::min<int>(WARP, block_dim.x - first);
    bool alive = false;
    for (long before = -1; before != events;) {
        before = events;
        alive = false;
        for (int turn = 0; turn < lanes; ++turn) {
            current = first + (backwards ? lanes - 1 - turn : turn);
            if (fibres[current].done) continue;
            alive = true;
            thread_index.x = current;
            swapcontext(&scheduler, &fibres[current].context);
        }
    }
    return alive;
}

// Run kernel(arguments...) on a grid of `blocks` blocks of `threads` threads with `bytes` of shared memory.
template <class Kernel, class... Arguments>
void launch(Kernel kernel, int blocks, int threads, size_t bytes, Arguments... arguments) {
    block_dim.x = threads;
    grid_dim.x = blocks;
    fibres.resize(threads);
    slots.resize(threads);
    for (int block = 0; block < blocks; ++block) {
        block_index.x = block;
        shared_memory.assign(bytes + GUARD, char(0xff));  // nan wherever nothing was written
        warp_barriers.assign((threads + WARP - 1) / WARP, Barrier{});
        for (Barrier& barrier : named) barrier = Barrier{};
        body = [=] { kernel(arguments...); };
        for (int t = 0; t < threads; ++t) {
            Fibre& fibre = fibres[t];
            fibre.done = false;
            fibre.thread = t;
            getcontext(&fibre.context);
            fibre.context.uc_stack.ss_sp = fibre.stack.get();
            fibre.context.uc_stack.ss_size = STACK;
            fibre.context.uc_link = &scheduler;
            makecontext(&fibre.context, run_fibre, 0);
        }
        const int warps = (threads + WARP - 1) / WARP;
        for (bool alive = true; alive;) {
            alive = false;
            const long before = events;
            for (int turn = 0; turn < warps; ++turn) {
                alive |= run_warp(block % 2 == 0 ? turn : warps - 1 - turn, block % 2 == 1);
            }
            if (alive && events == before) {
                std::fprintf(stderr, "cuda_on_cpu: all threads of block %d wait\n", block);
                std::abort();
            }
        }
        if (std::any_of(shared_memory.end() - GUARD, shared_memory.end(), [](char byte) { return byte != char(0xff); })) {
            std::fprintf(stderr, "cuda_on_cpu: block %d wrote beyond its shared memory\n", block);
            std::abort();
        }
    }
}

}  // namespace cuda_on_cpu

#define threadIdx cuda_on_cpu::thread_index
#define blockIdx cuda_on_cpu::block_index
#define blockDim cuda_on_cpu::block_dim
#define gridDim cuda_on_cpu::grid_dim
#define SHARED_MEMORY(name) char* name = cuda_on_cpu::shared_memory.data()

inline void __syncthreads() { cuda_on_cpu::wait(cuda_on_cpu::named[0], blockDim.x); }
inline void __syncwarp(unsigned = ~0u) { cuda_on_cpu::sync_warp(); }
inline void sync_named(int name, int count) { cuda_on_cpu::wait(cuda_on_cpu::named[name], count); }

template <class X>
X __shfl_sync(unsigned, X value, int source, int width = 32) {
    const int lane = threadIdx.x % 32;
    return cuda_on_cpu::exchange(value, lane / width * width + source % width);
}
template <class X>
X __shfl_xor_sync(unsigned, X value, int other, int width = 32) {
    const int lane = threadIdx.x % 32;
    (void)width;
    return cuda_on_cpu::exchange(value, lane ^ other);
}
template <class X>
X __shfl_down_sync(unsigned, X value, int distance, int width = 32) {
    const int lane = threadIdx.x % 32;
    return cuda_on_cpu::exchange(value, lane % width + distance < width ? lane + distance : lane);
}
inline unsigned __ballot_sync(unsigned, int predicate) {
    unsigned votes = 0;
    for (int lane = 0; lane < 32; ++lane) votes |= unsigned(cuda_on_cpu::exchange(predicate != 0, lane)) << lane;
    return votes;
}
inline int __any_sync(unsigned, int predicate) { return __ballot_sync(~0u, predicate) != 0; }
inline int __reduce_max_sync(unsigned, int value) {
    for (int k = 16; k > 0; k /= 2) value = std::max(value, __shfl_xor_sync(~0u, value, k));
    return value;
}
inline int __syncthreads_or(int predicate) {
    cuda_on_cpu::slots[cuda_on_cpu::current][0] = predicate != 0;
    __syncthreads();
    bool any = false;
    for (const auto& slot : cuda_on_cpu::slots) any |= slot[0] != 0;
    __syncthreads();
    return any;
}
inline int __syncthreads_and(int predicate) { return !__syncthreads_or(!predicate); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }

template <class X>
X atomicAdd(X* place, X value) {
    const X before = *place;
    *place += value;
    return before;
}
inline float __int_as_float(int bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
inline float __expf(float x) { return std::exp(x); }
inline void wait_for_kernel_before() {}
inline float quick_inverse(float x) { return 1.0f / x; }
inline float quick_exp2(float x) { return std::exp2(x); }
inline int __float_as_int(float value) {
    int bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline double __longlong_as_double(long long bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
inline long long __double_as_longlong(double value) {
    long long bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
