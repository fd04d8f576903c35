// The prologue of the door in PTX (door.h), for all that put it into code.
#pragma once

#include <string>
#include <string_view>

namespace smt {

// The first architecture whose PTX knows clusters.
inline constexpr int kFirstDoorWithClusters = 90;

// A scope from "{" on, without its end: the last line is the label KERNEL, which an admitted CTA reaches with
// all its threads. `parameter`: the name of the kernel's DoorLaunch. `clusters`: launches may have clusters.
// `tested`: it is reached by launches alone that may be stopped.
std::string door_text(std::string_view parameter, bool clusters, bool tested);

// The oldest PTX that knows the architecture and the prologue's instructions: 78 for 7.8.
constexpr int door_ptx_version(int architecture) {
    return architecture < 90 ? 78 : architecture < 100 ? 80 : 90;
}

}  // namespace smt
