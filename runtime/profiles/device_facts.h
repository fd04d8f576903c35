// What the models want to know of a device, from the driver's attributes.
//
// - Instructions a cycle: four warp schedulers on each multiprocessor, an instruction each (all architectures since
//   Volta; CUDA C++ Programming Guide, compute capabilities 7.x and on).
// - Requests a cycle: the memory's bandwidth in sectors of 32 bytes, over the multiprocessors' clock.
// - The Markov model's memory: of one multiprocessor, in requests of 128 bytes (a warp's coalesced access); its latency without load is
//   kLatency cycles, measured on an H200 (700 by tools/bench/timing_shape) and near that on others of its time.
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
    std::string name;   // the same for devices that are as fast
    int multiprocessors = 0;
    profiler::models::Peak peak;
    profiler::models::Multiprocessor model;   // without bandwidth: the driver does not say it
};

// Of a device with such peaks.
profiler::models::Multiprocessor model_of(const profiler::models::Peak& peak, int multiprocessors);

DeviceFacts read_facts(const device::Device& device);

}  // namespace smt::runtime::profiles
