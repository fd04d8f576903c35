// In front of the C library: threads, and memory in large pieces, are refused as long as a file says so.
//
//   $SMT_TEST_SCARCE/no-threads   pthread_create fails with EAGAIN
//   $SMT_TEST_SCARCE/no-memory    operator new throws for 16 MiB and more
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

bool scarce(const char* what) {
    const char* folder = std::getenv("SMT_TEST_SCARCE");
    char path[512];
    if (!folder ||
        std::snprintf(path, sizeof path, "%s/no-%s", folder, what) >= static_cast<int>(sizeof path))
        return false;
    return access(path, F_OK) == 0;
}

template <typename Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

constexpr std::size_t kLarge = 16u << 20;

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) {
    static const auto real =
        next<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
    return scarce("threads") ? EAGAIN : real(thread, attributes, start, argument);
}

void* operator new(std::size_t bytes) {
    static const auto real = next<void* (*)(std::size_t)>("_Znwm");
    if (bytes >= kLarge && scarce("memory")) throw std::bad_alloc();
    return real(bytes);
}
