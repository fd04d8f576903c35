// How often tenants' kernels have lost the context, while other processes take over: each time costs the
// others a pause.
//
// kFree faults of a tenant within an hour have no consequence. After each further one it is refused for a
// time that doubles, from kFirst to kLongest. Counted are faults of which it is known whose they were. Times
// are nanoseconds of CLOCK_MONOTONIC, the same in all processes of the machine. Any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "runtime/protocol/state.h"

namespace smt::runtime::server {

class Offences {
public:
    static constexpr uint64_t kSecond = 1'000'000'000;
    static constexpr uint64_t kRemembered = 3600 * kSecond;
    static constexpr size_t kFree = 3;
    static constexpr uint64_t kFirst = 15 * kSecond, kLongest = 3600 * kSecond;

    void add(const std::string& tenant, uint64_t now) {  // empty: it is not known whose it was
        if (tenant.empty()) return;
        std::lock_guard lock(mutex_);
        forget_old(now);
        faults_[tenant].push_back(now);
    }
    // Seconds for which the tenant is refused from now on; 0: it is not.
    uint64_t refused_seconds(const std::string& tenant, uint64_t now) {
        std::lock_guard lock(mutex_);
        forget_old(now);
        const auto found = faults_.find(tenant);
        if (found == faults_.end() || found->second.size() <= kFree) return 0;
        const size_t beyond = std::min<size_t>(found->second.size() - kFree - 1, 16);
        const uint64_t until = found->second.back() + std::min(kFirst << beyond, kLongest);
        return until > now ? (until - now + kSecond - 1) / kSecond : 0;
    }
    size_t count(const std::string& tenant) const {
        std::lock_guard lock(mutex_);
        const auto found = faults_.find(tenant);
        return found == faults_.end() ? 0 : found->second.size();
    }
    void save(protocol::StateWriter& out) const {
        std::lock_guard lock(mutex_);
        out.scalar<uint64_t>(faults_.size());
        for (const auto& [tenant, times] : faults_) {
            out.text(tenant);
            out.list(std::vector<uint64_t>(times.begin(), times.end()));
        }
    }
    void restore(protocol::Reader& in, uint64_t now) {
        std::lock_guard lock(mutex_);
        for (uint64_t left = in.scalar<uint64_t>(); left > 0 && in.good(); --left) {
            std::string tenant = protocol::take_text(in);
            std::vector<uint64_t> times = protocol::take_list<uint64_t>(in);
            std::erase_if(times, [now](uint64_t each) { return each > now; });  // the machine started again
            if (!times.empty()) faults_[std::move(tenant)].assign(times.begin(), times.end());
        }
    }

private:
    void forget_old(uint64_t now) {
        for (auto each = faults_.begin(); each != faults_.end();) {
            while (!each->second.empty() && now - each->second.front() > kRemembered)
                each->second.pop_front();
            each = each->second.empty() ? faults_.erase(each) : std::next(each);
        }
    }

    mutable std::mutex mutex_;
    std::map<std::string, std::deque<uint64_t>> faults_;  // by tenant, oldest first
};

}  // namespace smt::runtime::server
