// Sets of multiprocessors that work can be confined to: the driver's green contexts. A stream made in one runs
// everything there, kernels as they are; it is a stream of the one context otherwise (tests/gpu/probes/green_contexts.cpp).
//
// The device is cut into groups, the smallest parts that the driver makes (8 on an H200), and a set is a row of
// groups. Tenants get rows that few others have. Sets are kept: to make one takes a millisecond on an idle device,
// waits for its work on one that is not (device/cuda/context_wide.h), and takes some megabytes; and the same few
// are asked for again and again.
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
    // Their numbers, in order, as kernels see them (%smid): found by a kernel that says where it is, since nobody
    // promises that a part of the device keeps them. Fewer than count() if the device was too busy to tell.
    const std::vector<uint32_t>& multiprocessors() const { return multiprocessors_; }
    std::string text() const;   // "32 multiprocessors (0-7, 16-23, 32-39, 48-55)"

private:
    friend class SmSets;
    unsigned count_ = 0;
    CUgreenCtx context_ = nullptr;
    std::vector<uint32_t> multiprocessors_;
};
using SmSetPointer = std::shared_ptr<const SmSet>;

// Any thread with the context current; a set's first user waits while it is made. Outlives every set.
class SmSets {
public:
    explicit SmSets(device::Device& device) : device_(device), driver_(device.driver()) {}
    SmSets(const SmSets&) = delete;
    SmSets& operator=(const SmSets&) = delete;

    // For one tenant, as long as it keeps it: at least so many, those that fewest others have. Null, and why.
    SmSetPointer take(unsigned least, std::string* why);
    // The same set for everybody who asks for so many: at most that many, beginning with the first.
    SmSetPointer first(unsigned most, std::string* why);

    // A stream that runs where the set says; null: everywhere.
    CUresult make_stream(const SmSet* set, int priority, CUstream* stream) const;

private:
    using Row = std::pair<size_t, size_t>;   // first group, groups
    bool open(std::string* why);             // with mutex_, as all below
    std::shared_ptr<SmSet> find(Row row, std::string* why);
    CUresult make(Row row, SmSet* set);
    bool open_probe();
    void calibrate(SmSet& set);
    CUresult await(CUstream stream, std::chrono::steady_clock::time_point end) const;   // NOT_READY: not by then
    Row least_used(size_t groups) const;

    device::Device& device_;
    const DriverApi& driver_;
    std::mutex mutex_;
    bool opened_ = false;
    std::string problem_;                    // why there are none
    std::vector<CUdevResource> groups_;
    unsigned group_size_ = 0;
    std::vector<int> users_;                 // of each group
    std::map<Row, std::shared_ptr<SmSet>> sets_;
    CUfunction where_ = nullptr;             // the probe
    CUdeviceptr seen_ = 0;                   // what it writes
};

// As people write them: "0-7, 16".
std::string ranges(const std::vector<uint32_t>& numbers);

}  // namespace smt::runtime::dispatch
