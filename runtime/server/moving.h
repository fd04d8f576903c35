// What moving sessions' memory has in common (suspension.h).
#pragma once

#include <cstdint>
#include <string>

#include "runtime/server/borrowed.h"
#include "runtime/server/memory/chunk_mover.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

// Calls of the driver between are that session's.
class AsGuest {
public:
    explicit AsGuest(Session& session) : device_(session.device()) { device_.enter_thread(&session); }
    ~AsGuest() { device_.enter_thread(); }
    AsGuest(const AsGuest&) = delete;
    AsGuest& operator=(const AsGuest&) = delete;

private:
    device::Device& device_;
};

std::string in_mebibytes(uint64_t bytes);
std::string why_not_moved(const ChunkMover::Outcome& outcome);  // for people

}  // namespace smt::runtime::server
