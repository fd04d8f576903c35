// Starts a thread of libsmt.so inside the application. The thread is detached and blocks all signals, so that
// the application's handlers run on its own threads. It lives as long as the process.
#pragma once

namespace smt::interpose {

// false: the system cannot create another thread.
bool start_own_thread(void* (*body)(void*), void* argument = nullptr);

}  // namespace smt::interpose
