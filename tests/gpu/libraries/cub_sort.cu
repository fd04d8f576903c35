// CUB's radix sorts, in one sweep for each digit with decoupled look-back, and its merge sort.
#include <algorithm>
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <numeric>

#include "library_program.h"

struct Less {
    __host__ __device__ bool operator()(int a, int b) const { return a < b; }
};

int main(int count, char** arguments) {
    const Amount amount(count, arguments);
    const int n = amount.elements;
    Result result;
    const std::vector<int> keys = numbers_below(n, 1 << 30);
    std::vector<int> places(keys.size()), sorted = keys, order(keys.size());
    std::iota(places.begin(), places.end(), 0);
    std::sort(sorted.begin(), sorted.end());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] > keys[b]; });

    const Buffer<int> in(keys), place_in(places);
    Buffer<int> out(keys.size()), place_out(keys.size());
    for (int round = 0; round < amount.rounds; ++round) {
        out.clear(), place_out.clear();
        with_room([&](void* room, size_t& bytes) {
            return cub::DeviceRadixSort::SortKeys(room, bytes, in.data(), out.data(), n);
        });
        result.expect(out.read() == sorted, "keys");
        with_room([&](void* room, size_t& bytes) {
            return cub::DeviceRadixSort::SortPairsDescending(room, bytes, in.data(), out.data(),
                                                             place_in.data(), place_out.data(), n);
        });
        result.expect(place_out.read() == order, "pairs, the largest first");
        with_room([&](void* room, size_t& bytes) {
            return cub::DeviceMergeSort::SortKeysCopy(room, bytes, in.data(), out.data(), n, Less{});
        });
        result.expect(out.read() == sorted, "merged");
        result.fold(place_out.read().data(), keys.size() * sizeof(int));
    }
    return result.finish();
}
