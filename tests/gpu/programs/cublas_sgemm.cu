// cuBLAS, linked as a shared library: plain, batched and transposed products, a dot product with
// its result on the host and on the device. Whole numbers keep every result exact.
#include <cublas_v2.h>

#include <vector>

#include "program.h"

inline void check(cublasStatus_t status, const char* text, int line) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    std::printf("line %d: %s: %d\n", line, text, static_cast<int>(status));
    std::fflush(stdout);
    std::_Exit(1);
}

constexpr int kRows = 384, kColumns = 256, kInner = 320, kBatch = 3;

int main() {
    Result result;
    Random random;
    std::vector<float> a(kRows * kInner * kBatch), b(kInner * kColumns * kBatch),
        c(kRows * kColumns * kBatch);
    for (float& value : a) value = static_cast<float>(random.below(9) - 4);
    for (float& value : b) value = static_cast<float>(random.below(9) - 4);
    float *device_a, *device_b, *device_c, *device_dot;
    CHECK(cudaMalloc(&device_a, a.size() * sizeof(float)));
    CHECK(cudaMalloc(&device_b, b.size() * sizeof(float)));
    CHECK(cudaMalloc(&device_c, c.size() * sizeof(float)));
    CHECK(cudaMalloc(&device_dot, sizeof(float)));
    cublasHandle_t blas;
    cudaStream_t stream;
    CHECK(cublasCreate(&blas));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cublasSetStream(blas, stream));
    CHECK(cublasSetVector(static_cast<int>(a.size()), sizeof(float), a.data(), 1, device_a, 1));
    CHECK(cublasSetVector(static_cast<int>(b.size()), sizeof(float), b.data(), 1, device_b, 1));
    CHECK(cudaDeviceSynchronize());

    // Column-major: c(i, j) = sum over k of a(i, k) * b(k, j).
    const float one = 1, zero = 0;
    CHECK(cublasSgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kColumns, kInner, &one, device_a,
                                    kRows, kRows * kInner, device_b, kInner, kInner * kColumns, &zero,
                                    device_c, kRows, kRows * kColumns, kBatch));
    CHECK(cudaMemcpyAsync(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    bool right = true;
    for (int batch = 0; batch < kBatch; ++batch)
        for (int j = 0; j < kColumns; j += 5)
            for (int i = 0; i < kRows; i += 3) {
                float sum = 0;
                for (int k = 0; k < kInner; ++k)
                    sum += a[(batch * kInner + k) * kRows + i] * b[(batch * kColumns + j) * kInner + k];
                right &= sum == c[(batch * kColumns + j) * kRows + i];
            }
    result.expect(right, "batched product");
    result.fold(c.data(), c.size() * sizeof(float));

    // The first product again, added to itself, with a transposed: a is now stored inner by rows.
    CHECK(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, kInner, kInner, kRows, &one, device_a, kRows, device_a,
                      kRows, &zero, device_c, kInner));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cublasGetMatrix(kInner, 1, sizeof(float), device_c, kInner, c.data(), kInner));
    for (int i = 0; i < kInner; ++i) {
        float sum = 0;
        for (int k = 0; k < kRows; ++k) sum += a[i * kRows + k] * a[k];
        result.expect(sum == c[i], "transposed product");
    }
    result.fold(c.data(), kInner * sizeof(float));

    float on_host = 0, from_device = 0, reference = 0;
    CHECK(cublasSdot(blas, 5000, device_a, 1, device_b, 1, &on_host));
    CHECK(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
    CHECK(cublasSdot(blas, 5000, device_a, 1, device_b, 1, device_dot));
    CHECK(cudaMemcpyAsync(&from_device, device_dot, sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < 5000; ++i) reference += a[i] * b[i];
    std::printf("dot: %.0f %.0f\n", on_host, from_device);
    result.expect(on_host == reference && from_device == reference, "dot");
    CHECK(cublasDestroy(blas));
    CHECK(cudaStreamDestroy(stream));
    return result.finish();
}
