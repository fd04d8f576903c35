// Sends captured sources and images to the server.
#pragma once

#include <stdint.h>

#include "interpose/capture/bytes.h"

namespace smt::interpose::capture {

// Takes ownership of the message and sends it, or keeps it until there is a session. At most kMostWaiting
// messages and kMostCapturedBytes in total are kept, since a program may compile without ever using a GPU.
// Does not wait.
inline constexpr int kMostWaiting = 64;
void show(Bytes& message);

// Sends the kept messages. Called once the session is open.
void show_waiting();

// The number of messages sent, so that the server can wait for them (protocol::ModuleLoad).
uint32_t shown();

void forget_messages_in_child();

}  // namespace smt::interpose::capture
