// A thread of ours inside the application: detached, with all signals blocked, so that the application's
// handlers run where they always ran. It lives as long as the process.
#pragma once

namespace smt::interpose {

// False: the system has no room for another thread.
bool start_own_thread(void* (*body)(void*));

}  // namespace smt::interpose
