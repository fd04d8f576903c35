// cuDNN, linked as a shared library: a convolution forwards and backwards, pooling and softmax. Small whole
// numbers keep the convolutions exact; softmax is compared to six digits.
#include <cudnn.h>

#include <algorithm>
#include <cmath>

#include "library_program.h"

inline void check(cudnnStatus_t status, const char* text, int line) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    std::printf("line %d: %s: %s\n", line, text, cudnnGetErrorString(status));
    std::fflush(stdout);
    std::_Exit(1);
}

constexpr int kImages = 8, kChannels = 16, kFilters = 32, kSide = 32, kWindow = 3;
constexpr int kPixels = kSide * kSide;

// Of one pixel, with a border of zeros.
float convolved(const std::vector<float>& images, const std::vector<float>& filters, int image, int filter,
                int row, int column) {
    float sum = 0;
    for (int channel = 0; channel < kChannels; ++channel)
        for (int i = 0; i < kWindow; ++i)
            for (int j = 0; j < kWindow; ++j) {
                const int y = row + i - 1, x = column + j - 1;
                if (y < 0 || x < 0 || y >= kSide || x >= kSide) continue;
                sum += images[((image * kChannels + channel) * kSide + y) * kSide + x] *
                       filters[((filter * kChannels + channel) * kWindow + i) * kWindow + j];
            }
    return sum;
}

std::vector<float> small_numbers(int count) {
    std::vector<float> numbers;
    for (int each : numbers_below(count, 7)) numbers.push_back(static_cast<float>(each - 3));
    return numbers;
}

struct Layers {
    cudnnHandle_t dnn;
    cudnnTensorDescriptor_t in, out, pooled;
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t convolution;
    cudnnPoolingDescriptor_t pooling;

    Layers() {
        CHECK(cudnnCreate(&dnn));
        CHECK(cudnnCreateTensorDescriptor(&in));
        CHECK(cudnnCreateTensorDescriptor(&out));
        CHECK(cudnnCreateTensorDescriptor(&pooled));
        CHECK(cudnnCreateFilterDescriptor(&filter));
        CHECK(cudnnCreateConvolutionDescriptor(&convolution));
        CHECK(cudnnCreatePoolingDescriptor(&pooling));
        CHECK(cudnnSetTensor4dDescriptor(in, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, kImages, kChannels, kSide,
                                         kSide));
        CHECK(cudnnSetTensor4dDescriptor(out, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, kImages, kFilters, kSide,
                                         kSide));
        CHECK(cudnnSetTensor4dDescriptor(pooled, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, kImages, kFilters,
                                         kSide / 2, kSide / 2));
        CHECK(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, kFilters, kChannels,
                                         kWindow, kWindow));
        CHECK(cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                              CUDNN_DATA_FLOAT));
        CHECK(cudnnSetConvolutionMathType(convolution, CUDNN_FMA_MATH));
        CHECK(cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2,
                                          2));
    }
};

int main(int count, char** arguments) {
    const Amount amount(count, arguments);
    Result result;
    const std::vector<float> images = small_numbers(kImages * kChannels * kPixels);
    const std::vector<float> filters = small_numbers(kFilters * kChannels * kWindow * kWindow);
    const Buffer<float> in(images), weights(filters);
    Buffer<float> out(kImages * kFilters * kPixels), pooled(kImages * kFilters * kPixels / 4),
        soft(kImages * kFilters * kPixels / 4);
    Buffer<float> gradient(filters.size());
    const Layers layers;
    const float one = 1, zero = 0;
    constexpr auto kForward = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    constexpr auto kBackward = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;  // always adds up in the same order
    size_t forward_bytes = 0, backward_bytes = 0;
    CHECK(cudnnGetConvolutionForwardWorkspaceSize(layers.dnn, layers.in, layers.filter, layers.convolution,
                                                  layers.out, kForward, &forward_bytes));
    CHECK(cudnnGetConvolutionBackwardFilterWorkspaceSize(
        layers.dnn, layers.in, layers.out, layers.convolution, layers.filter, kBackward, &backward_bytes));
    Buffer<char> room(std::max(forward_bytes, backward_bytes));
    for (int round = 0; round < amount.rounds; ++round) {
        out.clear(), pooled.clear(), gradient.clear();
        CHECK(cudnnConvolutionForward(layers.dnn, &one, layers.in, in.data(), layers.filter, weights.data(),
                                      layers.convolution, kForward, room.data(), forward_bytes, &zero,
                                      layers.out, out.data()));
        CHECK(cudnnPoolingForward(layers.dnn, layers.pooling, &one, layers.out, out.data(), &zero,
                                  layers.pooled, pooled.data()));
        CHECK(cudnnSoftmaxForward(layers.dnn, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                                  layers.pooled, pooled.data(), &zero, layers.pooled, soft.data()));
        CHECK(cudnnConvolutionBackwardFilter(layers.dnn, &one, layers.in, in.data(), layers.out, out.data(),
                                             layers.convolution, kBackward, room.data(), backward_bytes,
                                             &zero, layers.filter, gradient.data()));
        CHECK(cudaDeviceSynchronize());
        const std::vector<float> values = out.read(), share = soft.read();
        bool right = true;
        for (int i = 0; i < 500; ++i) {
            const int image = i % kImages, filter = i % kFilters, row = i % kSide, column = (i * 7) % kSide;
            right &= values[((image * kFilters + filter) * kSide + row) * kSide + column] ==
                     convolved(images, filters, image, filter, row, column);
        }
        result.expect(right, "convolution");
        double sum = 0;
        for (float each : share) sum += each;
        result.expect(std::abs(sum / (kImages * kPixels / 4) - 1) < 1e-6, "softmax");
        result.fold(values.data(), values.size() * sizeof(float));
        result.fold(pooled.read().data(), kImages * kFilters * kPixels / 4 * sizeof(float));
        result.fold(gradient.read().data(), filters.size() * sizeof(float));
    }
    return result.finish();
}
