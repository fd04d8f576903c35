// Thrust: sort by key, scan, reduce by key, and a reduction of what is computed on the way.
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>

#include <algorithm>
#include <map>

#include "library_program.h"

struct Square {
    __host__ __device__ long long operator()(int value) const {
        return static_cast<long long>(value) * value;
    }
};

int main(int count, char** arguments) {
    const Amount amount(count, arguments);
    Result result;
    const std::vector<int> keys = numbers_below(amount.elements, 5000);
    std::map<int, long long> sums;
    std::vector<int> scanned(keys.size());
    long long squares = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
        sums[keys[i]] += static_cast<long long>(i % 100);
        scanned[i] = keys[i] + (i ? scanned[i - 1] : 0);
        squares += Square{}(keys[i]);
    }
    for (int round = 0; round < amount.rounds; ++round) {
        thrust::device_vector<int> key(keys.begin(), keys.end()), scan(keys.size()), key_out(keys.size());
        thrust::device_vector<long long> value(keys.size()), sum(keys.size());
        std::vector<long long> values(keys.size());
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<long long>(i % 100);
        value = values;
        thrust::inclusive_scan(key.begin(), key.end(), scan.begin());
        std::vector<int> scan_back(keys.size());
        thrust::copy(scan.begin(), scan.end(), scan_back.begin());
        result.expect(scan_back == scanned, "scan");
        result.expect(
            thrust::transform_reduce(key.begin(), key.end(), Square{}, 0LL, ::cuda::std::plus<>{}) == squares,
            "squares");
        thrust::sort_by_key(key.begin(), key.end(), value.begin());
        const auto ends =
            thrust::reduce_by_key(key.begin(), key.end(), value.begin(), key_out.begin(), sum.begin());
        const auto found = static_cast<size_t>(ends.first - key_out.begin());
        result.expect(found == sums.size(), "how many keys");
        std::vector<int> keys_back(found);
        std::vector<long long> sums_back(found);
        thrust::copy(key_out.begin(), ends.first, keys_back.begin());
        thrust::copy(sum.begin(), ends.second, sums_back.begin());
        size_t i = 0;
        bool right = true;
        for (const auto& [each, total] : sums)
            right &= i < found && keys_back[i] == each && sums_back[i] == total, ++i;
        result.expect(right, "sums by key");
        result.fold(sums_back.data(), found * sizeof(long long));
    }
    return result.finish();
}
