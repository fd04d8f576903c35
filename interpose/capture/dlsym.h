// The exported dlsym. Programs that open libnvrtc.so themselves look its functions up with dlsym.
//
// Contract: our dlsym answers for the NVRTC functions that capture/ intercepts, and only where the real dlsym
// has an answer. Any other look-up jumps to the real dlsym with the caller's own return address on the stack,
// because the meaning of RTLD_NEXT and RTLD_DEFAULT depends on the caller.
#pragma once

namespace smt::interpose::capture {

// glibc's dlsym, called from libsmt.so; for libsmt.so's own look-ups of NVRTC names.
void* real_dlsym(void* handle, const char* name);

}  // namespace smt::interpose::capture
