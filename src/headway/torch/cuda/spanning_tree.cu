// The best non-projective tree of every sentence, multi- or single-root: one warp a sentence.
//
// Tarjan's (1977) maximum spanning arborescence for dense graphs, as `headway.inference.spanning_tree` has it. Every
// node keeps its best incoming arc; a walk that follows those arcs ends in the root, in finished ground, or in a
// cycle, which is contracted into a new node with the gain, for being entered from h,
//
//     enter[h] = max over members x of the cycle:  enter_x[h] - value[x].
//
// Heads are never contracted: rows stay indexed by original heads, and component[h] says where a head lives now. One
// lane walks, from which nothing can be taken away; all lanes, each its heads, merge rows and look for the best entry.
// Gains are doubles, compared in the order of the CPU's loops: the same tree, ties included.
//
// Single root. A node takes a root arc only if every other head is forbidden to it; such a node lies on no cycle, so
// "the root last" is all it takes to have the tree with the fewest root arcs, and the best of those. The best multi-
// root tree is tried first: most often it has one root already.
//
// Only contracted nodes have rows, and each new one takes the row of a contracted member if there is one. So there are
// at most n / 2, and
//     bytes(nodes) = 10 (n / 2) nodes + 48 nodes, rounded up to a multiple of 16, with n = nodes - 1
// of shared memory a block, or, where that is too much, of `workspace` for each block of the grid (otherwise null).
// Threads: 32. The grid may have any number of blocks: each takes every gridDim.x-th sentence.
//
// O(n^2) work; latency decides, not memory: some n steps of a walk, each of three dependent reads. Many sentences at a
// time hide it: 6.9 KB a sentence of 32 words lets 28 of them share a multiprocessor.

#include "numbers.cuh"

constexpr int HEADS_A_LANE = 2;  // merged at a time

constexpr __host__ __device__ long long spanning_tree_bytes(int nodes) {
    const long long rows = (nodes - 1) / 2;
    return (10 * rows * nodes + 48 * nodes + 15) / 16 * 16;
}

__device__ __forceinline__ double infinity() { return __longlong_as_double(0x7ff0000000000000LL); }

using Node = unsigned short;  // words, then contracted nodes: 2 n + 1 < 65536
constexpr Node UNSEEN = 0, ON_WALK = 1, DONE = 2;

template <class T>
struct Graph {
    const T* scores;
    int n, nodes;
    double *enter, *value;
    // Of rows: the member through which a head enters. Of nodes: their arc, how far the walk is, their row, and what
    // they were contracted into. Of heads: the node they live in. heads: the result.
    Node *via, *head, *modifier, *mark, *row, *parent, *component, *heads;

    __device__ Graph(const T* scores, int n, int nodes, char* memory) : scores(scores), n(n), nodes(nodes) {
        const long long cells = (long long)(n / 2) * nodes;
        enter = reinterpret_cast<double*>(memory);
        value = enter + cells;
        via = reinterpret_cast<Node*>(value + 2 * nodes);
        head = via + cells;
        modifier = head + 2 * nodes;
        mark = modifier + 2 * nodes;
        row = mark + 2 * nodes;
        parent = row + 2 * nodes;
        component = parent + 2 * nodes;
        heads = component + nodes;
    }

    __device__ __forceinline__ double score(int h, int m) const { return double(scores[(long long)(h)*nodes + m]); }
    __device__ __forceinline__ double gain(int node, int h) const {
        return node <= n ? score(h, node) : enter[(long long)(row[node]) * nodes + h];
    }
    __device__ __forceinline__ Node entry(int node, int h) const {
        return node <= n ? node : via[(long long)(row[node]) * nodes + h];
    }
    __device__ __forceinline__ int following(int node) const { return component[head[node]]; }
};

// Each word's best head, the lowest of equals; false if a word has none.
template <class T>
__device__ bool choose_first_heads(const Graph<T>& at, bool root_last) {
    bool found = true;
    for (int m = 1 + threadIdx.x; m <= at.n; m += 32) {
        double top = root_last ? -infinity() : at.score(0, m);
        int best = 0;
#pragma unroll 8
        for (int h = 1; h <= at.n; ++h) {
            const double score = at.score(h, m);
            if (h != m && score > top) top = score, best = h;
        }
        if (top == -infinity()) top = at.score(0, m);
        at.value[m] = top;
        at.head[m] = best;
        at.modifier[m] = m;
        found = found && top != -infinity();
    }
    for (int node = threadIdx.x; node <= 2 * at.n; node += 32) {
        at.mark[node] = node == 0 ? DONE : UNSEEN;
        at.parent[node] = 0;
        if (node <= at.n) at.component[node] = node;
    }
    __syncwarp();
    return !__any_sync(ALL_LANES, !found);
}

// The walks of one lane, from word to word.
template <class T>
struct Walk {
    const Graph<T>& at;
    int start = 0, node = 0;  // the word the walk set out from, and where it is; 0: it has not set out

    // On to the next cycle, of which a node is returned; 0 if all words are done.
    __device__ int next_cycle() {
        while (true) {
            if (node == 0) {
                do {
                    if (++start > at.n) return 0;
                } while (at.mark[at.component[start]] == DONE);
                node = at.component[start];
            }
            at.mark[node] = ON_WALK;
            const int following = at.following(node);
            if (at.mark[following] == ON_WALK) return following;
            node = following;
            if (at.mark[following] == DONE) finish();
        }
    }
    __device__ void finish() {
        for (node = at.component[start]; at.mark[node] == ON_WALK; node = at.following(node)) at.mark[node] = DONE;
        node = 0;
    }
};

// The row of a member of the cycle that has one, or a new one.
template <class T>
__device__ int row_for(const Graph<T>& at, int first, int& rows) {
    int node = first;
    do {
        if (node > at.n) return at.row[node];
        node = at.following(node);
    } while (node != first);
    return rows++;
}

// Merges the cycle through `first` into node `made`; false if there is no way into it.
template <class T>
__device__ bool contract(const Graph<T>& at, int first, int made, bool root_last, int& rows) {
    const int target = row_for(at, first, rows), lane = threadIdx.x;
    double* const enter = at.enter + (long long)(target)*at.nodes;
    Node* const via = at.via + (long long)(target)*at.nodes;
    for (int base = 0; base <= at.n; base += 32 * HEADS_A_LANE) {
        double top[HEADS_A_LANE];
        Node through[HEADS_A_LANE];
        int node = first;
        do {
            const double value = at.value[node];
#pragma unroll
            for (int k = 0; k < HEADS_A_LANE; ++k) {
                const int h = base + 32 * k + lane;
                if (h > at.n) continue;
                const double gain = at.gain(node, h) - value;
                if (node == first || gain > top[k]) top[k] = gain, through[k] = at.entry(node, h);
            }
            node = at.following(node);
        } while (node != first);
#pragma unroll
        for (int k = 0; k < HEADS_A_LANE; ++k) {
            const int h = base + 32 * k + lane;
            if (h > at.n) continue;
            enter[h] = top[k];
            via[h] = through[k];
        }
    }
    __syncwarp();
    if (lane == 0) {
        int node = first;
        do {
            at.parent[node] = made;
            node = at.following(node);
        } while (node != first);
    }
    __syncwarp();
    double top = -infinity();
    int best = 0;
    for (int h = lane; h <= at.n; h += 32) {
        if (h > 0 && at.parent[at.component[h]] == made) {
            at.component[h] = made;
            enter[h] = -infinity();
        }
        const bool allowed = h > 0 || !root_last;
        if (allowed && enter[h] > top) top = enter[h], best = h;
    }
    for (int k = 16; k > 0; k /= 2) {
        const double other = shuffle(top, lane ^ k, 32);
        const int where = shuffle(best, lane ^ k, 32);
        if (other > top || (other == top && where < best)) top = other, best = where;
    }
    __syncwarp();
    if (top == -infinity()) best = 0;
    const double value = enter[best];
    if (lane == 0) {
        at.row[made] = target;
        at.value[made] = value;
        at.head[made] = best;
        at.modifier[made] = via[best];
    }
    __syncwarp();
    return value != -infinity();
}

// Opens the contracted nodes, newest first: the arc that enters a node replaces one arc of its cycle.
template <class T>
__device__ void expand(const Graph<T>& at, int newest) {
    Node* const settled = at.mark;
    for (int node = 1; node <= newest; ++node) settled[node] = 0;
    for (int node = newest; node > 0; --node) {
        if (settled[node]) continue;
        at.heads[at.modifier[node]] = at.head[node];
        for (int inner = at.modifier[node]; inner != node; inner = at.parent[inner]) settled[inner] = 1;
    }
}

// The best heads; false if there are none.
template <class T>
__device__ bool arborescence(const Graph<T>& at, bool root_last) {
    if (!choose_first_heads(at, root_last)) return false;
    Walk<T> walk{at};
    int newest = at.n, rows = 0;
    while (true) {
        int first = 0;
        if (threadIdx.x == 0) first = walk.next_cycle();
        __syncwarp();
        first = shuffle(first, 0, 32);
        if (first == 0) break;
        if (!contract(at, first, ++newest, root_last, rows)) return false;
        walk.node = newest;
    }
    if (threadIdx.x == 0) expand(at, newest);
    __syncwarp();
    return true;
}

template <class T>
__device__ bool one_root(const Graph<T>& at) {
    int roots = 0;
    for (int m = 1 + threadIdx.x; m <= at.n; m += 32) roots += at.heads[m] == 0;
    for (int k = 16; k > 0; k /= 2) roots += shuffle(roots, threadIdx.x ^ k, 32);
    return roots == 1;
}

// Heads of the best tree, -1 in padding and at the root; all -1 where there is no tree.
// Arguments: scores (B, nodes, nodes), lengths (B,) int64, batch, nodes < 32768, heads (B, nodes) int64, workspace.
template <class T, bool MULTI>
__global__ void __launch_bounds__(32, 1)
    spanning_tree_argmax(const T* scores, const long long* lengths, int batch, int nodes, long long* heads,
                         char* workspace) {
    SHARED_MEMORY(shared);
    char* const memory = workspace == nullptr ? shared : workspace + blockIdx.x * spanning_tree_bytes(nodes);
    for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
        const Graph<T> at(scores + b * nodes * nodes, int(lengths[b]), nodes, memory);
        bool found = arborescence(at, false);
        if (!MULTI && found && !one_root(at)) found = arborescence(at, true) && one_root(at);
        for (int m = threadIdx.x; m < nodes; m += 32) {
            heads[b * nodes + m] = found && m > 0 && m <= at.n ? (long long)(at.heads[m]) : -1LL;
        }
        __syncwarp();
    }
}
