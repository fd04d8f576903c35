// Which tenants are kept apart from others for what their kernels have done (quarantine.h), and for how long.
//
// A fault while kernels of one tenant alone were under way is that tenant's: it is kept apart for kBlamed.
// One while those of several were under way is one of theirs: all of them are kept apart for kSuspected, so
// that the next fault is one of one tenant. When it is known whose a fault was, those that were suspects with
// it are cleared. Times are nanoseconds of CLOCK_MONOTONIC, the same in all processes of the machine. No
// threads, no locks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "runtime/protocol/state.h"

namespace smt::runtime::server {

class QuarantineList {
public:
    static constexpr uint64_t kSecond = 1'000'000'000;
    static constexpr uint64_t kSuspected = 60 * kSecond, kBlamed = 600 * kSecond;
    enum class Why : uint8_t { kNone, kSuspected, kBlamed };

    // Kernels of those tenants were under way.
    void fault(const std::set<std::string>& suspects, uint64_t now) {
        if (suspects.size() == 1) return blame(*suspects.begin(), now);
        forget_old(now);
        for (const std::string& tenant : suspects) {
            Entry& entry = entries_[tenant];
            entry.until = std::max(entry.until, now + kSuspected);
            entry.fault = now;
        }
    }
    void blame(const std::string& tenant, uint64_t now) {
        forget_old(now);
        const auto found = entries_.find(tenant);
        if (found != entries_.end() && !found->second.blamed)
            std::erase_if(entries_, [fault = found->second.fault](const auto& each) {
                return !each.second.blamed && each.second.fault == fault;
            });
        entries_[tenant] = {now + kBlamed, now, 1};
    }
    Why why(const std::string& tenant, uint64_t now) const {
        const auto found = entries_.find(tenant);
        if (found == entries_.end() || found->second.until <= now) return Why::kNone;
        return found->second.blamed ? Why::kBlamed : Why::kSuspected;
    }
    void save(protocol::StateWriter& out) const {
        out.scalar<uint64_t>(entries_.size());
        for (const auto& [tenant, entry] : entries_) {
            out.text(tenant);
            out.scalar(entry);
        }
    }
    void restore(protocol::Reader& in, uint64_t now) {
        for (uint64_t left = in.scalar<uint64_t>(); left > 0 && in.good(); --left) {
            std::string tenant = protocol::take_text(in);
            entries_[std::move(tenant)] = in.scalar<Entry>();
        }
        // Of a machine that has started again since: its clock begins anew.
        std::erase_if(entries_, [&](const auto& each) { return each.second.until > now + kBlamed; });
    }

private:
    struct Entry {
        uint64_t until = 0;
        uint64_t fault = 0;   // when it was; of several suspects the same
        uint64_t blamed = 0;  // 0 or 1
    };
    void forget_old(uint64_t now) {
        std::erase_if(entries_, [now](const auto& each) { return each.second.until <= now; });
    }

    std::map<std::string, Entry> entries_;
};

}  // namespace smt::runtime::server
