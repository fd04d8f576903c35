// What the parts of the fake driver share, beside what it has in common with the simulated device.
#pragma once

#include "runtime/device/hosted/backend.h"

namespace fake {

using namespace smt::runtime::device::hosted;

// Records the call. Not SUCCESS: it was told to fail, or a kernel has faulted (then for good).
CUresult record(const char* name, const char* format, va_list arguments);
void fault(CUresult error);
// Waits where the call has to wait for others (wide.cpp).
void await_others(const char* name);

void run(const Launch& launch);
CUresult load(const void* text, std::unique_ptr<Image>* image);
int attribute(CUdevice_attribute which);
void dump(const Function& faulting, CUfunction handle);  // a core dump, if the program wants one

}  // namespace fake
