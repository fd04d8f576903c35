// Which kernel has how many CTAs on which SM: the bin packing of compact.cpp, which says by what rules.
#pragma once

#include <vector>

#include "runtime/schedule/estimate.h"

namespace smt::runtime::schedule {

struct Placed {
    const Kernel* kernel = nullptr;  // of this snapshot
    uint64_t id = 0;
    std::shared_ptr<const Profile> profile;
    Resources cta;   // as the kernel says it
    Quota table;     // by SM; what it has
    Quota asked;     // of that, without the room that nobody else wanted
    int total = 0;   // of `table`
    Resources each;  // of a CTA, as it is reckoned with
    int most = 1;    // CTAs on an SM
};

class Placement {
public:
    // A snapshot's kernels: begin, each of them once, end. end() says whether any came, went or is another
    // one than before, and forgets those that went.
    void begin();
    const Placed& note(const Kernel& kernel);
    bool end();

    // Everybody is placed anew, this one first.
    void replace(const Device& device, uint64_t first);
    // Who has a place keeps it, but for the room that nobody wanted.
    void place(const Device& device, uint64_t first);

    const std::vector<Placed>& rows() const { return rows_; }  // by arrival

private:
    struct Sm {
        Resources free;
        bool used = false;
    };
    void put(Placed& row, size_t sm, int ctas);
    void place_known(Placed& row);
    void place_unknown(Placed& row, size_t parts);
    void grow(const Device& device);

    std::vector<Placed> rows_;
    bool changed_ = false;
    Resources limits_;
    std::vector<Sm> sms_;
};

}  // namespace smt::runtime::schedule
