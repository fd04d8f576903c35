// What the worker gives up before it reads a tenant's text: its work is to read files, compute, and answer on
// its socket.
//
//   limits     memory, CPU time for each order, no files written, no core dumps. Not RLIMIT_NPROC: it counts
//   all of the
//              user's processes; the filter lets the worker start threads and no processes
//   Landlock   reads files anywhere (sources include from any folder of their program's), writes, makes and
//   runs none;
//              binds and connects no sockets; signals and looks into no process outside
//   seccomp    a list of system calls; what is not on it does not exist (ENOSYS). No sockets, no exec, no
//   ptrace, no
//              files opened for writing
//
// Each holds without the others. NVRTC and nvJitLink are libraries and need no more.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace smt::runtime::jit {

// For good, and for all that it loads later. Returned is what this kernel does not offer, in words; empty:
// all is in force.
std::string confine(uint64_t memory);

// So much CPU time from now on; then the process ends (SIGXCPU).
void allow_cpu(std::chrono::seconds time);

}  // namespace smt::runtime::jit
