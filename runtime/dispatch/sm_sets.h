// Sets of SMs that work can be confined to: green contexts of the driver. A stream made in one runs all its
// work there, unmodified kernels included, and is otherwise a stream of the shared context
// (tools/bench/probes/green_contexts.cpp).
//
// The device is divided into groups, the smallest parts that the driver makes (8 SMs on an H200). A set is a
// contiguous row of groups. A tenant gets the row with the fewest other users. Sets are kept: making one
// takes a millisecond on an idle device, waits for the work of a busy one (device/cuda/context_wide.h), and
// takes some megabytes, and the same few sets are requested repeatedly.
#pragma once

#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/device.h"

namespace smt::runtime::dispatch {

class SmSet {
public:
    unsigned count() const { return count_; }
    // SM numbers as kernels see them (%smid), in order. Measured by a probe kernel, because the driver does
    // not promise that a part of the device keeps them. Fewer than count() if the device was too busy to
    // tell.
    const std::vector<uint32_t>& multiprocessors() const { return multiprocessors_; }
    std::string text() const;  // "32 multiprocessors (0-7, 16-23, 32-39, 48-55)"

private:
    friend class SmSets;
    unsigned count_ = 0;
    CUgreenCtx context_ = nullptr;
    std::vector<uint32_t> multiprocessors_;
};
using SmSetPointer = std::shared_ptr<const SmSet>;

// Any thread with the context current. The first user of a set waits while it is made. Outlives every set.
class SmSets {
public:
    explicit SmSets(device::Device& device) : device_(device), driver_(device.driver()) {}
    SmSets(const SmSets&) = delete;
    SmSets& operator=(const SmSets&) = delete;

    // For one tenant, as long as it keeps the pointer: at least `least` SMs, those with the fewest other
    // users. Null: none, and `why` says why.
    SmSetPointer take(unsigned least, std::string* why);
    // The same set for all callers with the same number: at most `most` SMs, from the first one on. Null:
    // none, and `why` says why.
    SmSetPointer first(unsigned most, std::string* why);
    // The same if it has been made and no set is being made now, otherwise null. Does not wait.
    SmSetPointer first_made(unsigned most);

    // Makes a stream that runs on `set`; null: on all SMs.
    CUresult make_stream(const SmSet* set, int priority, CUstream* stream) const;

private:
    using Row = std::pair<size_t, size_t>;  // first group, groups
    bool open(std::string* why);            // mutex_ held, as in all below
    std::shared_ptr<SmSet> find(Row row, std::string* why);
    CUresult make(Row row, SmSet* set);
    bool open_probe();
    void calibrate(SmSet& set);
    // CUDA_ERROR_NOT_READY: timeout.
    CUresult await(CUstream stream, std::chrono::steady_clock::time_point end) const;
    Row least_used(size_t groups) const;

    device::Device& device_;
    const DriverApi& driver_;
    std::mutex mutex_;
    bool opened_ = false;
    std::string problem_;  // why there are no sets
    std::vector<CUdevResource> groups_;
    unsigned group_size_ = 0;
    std::vector<int> users_;  // per group
    std::map<Row, std::shared_ptr<SmSet>> sets_;
    CUfunction where_ = nullptr;  // the probe kernel
    CUdeviceptr seen_ = 0;        // its output, in device memory
};

// Numbers as ranges: "0-7, 16".
std::string ranges(const std::vector<uint32_t>& numbers);

}  // namespace smt::runtime::dispatch
