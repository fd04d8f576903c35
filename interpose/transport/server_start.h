// Finds the server of a GPU, and starts it when there is none.
//
//   runtime directory: <key>.sock   the server's listening socket
//                      <key>.start  flock()ed by the one client that starts the server
//                      <key>.log    the server's standard error
#pragma once

#include <cstddef>
#include <cstdint>

namespace smt::interpose {

inline constexpr size_t kPathBytes = 512;

struct SessionFailure;

// Writes the reason, printf-style, without allocating.
void explain(SessionFailure& failure, const char* format, ...) __attribute__((format(printf, 2, 3)));

// A connected control socket, or -1 and the reason: of the server that protocol/system_server.h says. Starts
// the user's own if none listens and waits for it until `deadline` (now_nanoseconds()).
int reach_server(const char* key, const char* visible, uint64_t deadline, bool* is_system,
                 SessionFailure& failure);

}  // namespace smt::interpose
