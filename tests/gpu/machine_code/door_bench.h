// One kernel of door_kernels.cu with its buffers and parameters, launched unpatched or with the door.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "door_check.h"

using smt::DoorLaunch;

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Case {
    const char* kernel;
    Launch shape;
    int iterations;
    size_t extra = 0;  // bytes of a parameter behind the four
    bool any = true;   // false: it has no parameters, and writes to a variable

    unsigned cluster() const {  // CTAs
        return shape.cluster ? shape.cluster : std::strcmp(kernel, "clustered") == 0 ? 2 : 1;
    }
};

// Buffers and parameters of one case, for one of its two modules.
class Bench {
public:
    Bench(const Case& test, CUmodule module, const std::vector<float>& first)
        : test_(test),
          first_(first),
          n_(static_cast<int>(test.shape.threads())),
          in_(n_ * sizeof(float)),
          own_(n_ * sizeof(float)) {
        MUST(cuModuleGetFunction(&function_, module, test.kernel));
        if (test.shape.shared > 48 << 10)
            MUST(cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    static_cast<int>(test.shape.shared)));
        out_ = own_.address();
        out_bytes_ = own_.bytes();
        if (!test.any) MUST(cuModuleGetGlobal(&out_, &out_bytes_, module, "global_out"));
        MUST(cuMemcpyHtoD(in_.address(), first.data(), in_.bytes()));
        in_address_ = in_.address();
        for (size_t i = 0; i < sizeof extra_; ++i) extra_[i] = static_cast<char>(i % 5);
        for (size_t i = 0; i + 4 <= test.extra && test.extra > 16; i += 4) {
            const float value = static_cast<float>(i % 97);
            std::memcpy(extra_ + i, &value, 4);
        }
    }

    void begin() {
        MUST(cuMemcpyHtoD(out_, first_.data(), std::min(out_bytes_, first_.size() * sizeof(float))));
    }
    // door: null where the kernel is unpatched.
    void run(CUstream stream, const DoorLaunch* door) { MUST(try_run(stream, door)); }
    CUresult try_run(CUstream stream, const DoorLaunch* door) {
        std::vector<void*> parameters;
        if (test_.any) parameters = {&out_, &in_address_, &n_, const_cast<int*>(&test_.iterations)};
        if (test_.extra) parameters.push_back(extra_);
        if (door) parameters.push_back(const_cast<DoorLaunch*>(door));
        return launch(function_, test_.shape, stream, parameters.data());
    }
    std::vector<char> result() {
        std::vector<char> bytes(out_bytes_);
        MUST(cuMemcpyDtoH(bytes.data(), out_, out_bytes_));
        return bytes;
    }
    CUfunction function() const { return function_; }

private:
    const Case& test_;
    const std::vector<float>& first_;
    int n_;
    Buffer in_, own_;
    CUfunction function_ = nullptr;
    CUdeviceptr out_ = 0, in_address_ = 0;
    size_t out_bytes_ = 0;
    char extra_[4096];
};

struct Streams {
    CUstream work, stop;
    Streams() {
        MUST(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
        MUST(cuStreamCreateWithPriority(&stop, CU_STREAM_NON_BLOCKING, -5));
    }
};

// The stop word and the frontiers of launches of one kernel, one after the other.
class Control {
public:
    explicit Control(const Case& test)
        : units_(static_cast<uint32_t>(test.shape.ctas() / test.cluster())),
          words_(kWordsAt + kWords * sizeof(uint32_t)) {
        clear();
    }
    // How long a launch takes, unpatched: a step of the frontier takes 2 us (runtime/dispatch/door_form.cpp).
    void learn(double ms) {
        step_.shift = 3;
        while (step_.shift < 12 && ms * 1e3 / units_ * (1 << step_.shift) < 2) ++step_.shift;
    }
    // `last` unit of a group: 0, 1, 3 ...
    void set_exact(bool exact, int last = 0) {
        step_.how = exact ? static_cast<uint8_t>(smt::kDoorExact | last << smt::kDoorGroupAt) : 0;
    }
    const DoorLaunch& begin() { return run_from(0); }
    const DoorLaunch& resume() { return run_from(done_); }
    const DoorLaunch& none_left() { return run_from(units_); }  // all CTAs leave at once
    CUdeviceptr address() const { return words_.address(); }    // of the word that stops
    uint32_t run() const { return now_.run; }
    void stop(CUstream stream) { MUST(cuStreamWriteValue32(stream, address(), now_.run, 0)); }
    uint32_t left() {  // units that the last run left; known when it is over
        uint32_t word = 0;
        MUST(cuMemcpyDtoH(&word, now_.frontier, sizeof word));
        const bool stopped = word & smt::kFinalFrontier;
        done_ = stopped ? std::clamp(word & ~smt::kFinalFrontier, now_.from, units_) : units_;
        return units_ - done_;
    }
    uint32_t units() const { return units_; }

private:
    static constexpr size_t kWords = 1 << 14, kWordsAt = 128;
    void clear() { MUST(cuMemsetD8(words_.address(), 0, words_.bytes())); }
    // Clearing waits for what is on the GPU, so it is rare.
    const DoorLaunch& run_from(uint32_t from) {
        const uint32_t run = now_.run + 1;
        if (run % kWords == 0) {
            MUST(cuCtxSynchronize());
            MUST(cuMemsetD8(words_.address() + kWordsAt, 0, kWords * sizeof(uint32_t)));
        }
        now_ = {address(), address() + kWordsAt + run % kWords * sizeof(uint32_t), run, from, units_, step_};
        return now_;
    }

    const uint32_t units_;
    Buffer words_;
    DoorLaunch now_{};
    uint32_t done_ = 0;
    smt::DoorStep step_{5, 0, 256};
};

inline void wait_for(double seconds) {
    const auto begin = Clock::now();
    while (seconds_since(begin) < seconds) {
    }
}

inline double time_of(Bench& bench, CUstream stream, const DoorLaunch* door) {
    static CUevent begin = nullptr, end = nullptr;
    if (!begin) {
        MUST(cuEventCreate(&begin, 0));
        MUST(cuEventCreate(&end, 0));
    }
    MUST(cuEventRecord(begin, stream));
    bench.run(stream, door);
    MUST(cuEventRecord(end, stream));
    MUST(cuStreamSynchronize(stream));
    float ms = 0;
    MUST(cuEventElapsedTime(&ms, begin, end));
    return ms;
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}
