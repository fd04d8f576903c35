// Kernel times from the server's own journal; a simulated device fills it with times of its clock. The launch
// number is the high half of an entry's `value`.
#pragma once

#include <string>

#include "profiler/collect/times.h"
#include "runtime/journal/journal.h"

namespace smt::runtime::profiles {

class JournalTimes final : public profiler::collect::Times {
public:
    explicit JournalTimes(const std::string& path) : reader_(path) {}

    void before(uint64_t) override {}
    void after() override {}
    void collect(const Visit& visit) override {
        next_ = reader_.read(next_, [&](const journal::Entry& entry) {
            const uint64_t number = entry.value >> 32;
            if (entry.kind == journal::Kind::kLaunch && number && entry.end_ns > entry.start_ns)
                visit({number, entry.start_ns, entry.end_ns});
        });
    }

private:
    journal::Reader reader_;
    uint64_t next_ = 0;
};

}  // namespace smt::runtime::profiles
