// What the programs here share: how much and how often, and memory on the device.
//
//   NAME [elements] [rounds]
//
// All results are of whole numbers, or compared to stated digits, so that what is printed is the same in
// every run.
#pragma once

#include <vector>

#include "../programs/program.h"

struct Amount {
    int elements = 200'000;
    int rounds = 2;
    Amount(int count, char** arguments) {
        if (count > 1) elements = std::atoi(arguments[1]);
        if (count > 2) rounds = std::atoi(arguments[2]);
    }
};

template <typename T>
class Buffer {
public:
    explicit Buffer(size_t count) : count_(count) {
        CHECK(cudaMalloc(&data_, (count ? count : 1) * sizeof(T)));
    }
    explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) {
        CHECK(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
    }
    ~Buffer() { cudaFree(data_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    T* data() const { return data_; }
    void clear() {
        CHECK(cudaMemset(data_, 0xee, count_ * sizeof(T)));
    }  // nothing of the last round is right by chance
    std::vector<T> read(size_t count) const {
        std::vector<T> values(count);
        CHECK(cudaMemcpy(values.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost));
        return values;
    }
    std::vector<T> read() const { return read(count_); }

private:
    T* data_ = nullptr;
    size_t count_;
};

// CUB's functions are called twice: for how much room they want, and to work.
template <typename Call>
void with_room(const Call& call) {
    size_t bytes = 0;
    CHECK(call(nullptr, bytes));
    Buffer<char> room(bytes);
    CHECK(call(room.data(), bytes));
    CHECK(cudaDeviceSynchronize());
}

inline std::vector<int> numbers_below(int count, int limit) {
    Random random;
    std::vector<int> numbers(static_cast<size_t>(count));
    for (int& each : numbers) each = random.below(limit);
    return numbers;
}
