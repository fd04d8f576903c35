// Large kernel parameters: 4 KiB, and the 32,764 bytes that sm_70 and later allow, by value and
// through one packed buffer of the driver interface.
#include <cuda.h>

#include "program.h"

template <int kBytes>
struct Parameters {
    int first;
    int rest[kBytes / 4 - 1];
};

template <int kBytes>
__global__ void sum(const __grid_constant__ Parameters<kBytes> parameters, long long* out) {
    long long total = parameters.first;
    for (int i = 0; i < kBytes / 4 - 1; ++i)
        total += static_cast<long long>(parameters.rest[i]) * (i % 7 + 1);
    *out = total;
}

// The result pointer comes first, so that the buffer can end at the very last byte.
__global__ void sum_largest(long long* out, const __grid_constant__ Parameters<32756> parameters) {
    long long total = parameters.first;
    for (int i = 0; i < 32756 / 4 - 1; ++i) total += static_cast<long long>(parameters.rest[i]) * (i % 7 + 1);
    *out = total;
}

template <int kBytes>
long long fill(Parameters<kBytes>& parameters) {
    Random random;
    long long total = parameters.first = random.below(1000);
    for (int i = 0; i < kBytes / 4 - 1; ++i) {
        parameters.rest[i] = random.below(1000000) - 500000;
        total += static_cast<long long>(parameters.rest[i]) * (i % 7 + 1);
    }
    return total;
}

long long read(long long* device) {
    long long value = 0;
    CHECK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

template <int kBytes>
void by_value(Result& result, long long* device) {
    static Parameters<kBytes> parameters;
    const long long expected = fill(parameters);
    sum<kBytes><<<1, 1>>>(parameters, device);
    CHECK(cudaGetLastError());
    const long long value = read(device);
    std::printf("%d bytes by value: %lld\n", kBytes, value);
    result.expect(value == expected, "by value");
    result.fold(value);
}

int main() {
    Result result;
    long long* device;
    CHECK(cudaMalloc(&device, sizeof(long long)));
    by_value<16>(result, device);
    by_value<1024>(result, device);
    by_value<4088>(result, device);
    by_value<8192>(result, device);
    by_value<32752>(result, device);

    struct Packed {
        long long* out;
        Parameters<32756> parameters;
    };
    static Packed packed;
    packed.out = device;
    const long long expected = fill(packed.parameters);
    sum_largest<<<1, 1>>>(packed.out, packed.parameters);
    CHECK(cudaGetLastError());
    result.expect(read(device) == expected, "32,764 bytes by value");

    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuLaunchKernel", &entry, 12000, cudaEnableDefault, &found));
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(sum_largest)));
    CHECK(cudaMemset(device, 0, sizeof(long long)));
    size_t bytes = 32764;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    const CUresult status = reinterpret_cast<decltype(&cuLaunchKernel)>(entry)(function, 1, 1, 1, 1, 1, 1, 0,
                                                                               nullptr, nullptr, extra);
    const long long value = read(device);
    std::printf("%zu bytes packed: status %d, %lld\n", bytes, static_cast<int>(status), value);
    result.expect(status == CUDA_SUCCESS && value == expected, "packed");
    result.fold(value);
    return result.finish();
}
