// Properties of a device that the models need, from the driver's attributes.
//
// - Instructions a cycle: four warp schedulers on each multiprocessor, one instruction each (all
//   architectures since Volta; CUDA C++ Programming Guide, compute capabilities 7.x and on).
// - Requests a cycle: the memory's bandwidth in sectors of 32 bytes, over the multiprocessors' clock.
// - The Markov model's memory: that of one multiprocessor, in requests of 128 bytes (a warp's coalesced
//   access). Its latency without load is kLatency cycles. Measured: 700 on an H200
//   (tools/bench/timing_shape); devices of its time are close.
#pragma once

#include <string>

#include "profiler/models/co_schedule.h"
#include "profiler/models/utilization.h"
#include "runtime/device/device.h"

namespace smt::runtime::profiles {

inline constexpr double kLatency = 700;
inline constexpr int kWarpSchedulers = 4;
inline constexpr double kSectorBytes = 32, kRequestBytes = 128;

struct DeviceFacts {
    std::string name;  // equal for devices of equal speed
    int multiprocessors = 0;
    profiler::models::Peak peak;
    profiler::models::Multiprocessor model;  // bandwidth 0: the driver does not report it
};

// The Markov model of a device with these peaks.
profiler::models::Multiprocessor model_of(const profiler::models::Peak& peak, int multiprocessors);

DeviceFacts read_facts(const device::Device& device);

}  // namespace smt::runtime::profiles
