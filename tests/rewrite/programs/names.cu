// How kernels are named, instantiated and given their parameters; and what they say.
#include <cassert>

#include "constructs.h"

using constructs::dawdle;
using constructs::mixed;

// ---- templates

template <typename T, unsigned kTimes>
__global__ void repeated(T* out) {
    T sum{};
    for (unsigned i = 0; i < kTimes; ++i) sum += static_cast<T>(mixed(blockIdx.x + i) >> 8);
    out[blockIdx.x * 64 + threadIdx.x] += sum;
}
void templates(unsigned* out) {
    repeated<unsigned, 3><<<60, 64>>>(out);
    repeated<unsigned, 5><<<70, 64>>>(out);
    repeated<float, 2><<<80, 64>>>(reinterpret_cast<float*>(out) + 8192);
}

template <typename T>
__global__ void stores(T* out) {
    out[blockIdx.x] += sizeof(T);
}
template <>
__global__ void stores<float>(float* out) {
    out[blockIdx.x] += 0.5f * static_cast<float>(gridDim.x);
}
void specialisation(unsigned* out) {
    stores<unsigned><<<90, 1>>>(out);
    stores<float><<<90, 1>>>(reinterpret_cast<float*>(out) + 100);
}

template <typename... Parts>
__global__ void variadic(unsigned* out, Parts... parts) {
    const unsigned sum = (0u + ... + static_cast<unsigned>(parts));
    atomicAdd(&out[blockIdx.x], sum * (blockIdx.x + sizeof...(Parts)));
}
void variadic_templates(unsigned* out) {
    variadic<<<70, 32>>>(out);
    variadic<<<70, 32>>>(out, 1, 2.0f, 'a');
}

template <typename T>
class Pair {
    T first, second;

public:
    Pair(T a, T b) : first(a), second(b) {}
    template <typename U>
    friend __global__ void adds(Pair<U> pair, unsigned* out);
};
template <typename U>
__global__ void adds(Pair<U> pair, unsigned* out) {
    atomicAdd(&out[blockIdx.x], dawdle(static_cast<unsigned>(pair.first * blockIdx.x + pair.second)));
}
void friends(unsigned* out) { adds<<<120, 64>>>(Pair<int>(3, 4), out); }

// ---- functors and lambdas of the host

struct Add {
    unsigned by;
    __device__ unsigned operator()(unsigned i) const { return blockIdx.x + by + i; }
};
template <typename F>
__global__ void apply(F f, unsigned* out) {
    atomicAdd(&out[blockIdx.x * 32 + threadIdx.x], mixed(f(threadIdx.x)));
}
void functors(unsigned* out) { apply<<<130, 32>>>(Add{3}, out); }
void extended_lambdas(unsigned* out) {
    const unsigned by = 5;
    apply<<<110, 32>>>([=] __device__(unsigned i) { return i * by + gridDim.x + blockIdx.x; }, out);
}

// ---- linkage, overloads, namespaces

static __global__ void hidden(unsigned* out) { out[blockIdx.x] += mixed(blockIdx.x); }
namespace {
__device__ unsigned secret = 77;
__global__ void unnamed(unsigned* out) { out[blockIdx.x] += secret * gridDim.x; }
}  // namespace
void internal_linkage(unsigned* out) {
    hidden<<<90, 1>>>(out);
    unnamed<<<80, 1>>>(out);
}

__global__ void overloaded(unsigned* out) { out[blockIdx.x] += 1 + blockIdx.x; }
__global__ void overloaded(unsigned* out, unsigned by) { out[blockIdx.x] += by * blockIdx.x; }
__global__ void overloaded(float* out) { out[blockIdx.x] += static_cast<float>(blockIdx.x); }
void overloads(unsigned* out) {
    overloaded<<<70, 1>>>(out);
    overloaded<<<80, 1>>>(out, 9u);
    overloaded<<<90, 1>>>(reinterpret_cast<float*>(out) + 128);
}

namespace outer {
inline namespace v1 {
__global__ void versioned(unsigned* out) { out[blockIdx.x] += 3 * blockIdx.x; }
}  // namespace v1
namespace inner::deepest {
__global__ void versioned(unsigned* out) { out[blockIdx.x] += 5 * gridDim.x; }
}  // namespace inner::deepest
}  // namespace outer
void namespaces(unsigned* out) {
    outer::versioned<<<90, 1>>>(out);
    outer::inner::deepest::versioned<<<90, 1>>>(out);
}

extern "C" __global__ void plain_name(unsigned* out) { out[blockIdx.x] += mixed(blockIdx.x * 3); }
void extern_c(unsigned* out) { plain_name<<<150, 1>>>(out); }

__global__ void later(unsigned* out, unsigned by);
void declared_first(unsigned* out) { later<<<100, 1>>>(out, 4); }
__global__ void later(unsigned* out, unsigned by) { out[blockIdx.x] += by * blockIdx.x; }

// ---- parameters and variables

struct Table {
    unsigned values[64];
};
__global__ void picks(const __grid_constant__ Table table, unsigned* out) {
    out[blockIdx.x * 64 + threadIdx.x] += table.values[(blockIdx.x + threadIdx.x) % 64];
}
void grid_constant(unsigned* out) {
    Table table;
    for (unsigned i = 0; i < 64; ++i) table.values[i] = mixed(i);
    picks<<<110, 64>>>(table, out);
}

__device__ unsigned counter;
__constant__ unsigned weights[4] = {2, 3, 5, 7};
__global__ void counts(unsigned* out) {
    atomicAdd(&counter, weights[blockIdx.x % 4]);
    out[blockIdx.x] += weights[threadIdx.x % 4];
}
__global__ void reads_counter(unsigned* out) { out[gridDim.x + blockIdx.x] += atomicAdd(&counter, 0); }
__global__ void clears_counter() { counter = 0; }
void variables(unsigned* out) {
    clears_counter<<<1, 1>>>();
    counts<<<160, 1>>>(out);
    reads_counter<<<160, 1>>>(out);
}

// ---- messages

// So many blocks that workers which came later have some of them, too: what they say must be heard.
__global__ void talks(unsigned* out, unsigned limit) {
    assert(blockIdx.x < limit && gridDim.x == limit);
    if (threadIdx.x == 0 && blockIdx.x % 8 == 3)
        printf("block %u of %u, line %d\n", blockIdx.x, gridDim.x, __LINE__);
    unsigned value = blockIdx.x;
    for (unsigned i = 0; i < 24; ++i) value = mixed(value + i);
    out[blockIdx.x * 32 + threadIdx.x] += value;
}
void messages(unsigned* out) { talks<<<480, 32>>>(out, 480); }

int main(int argc, char** argv) {
    return constructs::run(argc, argv,
                           {{"templates", templates},
                            {"specialisation", specialisation},
                            {"variadic_templates", variadic_templates},
                            {"friends", friends},
                            {"functors", functors},
                            {"extended_lambdas", extended_lambdas},
                            {"internal_linkage", internal_linkage},
                            {"overloads", overloads},
                            {"namespaces", namespaces},
                            {"extern_c", extern_c},
                            {"declared_first", declared_first},
                            {"grid_constant", grid_constant},
                            {"variables", variables},
                            {"messages", messages}});
}
