// See gpus.h.
#include "tools/smt/gpus.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "runtime/settings/read.h"

namespace smt::tools {
namespace {

template <typename Function>
Function look_up(void* library, const char* name) {
    return reinterpret_cast<Function>(::dlsym(library, name));
}

std::string hex(const CUuuid& uuid, bool dashes) {
    std::string text;
    for (int i = 0; i < 16; ++i) {
        if (dashes && (i == 4 || i == 6 || i == 8 || i == 10)) text += '-';
        text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
    }
    return text;
}

std::string path_of_symbol(void* symbol) {
    Dl_info info{};
    return ::dladdr(symbol, &info) && info.dli_fname ? info.dli_fname : "";
}

void list_gpus(void* library, Driver& driver) {
    auto count_gpus = look_up<decltype(&cuDeviceGetCount)>(library, "cuDeviceGetCount");
    auto get_gpu = look_up<decltype(&cuDeviceGet)>(library, "cuDeviceGet");
    auto get_name = look_up<decltype(&cuDeviceGetName)>(library, "cuDeviceGetName");
    auto get_uuid = look_up<decltype(&cuDeviceGetUuid)>(library, "cuDeviceGetUuid_v2");
    if (!count_gpus || !get_gpu || !get_name || !get_uuid) {
        driver.problem = "it lacks functions of CUDA 12: too old";
        return;
    }
    int count = 0;
    count_gpus(&count);
    for (int i = 0; i < count; ++i) {
        CUdevice gpu = 0;
        CUuuid uuid{};
        char name[256] = "";
        if (get_gpu(&gpu, i) || get_uuid(&uuid, gpu) || get_name(name, sizeof(name), gpu)) continue;
        driver.gpus.push_back({name, hex(uuid, false), "GPU-" + hex(uuid, true)});
    }
}

}  // namespace

Driver examine_driver() {
    Driver driver;
    const char* chosen = settings::c_text_of(settings::Id::kRealDriver);
    driver.path = chosen ? chosen : "libcuda.so.1";
    if (driver.path == "none") {
        driver.problem = std::string(settings::variable_of(settings::Id::kRealDriver)) + " is \"none\"";
        return driver;
    }
    void* library = ::dlopen(driver.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        driver.problem = ::dlerror();
        return driver;
    }
    auto init = look_up<decltype(&cuInit)>(library, "cuInit");
    auto version = look_up<decltype(&cuDriverGetVersion)>(library, "cuDriverGetVersion");
    if (!init || !version) {
        driver.problem = "it is not a CUDA driver";
        return driver;
    }
    driver.path = path_of_symbol(reinterpret_cast<void*>(init));
    version(&driver.version);
    if (CUresult status = init(0); status != CUDA_SUCCESS)
        driver.problem = fmt::format("cuInit returns {}", static_cast<int>(status));
    else
        list_gpus(library, driver);
    return driver;  // the library stays open: drivers do not like to be unloaded
}

bool gpu_node_exists() { return ::access("/dev/nvidiactl", F_OK) == 0 || ::access("/dev/dxg", F_OK) == 0; }

}  // namespace smt::tools
