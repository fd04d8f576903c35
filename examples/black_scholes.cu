// Black-Scholes: the fair prices of European call and put options, in closed form. A grid of fixed size walks
// over all options.
#include "example.h"

constexpr int kThreads = 128;
constexpr float kInterest = 0.02f, kVolatility = 0.3f;

__host__ __device__ float share_price(uint32_t i) { return example::uniform(i, 1, 5, 30); }
__host__ __device__ float strike_price(uint32_t i) { return example::uniform(i, 2, 1, 100); }
__host__ __device__ float years_left(uint32_t i) { return example::uniform(i, 3, 0.25f, 10); }

__global__ void fill(float* shares, float* strikes, float* years, unsigned size) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    shares[i] = share_price(i);
    strikes[i] = strike_price(i);
    years[i] = years_left(i);
}

// The normal distribution's integral, after Abramowitz and Stegun 26.2.17.
__device__ float normal_integral(float x) {
    const float t = 1 / fmaf(0.2316419f, fabsf(x), 1.0f);
    float polynomial = fmaf(t, 1.330274429f, -1.821255978f);
    polynomial = fmaf(t, polynomial, 1.781477937f);
    polynomial = fmaf(t, polynomial, -0.356563782f);
    polynomial = fmaf(t, polynomial, 0.319381530f) * t;
    const float tail = 0.39894228f * expf(-0.5f * x * x) * polynomial;
    return x > 0 ? 1 - tail : tail;
}

__global__ void price(const float* __restrict__ shares, const float* __restrict__ strikes,
                      const float* __restrict__ years, float* __restrict__ calls, float* __restrict__ puts,
                      unsigned size) {
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += threads) {
        const float share = shares[i], strike = strikes[i], time = years[i];
        const float spread = kVolatility * sqrtf(time);
        const float d1 =
            (logf(share / strike) + (kInterest + 0.5f * kVolatility * kVolatility) * time) / spread;
        const float n1 = normal_integral(d1), n2 = normal_integral(d1 - spread);
        const float discounted = strike * expf(-kInterest * time);
        calls[i] = share * n1 - discounted * n2;
        puts[i] = discounted * (1 - n2) - share * (1 - n1);
    }
}

double call_on_cpu(uint32_t i) {
    const double share = share_price(i), strike = strike_price(i), time = years_left(i);
    const double interest = kInterest, volatility = kVolatility, spread = volatility * std::sqrt(time);
    auto integral = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
    const double d1 = (std::log(share / strike) + (interest + 0.5 * volatility * volatility) * time) / spread;
    return share * integral(d1) - strike * std::exp(-interest * time) * integral(d1 - spread);
}

double put_on_cpu(uint32_t i) {  // put and call together are a sure thing
    return call_on_cpu(i) - share_price(i) +
           strike_price(i) * std::exp(-static_cast<double>(kInterest) * years_left(i));
}

int main(int argc, char** argv) {
    const auto options = example::parse_options(argc, argv, "black_scholes", "prices European options");
    const unsigned size = options.scaled(options.pick(8'000u, 100'000'000u, 1'000'000'000u)),
                   blocks = options.pick(16u, 16384u, 16384u);
    example::DeviceArray<float> shares(size), strikes(size), years(size), calls(size), puts(size);
    fill<<<example::blocks_for(size, 256), 256>>>(shares.data(), strikes.data(), years.data(), size);

    example::Timer timer("price", price);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        price<<<blocks, kThreads>>>(shares.data(), strikes.data(), years.data(), calls.data(), puts.data(),
                                    size);
    timer.stop(options.iterations);

    example::Report report;
    constexpr size_t kSample = 1 << 16;
    constexpr double kTolerance = 1e-4;  // prices are up to 100
    report.check("calls", calls, kSample, [](size_t i, float value) {
        return std::fabs(value - call_on_cpu(static_cast<uint32_t>(i))) < kTolerance;
    });
    report.check("puts", puts, kSample, [](size_t i, float value) {
        return std::fabs(value - put_on_cpu(static_cast<uint32_t>(i))) < kTolerance;
    });
    std::vector<float> some_calls(std::min<size_t>(size, kSample)), some_puts(some_calls.size());
    calls.download(some_calls.data(), size - some_calls.size(), some_calls.size());
    puts.download(some_puts.data(), size - some_puts.size(), some_puts.size());
    double call_sum = 0, put_sum = 0;
    for (float call : some_calls) call_sum += call;
    for (float put : some_puts) put_sum += put;
    report.fold_rounded(call_sum, 100);
    report.fold_rounded(put_sum, 100);
    report.fingerprint(calls);
    report.fingerprint(puts);
    return report.finish(timer);
}
