// The tenants of recordings (runtime/schedule/record.h), as programs that a virtual GPU can run.
//
// A stream is told by its kernel that took most of the time, the number of its launches, and the mean time
// between two of them in which it had no work. What a recording does not say:
//
// - the time of a launch alone: by estimate.h, or, if that has nothing but its priors, by how long the stream
//   was seen at work
// - what a kernel asks of a multiprocessor: as counted (`smt profile`); else its CTAs together fill the
//   pipeline, so that two such kernels on the same multiprocessors each go at half of the rate
// - device memory, and the targets of services: a service's launches count as other launches do
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/schedule/record.h"
#include "tools/fleet/virtual_gpu.h"

namespace smt::fleet {

struct Tenant {
    std::string name;
    std::vector<Program> streams;  // what they launch in the recording; arrivals from the tenant's first one
    double alone_ns = 0;           // for all that, on a GPU of its own
    double gpu_ns = 0;  // of it that it had the GPU: half of the multiprocessors for 1 ms is 0.5 ms
    double demand() const { return alone_ns > 0 ? gpu_ns / alone_ns : 0; }
};

// Its programs on a GPU: `rounds` times what it launches in the recording, from `arrives_ns` on. Streams are
// numbered from `id` on; `session` is its number.
std::vector<Program> programs_of(const Tenant& tenant, uint64_t rounds, double arrives_ns, uint64_t id,
                                 uint32_t session);

// What that takes on a GPU of its own.
double time_alone_ns(const Tenant& tenant, uint64_t rounds, const Device& device);
// Sets what is known of the tenant alone.
void learn(Tenant& tenant, const Device& device);

class TenantReader {
public:
    // Throws std::runtime_error: the file cannot be read, or is of another device than those before.
    void read(const std::string& path);
    const Device& device() const { return device_; }
    // Of all files.
    std::vector<Tenant> tenants() const;

private:
    struct Launches {  // of one kernel, told apart by its blocks
        uint64_t count = 0;
        double at_work_ns = 0;
        Kernel last;
    };
    struct Stream {
        std::map<uint64_t, Launches> kernels;  // by blocks
        uint64_t launch = 0;                   // the last seen
        uint64_t launches = 0, pauses = 0;
        double idle_ns = 0;
        TimePoint first{}, seen{};  // the first and the last decision that saw it,
        uint64_t seen_by = 0;       // by number
        bool here = false, ran = false;
    };
    using Session = std::tuple<size_t, uint32_t, std::string>;  // file, session, tenant

    void note(const Record& record);
    void note(const Kernel& kernel, TimePoint now);
    Program program_of(const Stream& stream, TimePoint begin) const;

    Device device_;
    size_t files_ = 0;
    uint64_t decisions_ = 0;
    std::map<Session, std::map<uint64_t, Stream>> sessions_;
};

}  // namespace smt::fleet
