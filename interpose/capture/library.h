// The NVRTC libraries behind libsmt.so. A program may hold several (its own and a framework's). Each is found
// where the program's own call would have found it.
#pragma once

#include <stddef.h>

extern "C" {
// As in nvrtc.h, which not every toolkit includes.
typedef struct _nvrtcProgram* nvrtcProgram;
typedef int nvrtcResult;
}

namespace smt::interpose::capture {

inline constexpr nvrtcResult kSuccess = 0;         // NVRTC_SUCCESS
inline constexpr nvrtcResult kInternalError = 11;  // NVRTC_ERROR_INTERNAL_ERROR

// The NVRTC functions that capture/ intercepts, and those that interception needs.
struct Library {
    nvrtcResult (*create)(nvrtcProgram*, const char*, const char*, int, const char* const*,
                          const char* const*);
    nvrtcResult (*destroy)(nvrtcProgram*);
    nvrtcResult (*add_name_expression)(nvrtcProgram, const char*);
    nvrtcResult (*compile)(nvrtcProgram, int, const char* const*);
    nvrtcResult (*get_ptx)(nvrtcProgram, char*);
    nvrtcResult (*get_cubin)(nvrtcProgram, char*);
    nvrtcResult (*get_ptx_size)(nvrtcProgram, size_t*);
    nvrtcResult (*get_cubin_size)(nvrtcProgram, size_t*);
    void* base;  // the load address
};

inline constexpr int kLibraries = 4;

// The index of the library that contains `address`; the library stays loaded from then on. -1: it lacks a
// function, there are kLibraries already, or it is libsmt.so itself.
int library_at(void* address);
const Library& library(int index);

// The NVRTC that a call from `caller` would reach without libsmt.so; nullptr: none.
const Library* library_for(void* caller);
// The same for any name: the symbol that the linker would find without libsmt.so.
void* symbol_behind_us(const char* name, void* caller);

}  // namespace smt::interpose::capture
