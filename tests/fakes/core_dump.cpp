// The core dump of a fault: the kernel's name and module, one CTA of it with an exception, and a bystander.
#include <cstring>
#include <fstream>
#include <mutex>

#include "fake.h"
#include "tests/image/made_core_dump.h"

namespace fake {

namespace {

std::mutex mutex;
bool wanted = false;
std::string path;

}  // namespace

void dump(const Function& faulting, CUfunction handle) {
    std::lock_guard lock(mutex);
    CUmodule module = nullptr;
    if (!wanted || cuFuncGetModule(&module, handle) != CUDA_SUCCESS) return;
    std::ofstream(path, std::ios::binary)
        << smt::image::made_core_dump({.sign = smt::image::MadeDump::Sign::kException,
                                       .kernel = faulting.name,
                                       .module = reinterpret_cast<uint64_t>(module)});
}

}  // namespace fake

DRIVER_EXPORT CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings setting, void* value, size_t* bytes) {
    std::lock_guard lock(fake::mutex);
    if (setting == CU_COREDUMP_ENABLE_ON_EXCEPTION) fake::wanted = *static_cast<bool*>(value);
    if (setting == CU_COREDUMP_FILE)
        fake::path.assign(static_cast<char*>(value), strnlen(static_cast<char*>(value), *bytes));
    return CUDA_SUCCESS;
}
