// See gpus.h.
#include "tools/smt/gpus.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "runtime/protocol/environment.h"
#include "runtime/protocol/gpu_uuid.h"
#include "runtime/protocol/server_key.h"
#include "runtime/protocol/simulated_gpus.h"
#include "runtime/settings/read.h"
#include "tools/smt/command.h"

namespace smt::tools {
namespace {

template <typename Function>
Function look_up(void* library, const char* name) {
    return reinterpret_cast<Function>(::dlsym(library, name));
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
    auto get_memory = look_up<decltype(&cuDeviceTotalMem)>(library, "cuDeviceTotalMem_v2");
    if (!count_gpus || !get_gpu || !get_name || !get_uuid || !get_memory) {
        driver.problem = "it lacks functions of CUDA 12: too old";
        return;
    }
    int count = 0;
    count_gpus(&count);
    for (int i = 0; i < count; ++i) {
        CUdevice gpu = 0;
        CUuuid uuid{};
        size_t memory = 0;
        char name[256] = "";
        if (get_gpu(&gpu, i) || get_uuid(&uuid, gpu) || get_name(name, sizeof(name), gpu) ||
            get_memory(&memory, gpu))
            continue;
        char key[protocol::kUuidKeyBytes], visible[protocol::kVisibleBytes];
        protocol::write_uuid(uuid.bytes, key, visible);
        driver.gpus.push_back({name, key, visible, memory});
    }
}

std::vector<Gpu> simulated_gpus() {
    int visible[protocol::kMostSimulatedGpus];
    const int count = protocol::visible_simulated_gpus(std::getenv(environment::kVisibleDevices),
                                                       protocol::simulated_gpus(), visible);
    std::vector<Gpu> gpus;
    for (int i = 0; i < count; ++i) {
        char uuid[protocol::kUuidBytes], hex[protocol::kUuidKeyBytes], name[protocol::kVisibleBytes];
        char key[protocol::kMostGpuKey];
        protocol::write_simulated_uuid(visible[i], uuid);
        protocol::write_uuid(uuid, hex, name);
        protocol::name_simulated_key(visible[i], key, sizeof key);
        gpus.push_back({"simulated GPU", key, name, settings::number_of(settings::Id::kSimMemory)});
    }
    return gpus;
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

std::vector<Gpu> visible_gpus(const std::string& device) {
    const char* const shown = std::getenv(environment::kVisibleDevices);
    const std::string hint = shown ? fmt::format("; CUDA_VISIBLE_DEVICES is '{}'", shown) : "";
    if (device == "sim") {
        std::vector<Gpu> gpus = simulated_gpus();
        if (gpus.empty()) throw Failure("no simulated GPU is visible" + hint);
        return gpus;
    }
    Driver driver = examine_driver();
    if (driver.problem.empty() && !driver.gpus.empty()) return driver.gpus;
    if (settings::c_text_of(settings::Id::kDriver)) return {{"", "device", ""}};
    throw Failure("there is no GPU: " + (driver.problem.empty() ? "the driver lists none" : driver.problem) +
                  hint);
}

Gpu pick_gpu(const std::vector<Gpu>& gpus, const std::string& text, const char* takes) {
    uint64_t index = 0;
    if (!settings::read_number(text, 0, UINT64_MAX, &index))
        throw Misuse(fmt::format("--gpu wants {}, not '{}'", takes, text));
    if (index >= gpus.size())
        throw Failure(fmt::format("there {} {} GPU{}, no GPU {}", gpus.size() == 1 ? "is" : "are",
                                  gpus.size(), gpus.size() == 1 ? "" : "s", text));
    return gpus[index];
}

bool gpu_node_exists() { return ::access("/dev/nvidiactl", F_OK) == 0 || ::access("/dev/dxg", F_OK) == 0; }

}  // namespace smt::tools
