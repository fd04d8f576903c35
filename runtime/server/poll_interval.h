// The pause between two looks at a word that a client's thread writes. It grows with each look, from 20 us to
// 0.5 ms.
#pragma once

#include <time.h>

namespace smt::runtime::server {

class PollInterval {
public:
    void sleep() {
        const timespec rest{0, ns_};
        nanosleep(&rest, nullptr);
        if (ns_ < kLongest) ns_ += ns_ / 4;
    }
    bool is_longest() const { return ns_ >= kLongest; }

private:
    static constexpr long kLongest = 500'000;  // ns
    long ns_ = 20'000;
};

}  // namespace smt::runtime::server
