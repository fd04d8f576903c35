// What the dispatcher and its streams write to the journal: decisions, stops, mappings, and notes. Any
// thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/dispatch/kernel_times.h"
#include "runtime/dispatch/placement.h"
#include "runtime/dispatch/tenants.h"
#include "runtime/dispatch/work.h"

namespace smt::runtime::dispatch {

class Notes {
public:
    Notes(device::Device& device, journal::Writer& journal) : device_(device), journal_(journal) {}

    void decision(const Tenant& tenant, const std::string& reason) {
        line(journal::Kind::kDecision, tenant, reason);
    }
    void note(const Tenant& tenant, const std::string& text) { line(journal::Kind::kNote, tenant, text); }
    void refused(const Tenant& tenant, CUresult why);  // the driver launched a kernel on all SMs only
    // If it took long by the host's clock. Calls of the driver wait for each other, for example for memory
    // that is mapped or code that is loaded. What waits for the dispatcher waits with it.
    void note_if_long(const Tenant& tenant, const char* what, schedule::TimePoint since);
    // A stop that was decided at `said_ns`; the last worker had left at `over_ns`.
    void stopped(const Tenant& tenant, uint32_t kernel_name, uint64_t said_ns, uint64_t over_ns,
                 const LongestTicket& longest, uint64_t lost);  // `lost`: blocks begun anew
    // The kernel's saturating CTA count: `ctas` per SM, of the `fits` that fit (saturating_ctas.h).
    void saturating(const Tenant& tenant, const std::string& kernel, uint32_t ctas, uint32_t fits);
    void mappings(const Tenant& tenant, uint32_t kernel_name, const std::vector<smt::Mapping>& mappings);
    // Of a kernel on a stream, so far.
    void gpu_time(const Tenant& tenant, uint64_t stream, const KernelTimes::Which& which,
                  const KernelTimes::Sum& sum);
    void placed(const Tenant& tenant, const Placement::Sums& sums);  // of a stream's runs, at its end

private:
    void line(journal::Kind kind, const Tenant& tenant, const std::string& text);
    journal::Entry entry(journal::Kind kind, const Tenant& tenant) const;
    void write(const journal::Entry& entry) { device_.write(journal_, entry, nullptr); }

    device::Device& device_;
    journal::Writer& journal_;
};

}  // namespace smt::runtime::dispatch
