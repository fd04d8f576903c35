// cuFFT: transforms of one and of two dimensions, there and back, against a transform computed on the host.
// Its kernels do the same in every run, so the results' bits are compared, too.
#include <cufft.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "library_program.h"

inline void check(cufftResult status, const char* text, int line) {
    if (status == CUFFT_SUCCESS) return;
    std::printf("line %d: %s: %d\n", line, text, static_cast<int>(status));
    std::fflush(stdout);
    std::_Exit(1);
}

// One value of the transform.
std::complex<double> coefficient(const std::vector<float2>& values, int frequency) {
    std::complex<double> sum = 0;
    const double step = -2 * M_PI * frequency / static_cast<double>(values.size());
    for (size_t i = 0; i < values.size(); ++i)
        sum +=
            std::complex<double>(values[i].x, values[i].y) * std::polar(1.0, step * static_cast<double>(i));
    return sum;
}

int main(int count, char** arguments) {
    const Amount amount(count, arguments);
    constexpr int kRows = 96, kColumns = 144;
    int length = 1;
    while (2 * length <= amount.elements / 8) length *= 2;
    Result result;
    const std::vector<int> numbers = numbers_below(2 * length, 200);
    std::vector<float2> values(static_cast<size_t>(length));
    for (int i = 0; i < length; ++i)
        values[i] = {static_cast<float>(numbers[2 * i] - 100) / 100,
                     static_cast<float>(numbers[2 * i + 1] - 100) / 100};
    const Buffer<float2> in(values);
    Buffer<float2> out(values.size()), back(values.size());
    Buffer<float> image(kRows * kColumns), image_back(kRows * kColumns);
    Buffer<float2> image_out(kRows * (kColumns / 2 + 1));
    CHECK(cudaMemcpy(image.data(), in.data(), std::min(values.size() * 8, size_t{kRows * kColumns * 4}),
                     cudaMemcpyDeviceToDevice));
    cufftHandle line, forward, inverse;
    CHECK(cufftPlan1d(&line, length, CUFFT_C2C, 1));
    CHECK(cufftPlan2d(&forward, kRows, kColumns, CUFFT_R2C));
    CHECK(cufftPlan2d(&inverse, kRows, kColumns, CUFFT_C2R));
    for (int round = 0; round < amount.rounds; ++round) {
        out.clear(), back.clear();
        CHECK(cufftExecC2C(line, in.data(), out.data(), CUFFT_FORWARD));
        CHECK(cufftExecC2C(line, out.data(), back.data(), CUFFT_INVERSE));
        CHECK(cufftExecR2C(forward, image.data(), image_out.data()));
        CHECK(cufftExecC2R(inverse, image_out.data(), image_back.data()));
        CHECK(cudaDeviceSynchronize());
        const std::vector<float2> spectrum = out.read(), again = back.read();
        for (int i = 0; round == 0 && i < 5; ++i) {
            const int frequency = static_cast<int>((int64_t{length} * i) / 5 + i);
            const std::complex<double> wanted = coefficient(values, frequency);
            result.expect(
                std::abs(wanted - std::complex<double>(spectrum[frequency].x, spectrum[frequency].y)) <
                    1e-3 * std::sqrt(length),
                "transform");
        }
        bool right = true;
        for (int i = 0; i < length; ++i)
            right &= std::abs(again[i].x / static_cast<float>(length) - values[i].x) < 1e-4f;
        result.expect(right, "there and back");
        result.fold(spectrum.data(), spectrum.size() * sizeof(float2));
        result.fold(image_back.read().data(), kRows * kColumns * sizeof(float));
    }
    CHECK(cufftDestroy(line));
    CHECK(cufftDestroy(forward));
    CHECK(cufftDestroy(inverse));
    return result.finish();
}
