// The host's cores, for threads that wait for the device or for a program.
//
// To wake a sleeper takes tens of microseconds, so who waits looks again and again instead. Where others want the cores that is wrong: who
// yields again and again, or looks without end, is put behind everybody who computes, for milliseconds each time, and programs do compute on all
// cores (to check something, or to prepare the next batch). Who sleeps meanwhile has a core when it wakes up. On an H200's host with a process that computes on each
// of its 16 cores a request of 0.05 ms took 4 ms so, where everybody yielded (docs/results.md#busy-cores-yield).
#pragma once

#include <cstdint>

namespace smt::runtime::device {

// More than two. With fewer whoever looks on would keep the others from the very core that they need.
bool cores_to_spare();

// As of a moment ago more threads of this machine wanted to run than it has cores; those that look are among them. Says nothing of a cpuset that is a part of the machine. Takes
// tens of nanoseconds, and some microseconds every ten milliseconds.
bool cores_scarce();

// A moment in which others run: some microseconds, or where cores are few or scarce 50.
void nap();

// Asks the kernel that the calling thread, and each thread and process that it starts from now on, be given cores in short turns: who has slept then comes before whoever has computed for
// as long, and needs not wait until the turn of that one is over (2.8 ms and more). Its share of a core is the same. Linux 6.12 and later do so for everybody
// who asks; older ones take no notice, and where it is forbidden nothing changes: false.
bool ask_for_short_turns();

// How long the calling thread's turns are, in nanoseconds; 0 where the kernel does not say.
uint64_t turn_ns();

// From what /proc/loadavg says.
bool cores_scarce(const char* load, int cores);

}  // namespace smt::runtime::device
