// The NVRTC behind us. A program may hold several (its own and a framework's), each found where the program's
// own call would have found it.
#pragma once

#include <stddef.h>

extern "C" {
// As in nvrtc.h, which not every toolkit brings along.
typedef struct _nvrtcProgram* nvrtcProgram;
typedef int nvrtcResult;
}

namespace smt::interpose::capture {

inline constexpr nvrtcResult kSuccess = 0;         // NVRTC_SUCCESS
inline constexpr nvrtcResult kInternalError = 11;  // NVRTC_ERROR_INTERNAL_ERROR

// NVRTC's functions that we stand in front of, and those that we need for it.
struct Library {
    nvrtcResult (*create)(nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*);
    nvrtcResult (*destroy)(nvrtcProgram*);
    nvrtcResult (*add_name_expression)(nvrtcProgram, const char*);
    nvrtcResult (*compile)(nvrtcProgram, int, const char* const*);
    nvrtcResult (*get_ptx)(nvrtcProgram, char*);
    nvrtcResult (*get_cubin)(nvrtcProgram, char*);
    nvrtcResult (*get_ptx_size)(nvrtcProgram, size_t*);
    nvrtcResult (*get_cubin_size)(nvrtcProgram, size_t*);
    void* base;   // where it is loaded
};

inline constexpr int kLibraries = 4;

// The library that has `address`, which stays loaded from now on; -1: it lacks a function, or there are too
// many, or it is ourselves.
int library_at(void* address);
const Library& library(int index);

// The NVRTC that a call from `caller` would have reached without us; nullptr: none.
const Library* library_for(void* caller);
// The same for any name: where the linker would have found it, had we not been there.
void* symbol_behind_us(const char* name, void* caller);

}  // namespace smt::interpose::capture
