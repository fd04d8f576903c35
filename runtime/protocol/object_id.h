// What ids of the driver's objects look like (runtime/server/objects/handles.h): the client takes them for
// handles. Of what is inside it reads which of its sessions an id is of.
#pragma once

#include <cstdint>

#include "runtime/protocol/layout.h"

namespace smt::protocol {

// The id of the session's object of that number. No address of a program or of the driver looks like one.
// Textures, surfaces and pools are known by other numbers.
constexpr uint64_t object_id(uint32_t kind, uint64_t number) {
    return 0x53ull << 56 | uint64_t{kind} << 48 | number << 4;
}

// A session's numbers go on over all kinds, from this one + 1. Arenas of one process are at different places,
// so no two of its sessions have an id in common.
constexpr uint64_t first_number(uint64_t arena_base) {
    constexpr uint64_t kNumbers = 1ull << 44, kAddresses = 1ull << 47;  // that there are
    return arena_base / kArenaBytes * (kNumbers / (kAddresses / kArenaBytes));
}

constexpr bool is_of_session(uint64_t id, uint64_t arena_base) {
    const uint64_t number = (id & 0xffff'ffff'ffffull) >> 4;
    return id >> 56 == 0x53 && number >= first_number(arena_base) &&
           number < first_number(arena_base + kArenaBytes);
}

}  // namespace smt::protocol
