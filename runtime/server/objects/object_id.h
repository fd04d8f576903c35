// What ids of the driver's objects look like (handles.h): the client takes them for handles, and never looks
// inside.
#pragma once

#include <cstdint>

#include "runtime/server/objects/handles.h"

namespace smt::runtime::server {

// The id of the session's object of that number: numbers count from 1 and go on over all kinds. No address of
// a program or of the driver looks like one. Textures, surfaces and pools are known by other numbers.
constexpr uint64_t object_id(HandleKind kind, uint64_t number) {
    return 0x53ull << 56 | static_cast<uint64_t>(kind) << 48 | number << 4;
}

}  // namespace smt::runtime::server
