// What a program that has lost its server tells: one line on stderr, once in a process. Its calls return CUDA's error as ever.
#pragma once

namespace smt::interpose {

// Of the session: where its server's log lies, and which lines there are its own.
void remember_server(const char* key, int pid);

// `farewell`: the server's own words, or null: it said none, and its last line in the log is shown instead.
void say_lost(const char* farewell);

}  // namespace smt::interpose
