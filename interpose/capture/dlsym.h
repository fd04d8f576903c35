// dlsym, exported: programs that open libnvrtc.so themselves look its functions up with it.
//
// Our dlsym answers for those of NVRTC's functions that we stand in front of, and only where the real one has
// an answer. Any other look-up jumps to the real dlsym with the caller's own return address on the stack,
// because RTLD_NEXT and RTLD_DEFAULT mean different things for different callers.
#pragma once

namespace smt::interpose::capture {

// glibc's, as called from libsmt.so. For our own look-ups of NVRTC's names.
void* real_dlsym(void* handle, const char* name);

}  // namespace smt::interpose::capture
