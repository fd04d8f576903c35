// Device printf: what the tenant's kernels printed waits in the server until the client fetches it.
#pragma once

#include "interpose/process/session.h"

namespace smt::interpose {

// Called at the end of every synchronising call: copies pending device printf output to stdout.
void fetch_output();
inline void after_sync() {
    const protocol::SessionHeader* const shared = this_session().header();
    if (shared && shared->printf_pending.load(std::memory_order_acquire)) [[unlikely]]
        fetch_output();
}

}  // namespace smt::interpose
