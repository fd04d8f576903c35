// The load of the host's cores, for threads that wait for the device or for a program. Any thread.
//
// Waking a sleeping thread takes tens of microseconds, so a waiting thread polls. If the cores are
// oversubscribed polling is wrong: the kernel schedules a thread that yields or polls behind all computing
// threads, for milliseconds each time, and programs do compute on all cores. A thread that sleeps gets a core
// when it wakes up. Measured: docs/results.md#busy-cores-yield.
#pragma once

#include <cstdint>

namespace smt::runtime::device {

// Whether the process may run on more than two cores. With fewer a polling thread would occupy the core that
// the awaited thread needs.
bool cores_to_spare();

// Whether at the last reading more threads of this machine were runnable than it has cores. A reading is
// valid for 10 ms, a positive one for 100 ms. Polling threads count as runnable. A cpuset that covers a part
// of the machine is not considered. Takes tens of nanoseconds, with a reading some microseconds.
bool cores_scarce();

// Pauses the calling thread so that others can run: some microseconds, or 50 us if cores are few or scarce.
void nap();

// Requests short time slices for the calling thread and all threads and processes that it starts from now on.
// A thread with short slices runs soon after it wakes up, without waiting for the end of a computing thread's
// slice (2.8 ms and more). Its share of a core is unchanged. Linux 6.12 and later grant the request without
// privileges; older versions ignore it. False: the request is forbidden, and nothing changes.
bool ask_for_short_turns();

// The calling thread's time slice in nanoseconds; 0: the kernel does not report it.
uint64_t turn_ns();

// The same from the text of /proc/loadavg, for tests and for the functions above.
bool cores_scarce(const char* load, int cores);

}  // namespace smt::runtime::device
