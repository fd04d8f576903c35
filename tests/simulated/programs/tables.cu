// A program whose kernels read tables in global memory that the compiler puts there: NVIDIA's, of
// mathematical functions, and constant ones of the program's own. It prints "right", or what differs from the
// host's.
//
//   tables [FUNCTION]     of kFunctions; none: all of them
//
// -DOWN: the image has tables of the program's own beside NVIDIA's.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr int kCount = 192, kThreads = 64;

#define CHECK(call)                                                     \
    do {                                                                \
        const cudaError_t status = (call);                              \
        if (status != cudaSuccess) {                                    \
            std::printf("%s: %s\n", #call, cudaGetErrorString(status)); \
            return 1;                                                   \
        }                                                               \
    } while (false)

// Of large arguments the digits of 2/pi are read from a table.
__host__ __device__ double argument(int i) { return (i % 2 == 0 ? 1.75 : 1e10) * (i - 50) + 0.5; }

__host__ __device__ double sine(int i) { return sin(argument(i)); }
__host__ __device__ double cosine(int i) { return cos(argument(i)); }
__host__ __device__ double tangent(int i) { return tan(argument(i)); }
__host__ __device__ double in_float(int i) { return sinf(static_cast<float>(argument(i))); }
__host__ __device__ double others(int i) {
    const double x = 1 + i / 8.0;
    return lgamma(x) + j0(x) + pow(1.5, x) + erf(x - 9) + exp(-x);
}

#ifdef OWN
#define FOUR {2, 7, 1, 8}
__device__ const int in_memory[4] = FOUR;
__constant__ int in_bank[4] = FOUR;
static __device__ int written[4] = FOUR;

__host__ __device__ double own(int i) {
    static const int within[4] = FOUR;
#ifdef __CUDA_ARCH__
    return within[i % 4] * 1111 ==
           within[i % 4] + 10 * in_memory[i % 4] + 100 * in_bank[i % 4] + 1000 * written[i % 4];
#else
    return within[i % 4] != 0;
#endif
}
#endif

template <double (*Function)(int)>
__global__ void of_each(double* out) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    out[i] = Function(i);
}

struct Tried {
    const char* name;
    double (*function)(int);
    void (*kernel)(double*);
};

const Tried kFunctions[] = {
    {"sine", sine, of_each<sine>},
    {"cosine", cosine, of_each<cosine>},
    {"tangent", tangent, of_each<tangent>},
    {"in_float", in_float, of_each<in_float>},
    {"others", others, of_each<others>},
#ifdef OWN
    {"own", own, of_each<own>},
#endif
};

}  // namespace

int main(int count, char** arguments) {
    double* out = nullptr;
    std::vector<double> found(kCount);
    CHECK(cudaMalloc(&out, kCount * sizeof(double)));
    for (const Tried& each : kFunctions) {
        if (count > 1 && std::strcmp(arguments[1], each.name) != 0) continue;
        each.kernel<<<kCount / kThreads, kThreads>>>(out);
        CHECK(cudaMemcpy(found.data(), out, kCount * sizeof(double), cudaMemcpyDeviceToHost));
        for (int i = 0; i < kCount; ++i) {
            const double wanted = each.function(i), value = found[static_cast<size_t>(i)];
            if (std::fabs(value - wanted) <= 1e-6 * std::fmax(1, std::fabs(wanted))) continue;
            std::printf("%s: [%d] is %g, not %g\n", each.name, i, value, wanted);
            return 1;
        }
    }
    std::printf("right\n");
    return 0;
}
