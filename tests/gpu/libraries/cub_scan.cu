// CUB's scans: one pass with decoupled look-back, in which a block waits for what the blocks before it found.
#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <numeric>

#include "library_program.h"

int main(int count, char** arguments) {
    const Amount amount(count, arguments);
    const int n = amount.elements;
    Result result;
    const std::vector<int> values = numbers_below(n, 1000);
    std::vector<int> keys(values.size());
    for (int i = 0; i < n; ++i) keys[i] = i / 777;
    std::vector<long long> wide(values.begin(), values.end());

    std::vector<int> inclusive(values.size()), highest(values.size()), by_key(values.size());
    std::vector<long long> exclusive(values.size());
    std::partial_sum(values.begin(), values.end(), inclusive.begin());
    std::exclusive_scan(wide.begin(), wide.end(), exclusive.begin(), 5LL);
    std::inclusive_scan(values.begin(), values.end(), highest.begin(),
                        [](int a, int b) { return std::max(a, b); });
    for (int i = 0; i < n; ++i) by_key[i] = values[i] + (i && keys[i] == keys[i - 1] ? by_key[i - 1] : 0);

    const Buffer<int> in(values), key_in(keys);
    const Buffer<long long> wide_in(wide);
    Buffer<int> out(values.size());
    Buffer<long long> wide_out(values.size());
    for (int round = 0; round < amount.rounds; ++round) {
        out.clear(), wide_out.clear();
        with_room([&](void* room, size_t& bytes) {
            return cub::DeviceScan::InclusiveSum(room, bytes, in.data(), out.data(), n);
        });
        result.expect(out.read() == inclusive, "inclusive sum");
        with_room([&](void* room, size_t& bytes) {
            return cub::DeviceScan::ExclusiveScan(room, bytes, wide_in.data(), wide_out.data(),
                                                  ::cuda::std::plus<>{}, 5LL, n);
        });
        result.expect(wide_out.read() == exclusive, "exclusive sum of wide numbers");
        with_room([&](void* room, size_t& bytes) {
            return cub::DeviceScan::InclusiveScan(room, bytes, in.data(), out.data(), ::cuda::maximum<>{}, n);
        });
        result.expect(out.read() == highest, "running maximum");
        with_room([&](void* room, size_t& bytes) {
            return cub::DeviceScan::InclusiveSumByKey(room, bytes, key_in.data(), in.data(), out.data(), n);
        });
        result.expect(out.read() == by_key, "sum by key");
        result.fold(out.read().data(), values.size() * sizeof(int));
    }
    return result.finish();
}
