// NVRTC's functions as the program calls them: one exported set for programs that link libnvrtc.so, and one
// set for each library for programs that look the functions up (dlsym.h).
#pragma once

namespace smt::interpose::capture {

// Whether capture is on (SMT_CAPTURE).
bool capturing();

// libsmt.so's function of that name in front of library `index`; kExported: the exported one. nullptr: the
// function is not intercepted.
inline constexpr int kExported = -1;
void* captured_function(const char* name, int index);

}  // namespace smt::interpose::capture
