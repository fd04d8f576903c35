// When a program calls the CUDA driver, natively or through libsmt.so: a library to preload, for
// start_trace.py.
//
//     START_MARKS=PREFIX LD_PRELOAD=bench_start_marks.so[:libsmt.so] PROGRAM
//
// As the program ends it writes PREFIX.PID, with times of CLOCK_MONOTONIC in nanoseconds:
//
//     loaded NS                    this library; the program's other libraries may follow
//     call NAME BEGIN END THREAD   the first kMostCalls of them
//     ending NS                    destructors run
//
// Every function that the program finds by dlsym() or cuGetProcAddress() is behind a wrapper that takes the
// time and passes on twelve words. None of the driver's functions has more arguments, and only those of
// texture references take a floating-point value. What libsmt.so itself finds stays as it is.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <utility>

namespace {

constexpr size_t kMostFunctions = 1024;
constexpr uint32_t kMostCalls = 1 << 16;

using Word = uintptr_t;
using Any = Word (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
using Dlsym = void* (*)(void*, const char*);

struct Function {
    char name[64];
    Any real;
};
struct Call {
    uint64_t begin, end;
    const char* name;
    int thread;
};

Function functions[kMostFunctions];
size_t known = 0;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // of the two above
Call calls[kMostCalls];
std::atomic<uint32_t> made{0};
uint64_t loaded = 0;
Dlsym real_dlsym = nullptr;
Any real_lookup = nullptr, real_older_lookup = nullptr;

uint64_t now() {
    timespec at{};
    clock_gettime(CLOCK_MONOTONIC, &at);
    return static_cast<uint64_t>(at.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(at.tv_nsec);
}

void note(const char* name, uint64_t begin) {
    const uint64_t end = now();
    const uint32_t at = made.fetch_add(1, std::memory_order_relaxed);
    if (at < kMostCalls) calls[at] = {begin, end, name, gettid()};
}

template <size_t I>
Word wrapper(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k, Word l) {
    const uint64_t begin = now();
    const Word result = functions[I].real(a, b, c, d, e, f, g, h, i, j, k, l);
    note(functions[I].name, begin);
    return result;
}

template <size_t... I>
constexpr std::array<Any, sizeof...(I)> wrappers_of(std::index_sequence<I...>) {
    return {wrapper<I>...};
}
constexpr auto kWrappers = wrappers_of(std::make_index_sequence<kMostFunctions>());

void* wrapped(const char* name, void* real) {
    if (!real || strlen(name) >= sizeof functions[0].name) return real;
    const Any function = reinterpret_cast<Any>(real);
    pthread_mutex_lock(&mutex);
    size_t at = 0;
    while (at < known && (functions[at].real != function || strcmp(functions[at].name, name) != 0)) ++at;
    if (at == known && known < kMostFunctions) {
        strcpy(functions[at].name, name);
        functions[at].real = function;
        ++known;
    }
    pthread_mutex_unlock(&mutex);
    return at < kMostFunctions ? reinterpret_cast<void*>(kWrappers[at]) : real;
}

void* filtered(const char* name, void* real);

// cuGetProcAddress_v2 and the one before it: the second argument is where the function goes.
Word look_up(Any lookup, Word name, Word place, Word version, Word flags, Word status) {
    const uint64_t begin = now();
    const Word result = lookup(name, place, version, flags, status, 0, 0, 0, 0, 0, 0, 0);
    note("cuGetProcAddress", begin);
    void** found = reinterpret_cast<void**>(place);
    const char* wanted = reinterpret_cast<const char*>(name);
    if (static_cast<uint32_t>(result) != 0 || !found || !*found) return result;
    // By this name there is the newer one, from CUDA 12 on.
    const bool newer = strcmp(wanted, "cuGetProcAddress") == 0 && static_cast<int>(version) >= 12000;
    *found = filtered(newer ? "cuGetProcAddress_v2" : wanted, *found);
    return result;
}

Word newer_lookup(Word name, Word place, Word version, Word flags, Word status) {
    return look_up(real_lookup, name, place, version, flags, status);
}

Word older_lookup(Word name, Word place, Word version, Word flags) {
    return look_up(real_older_lookup, name, place, version, flags, 0);
}

void* filtered(const char* name, void* real) {
    if (strcmp(name, "cuGetProcAddress_v2") == 0) {
        real_lookup = reinterpret_cast<Any>(real);
        return reinterpret_cast<void*>(newer_lookup);
    }
    if (strcmp(name, "cuGetProcAddress") == 0) {
        real_older_lookup = reinterpret_cast<Any>(real);
        return reinterpret_cast<void*>(older_lookup);
    }
    // Its tables are compared by their addresses.
    return strcmp(name, "cuGetExportTable") == 0 ? real : wrapped(name, real);
}

Dlsym find_dlsym() {
    void* found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!found) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return real_dlsym = reinterpret_cast<Dlsym>(found);
}

bool of_driver(const char* name) {
    return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

bool in_library(const void* address, const char* part) {
    Dl_info info{};
    return dladdr(address, &info) && info.dli_fname && strstr(info.dli_fname, part);
}

__attribute__((constructor)) void begin() { loaded = now(); }

__attribute__((destructor)) void end() {
    const uint64_t ending = now();
    const char* prefix = getenv("START_MARKS");
    char path[4096];
    if (!prefix || snprintf(path, sizeof path, "%s.%d", prefix, getpid()) >= static_cast<int>(sizeof path))
        return;
    FILE* file = fopen(path, "we");
    if (!file) return;
    fprintf(file, "loaded %ju\n", static_cast<uintmax_t>(loaded));
    for (uint32_t i = 0; i < made && i < kMostCalls; ++i)
        fprintf(file, "call %s %ju %ju %d\n", calls[i].name, static_cast<uintmax_t>(calls[i].begin),
                static_cast<uintmax_t>(calls[i].end), calls[i].thread);
    fprintf(file, "ending %ju\n", static_cast<uintmax_t>(ending));
    fclose(file);
}

}  // namespace

// Other names are passed on by a jump, so that the real one sees the caller, which RTLD_NEXT goes by.
extern "C" __attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) noexcept {
    const Dlsym real = real_dlsym ? real_dlsym : find_dlsym();
    if (!of_driver(name) || in_library(__builtin_return_address(0), "libsmt.so")) return real(handle, name);
    void* found = real(handle, name);
    return found && (in_library(found, "libcuda.so") || in_library(found, "libsmt.so"))
               ? filtered(name, found)
               : found;
}
