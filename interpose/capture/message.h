// The way of what was captured to the server.
#pragma once

#include <stdint.h>

#include "interpose/capture/bytes.h"

namespace smt::interpose::capture {

// Takes the message and sends it, or keeps it until there is a session: no more than kMostWaiting of them and
// kMostCapturedBytes together, for a program may compile without ever using a GPU. Does not wait.
inline constexpr int kMostWaiting = 64;
void show(Bytes& message);

// The session is open now.
void show_waiting();

// How many the server was sent, so that it can wait for those (protocol::ModuleLoad).
uint32_t shown();

void forget_messages_in_child();

}  // namespace smt::interpose::capture
