#include "runtime/device/hosted/backend.h"

namespace smt::runtime::device::hosted {

namespace {

Backend* served = nullptr;

}  // namespace

Backend& backend() { return *served; }
void serve(Backend& backend) { served = &backend; }

CUresult asked(const char* name, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const CUresult failed = backend().asked(name, format, arguments);
    va_end(arguments);
    return failed;
}

std::mutex& world() {
    static std::mutex* lock = new std::mutex;  // never destroyed: streams' threads outlive main()
    return *lock;
}

std::condition_variable& changed() {
    static std::condition_variable* condition = new std::condition_variable;
    return *condition;
}

}  // namespace smt::runtime::device::hosted
