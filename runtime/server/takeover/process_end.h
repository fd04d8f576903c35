// Waits for the end of a process that is no child: until what it had is given back, fetched by its parent or
// not.
#pragma once

#include <chrono>

namespace smt::runtime::server {

// A descriptor of the process. -1: it is gone, or the kernel has no such descriptors.
int open_process(int pid);

// `process`: of open_process(). False: it lives, and `patience` is over.
bool await_end_of(int pid, int process, std::chrono::milliseconds patience);

}  // namespace smt::runtime::server
