#include "runtime/device/cuda/core_dump_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "runtime/protocol/environment.h"

namespace smt::runtime::device {

namespace {

// What is in memory is of no use for a kernel's name. The process must go on, to tell its clients.
constexpr unsigned kFlags = CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT;

template <typename Value>
bool set(const DriverApi& driver, CUcoredumpSettings setting, Value* value, size_t bytes) {
    return driver.cuCoredumpSetAttributeGlobal(setting, value, &bytes) == CUDA_SUCCESS;
}

}  // namespace

bool CoreDumpFile::enable(const DriverApi& driver, const std::string& path) {
    if (!driver.cuCoredumpSetAttributeGlobal || std::getenv(environment::kCudaCoreDump)) return false;
    unlink(path.c_str());
    bool yes = true;
    unsigned flags = kFlags;
    std::string name = path;
    if (!set(driver, CU_COREDUMP_GENERATION_FLAGS, &flags, sizeof flags) ||
        !set(driver, CU_COREDUMP_FILE, name.data(), name.size() + 1) ||
        !set(driver, CU_COREDUMP_ENABLE_ON_EXCEPTION, &yes, sizeof yes))
        return false;
    path_ = path;
    return true;
}

bool CoreDumpFile::begun() const { return enabled() && access(path_.c_str(), F_OK) == 0; }

std::variant<image::FaultSite, image::Problem> CoreDumpFile::read() const {
    if (!enabled()) return image::Problem{"core dumps are off"};
    std::ifstream file(path_, std::ios::binary);
    if (!file) return image::Problem{fmt::format("{}: {}", path_, std::strerror(errno))};
    return image::read_core_dump(std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace smt::runtime::device
