// CUB: what selects, counts and reduces; selections look back as scans do.
#include <algorithm>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_select.cuh>
#include <numeric>

#include "library_program.h"

struct IsOdd {
    __host__ __device__ bool operator()(int value) const { return value & 1; }
};

int main(int count, char** arguments) {
    const Amount amount(count, arguments);
    const int n = amount.elements;
    constexpr int kBins = 64;
    Result result;
    const std::vector<int> values = numbers_below(n, kBins);
    std::vector<int> odd, parted, runs, lengths, bins(kBins);
    std::copy_if(values.begin(), values.end(), std::back_inserter(odd), IsOdd{});
    parted = odd;
    for (int i = n - 1; i >= 0; --i)
        if (!(values[i] & 1))
            parted.push_back(values[i]);  // what is not selected is put behind, the last first
    for (int value : values) {
        ++bins[value];
        if (runs.empty() || runs.back() != value) runs.push_back(value), lengths.push_back(0);
        ++lengths.back();
    }
    const long long sum = std::accumulate(values.begin(), values.end(), 0LL);

    const Buffer<int> in(values);
    Buffer<int> out(values.size()), run_lengths(values.size()), number(1), bins_out(kBins);
    Buffer<long long> sum_out(1);
    for (int round = 0; round < amount.rounds; ++round) {
        out.clear(), run_lengths.clear();
        with_room([&](void* room, size_t& bytes) {
            return cub::DeviceSelect::If(room, bytes, in.data(), out.data(), number.data(), n, IsOdd{});
        });
        result.expect(number.read()[0] == static_cast<int>(odd.size()) && out.read(odd.size()) == odd,
                      "select if");
        with_room([&](void* room, size_t& bytes) {
            return cub::DevicePartition::If(room, bytes, in.data(), out.data(), number.data(), n, IsOdd{});
        });
        result.expect(out.read() == parted, "partition");
        with_room([&](void* room, size_t& bytes) {
            return cub::DeviceRunLengthEncode::Encode(room, bytes, in.data(), out.data(), run_lengths.data(),
                                                      number.data(), n);
        });
        result.expect(number.read()[0] == static_cast<int>(runs.size()) && out.read(runs.size()) == runs &&
                          run_lengths.read(runs.size()) == lengths,
                      "runs");
        with_room([&](void* room, size_t& bytes) {
            return cub::DeviceReduce::Reduce(room, bytes, in.data(), sum_out.data(), n, ::cuda::std::plus<>{},
                                             0LL);
        });
        result.expect(sum_out.read()[0] == sum, "sum");
        with_room([&](void* room, size_t& bytes) {
            return cub::DeviceHistogram::HistogramEven(room, bytes, in.data(), bins_out.data(), kBins + 1, 0,
                                                       kBins, n);
        });
        result.expect(bins_out.read() == bins, "histogram");
        result.fold(run_lengths.read(runs.size()).data(), runs.size() * sizeof(int));
    }
    return result.finish();
}
