// Binomial option pricing: American puts, one block an option.
//
// The share's price moves up or down by a fixed factor in each step, so that it can reach step + 1 prices:
// node j of a step is the price after j ups. The option's worth at the last step is known; going back
// step by step, a node is worth the discounted mean of the two nodes it leads to, or what exercising
// the option at once brings, whichever is more.
//
//     worth(step, j) = max(strike - price(step, j),
//                          up_weight * worth(step + 1, j + 1) + down_weight * worth(step + 1, j))
//
// A thread holds kNodes neighbouring nodes in registers and needs from its right neighbour one worth a step,
// which goes through shared memory. Nodes to the right of the triangle hold numbers that are not used.
#include "example.h"

constexpr int kThreads = 128;

struct Contract {
    float price, strike;           // of the share today; at which it may be sold
    float up, down;                // factor of the share's price in a step
    float up_weight, down_weight;  // probability of it, discounted by a step's interest
};

__host__ __device__ float power(float base, int exponent) {
    float result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

// The share's price after `steps` steps of which `ups` went up.
__host__ __device__ float price_at(const Contract& contract, int steps, int ups) {
    const int net = 2 * ups - steps;
    return contract.price * (net > 0 ? power(contract.up, net) : power(contract.down, -net));
}

__host__ __device__ float worth_before(const Contract& contract, float above, float below, float price) {
    return fmaxf(fmaf(contract.up_weight, above, contract.down_weight * below), contract.strike - price);
}

template <int kNodes>
__global__ void price_options(const Contract* contracts, float* worths) {
    __shared__ float first[kThreads + 1];
    constexpr int kSteps = kThreads * kNodes - 1;
    const Contract contract = contracts[blockIdx.x];
    float price[kNodes], worth[kNodes];
#pragma unroll
    for (int k = 0; k < kNodes; ++k) {
        price[k] = price_at(contract, kSteps, threadIdx.x * kNodes + k);
        worth[k] = fmaxf(contract.strike - price[k], 0.0f);
    }
    if (threadIdx.x == 0) first[kThreads] = 0;
    for (int step = kSteps; step > 0; --step) {
        first[threadIdx.x] = worth[0];
        __syncthreads();
        const float next = first[threadIdx.x + 1];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kNodes; ++k) {
            price[k] *= contract.up;  // a step earlier with as many ups: one down less
            worth[k] = worth_before(contract, k + 1 < kNodes ? worth[k + 1] : next, worth[k], price[k]);
        }
    }
    if (threadIdx.x == 0) worths[blockIdx.x] = worth[0];
}

Contract make_contract(uint32_t index, int steps) {
    const double years = example::uniform(index, 1, 0.25f, 2),
                 volatility = example::uniform(index, 2, 0.1f, 0.5f);
    const double interest = 0.03, step = years / steps;
    const double up = std::exp(volatility * std::sqrt(step)), down = 1 / up,
                 growth = std::exp(interest * step);
    const double probability = (growth - down) / (up - down);
    const float price = example::uniform(index, 3, 20, 100);
    return {price,
            price * example::uniform(index, 4, 0.8f, 1.2f),
            static_cast<float>(up),
            static_cast<float>(down),
            static_cast<float>(probability / growth),
            static_cast<float>((1 - probability) / growth)};
}

float worth_on_cpu(const Contract& contract, int steps) {
    std::vector<float> price(steps + 1), worth(steps + 1);
    for (int j = 0; j <= steps; ++j) {
        price[j] = price_at(contract, steps, j);
        worth[j] = std::max(contract.strike - price[j], 0.0f);
    }
    for (int step = steps - 1; step >= 0; --step) {
        for (int j = 0; j <= step; ++j) {
            price[j] *= contract.up;
            worth[j] = worth_before(contract, worth[j + 1], worth[j], price[j]);
        }
    }
    return worth[0];
}

template <int kNodes>
int run(const example::Options& options, size_t count) {
    constexpr int kSteps = kThreads * kNodes - 1;
    std::vector<Contract> contracts(count);
    for (size_t i = 0; i < count; ++i) contracts[i] = make_contract(static_cast<uint32_t>(i), kSteps);
    example::DeviceArray<Contract> device_contracts(contracts);
    example::DeviceArray<float> worths(count);

    example::Timer timer("price_options", price_options<kNodes>);
    timer.start();
    for (int i = 0; i < options.iterations; ++i, timer.lap())
        price_options<kNodes>
            <<<static_cast<unsigned>(count), kThreads>>>(device_contracts.data(), worths.data());
    timer.stop(options.iterations);

    example::Report report;
    report.check("options", worths, 256,
                 [&](size_t i, float worth) { return worth == worth_on_cpu(contracts[i], kSteps); });
    report.fold(worths);
    return report.finish(timer);
}

int main(int argc, char** argv) {
    const auto options =
        example::parse_options(argc, argv, "binomial_options", "prices American options with binomial trees");
    if (options.size == example::Size::kTrivial) return run<1>(options, options.scaled(16));
    return run<8>(options, options.scaled(options.pick(0, 4096, 40960)));
}
