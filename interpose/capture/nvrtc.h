// NVRTC's functions as the program calls them: exported for those who link libnvrtc.so, and one set for each
// library for those who look them up (dlsym.h).
#pragma once

namespace smt::interpose::capture {

// SMT_CAPTURE.
bool capturing();

// Ours of that name in front of library `index`; kExported: the exported one. nullptr: we do not stand in front
// of that function.
inline constexpr int kExported = -1;
void* captured_function(const char* name, int index);

}  // namespace smt::interpose::capture
