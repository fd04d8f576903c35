// The treatment of a launch in the journal's words (journal::Entry::value): managed, or run in the program's
// original form, and why. An "unmanaged" launch cannot be preempted between two blocks.
//
// A kernel has words of its own ("managed by PTX", "unmanaged: it holds machine code only"). The words here
// are the reasons why one launch of a kernel with a managed form did not run in that form.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/journal/journal.h"

namespace smt::runtime::server {

enum class Exception : uint32_t {
    kPrints,
    kAttributes,
    kWidth,
    kGrid,
    kGraph,
    kNoRoom,
    kWaits,
    kWaitsAtDoor,
    kSmall,  // not called unmanaged: no preemption would have been requested
    kCount,
};

class ExceptionNames {
public:
    explicit ExceptionNames(journal::Writer& journal) {
        for (size_t i = 0; i < names_.size(); ++i) names_[i] = journal.name(kWords[i]);
    }
    uint32_t operator[](Exception which) const { return names_[static_cast<size_t>(which)]; }

private:
    static constexpr size_t kCount = static_cast<size_t>(Exception::kCount);
    static constexpr std::array<const char*, kCount> kWords = {
        "unmanaged: its image may print",
        "unmanaged: launched with attributes that a loop cannot give its blocks (cooperative, clusters, ...)",
        "unmanaged: warps leave early as a whole, and the width of its blocks is no multiple of 32",
        "unmanaged: its grid is none that the device takes",
        "in a graph: it runs there without its managed form",
        "unmanaged: its blocks leave no room for the managed form's",
        "unmanaged: its blocks may wait for each other, and all of them run at once",
        "has a door: its blocks may wait for each other, and all of them run at once",
        "as it is: it has a managed form, but no more blocks than there are multiprocessors, and its "
        "tenant is not preemptible",
    };
    std::array<uint32_t, kCount> names_;
};

}  // namespace smt::runtime::server
