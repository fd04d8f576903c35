// The real driver: loaded by name at run time, so that smtd builds and starts without one.
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "runtime/device/cores.h"
#include "runtime/device/cuda/context_wide.h"
#include "runtime/device/cuda/core_dump_file.h"
#include "runtime/device/cuda/short_gaps.h"
#include "runtime/device/cuda/waits.h"
#include "runtime/device/device.h"
#include "runtime/device/held_up.h"
#include "runtime/settings/read.h"

namespace smt::runtime::device {

namespace {

// Where vendors' packages put the driver when the loader's own search does not find it.
constexpr const char* kUsualPlaces[] = {
    "libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/local/nvidia/lib/libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib64/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
};

// Of the machine, or of the container: this process may see one of them only.
int count_gpus() {
    constexpr std::string_view kPrefix = "nvidia";
    int count = 0;
    std::error_code problem;
    for (const auto& each : std::filesystem::directory_iterator("/dev", problem)) {
        const std::string name = each.path().filename().string();
        const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
        count += name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
                 std::all_of(name.begin() + kPrefix.size(), name.end(), is_digit);
    }
    return count;
}

// A twin thread blocks in the driver in its client's stead. Yielding answers as fast as spinning
// while there are processors to spare (waits.h: when there are not); a blocking wait would add an
// interrupt's tens of microseconds to every synchronisation.
constexpr unsigned kContextFlags = CU_CTX_SCHED_YIELD;

constexpr size_t kRoomForContext = size_t{4} << 30;

std::string describe(const DriverApi& driver, const char* call, CUresult status) {
    const char* name = nullptr;
    const char* text = nullptr;
    if (driver.cuGetErrorName) driver.cuGetErrorName(status, &name);
    if (driver.cuGetErrorString) driver.cuGetErrorString(status, &text);
    return fmt::format("{} failed: {} ({}): {}", call, name ? name : "error", static_cast<int>(status),
                       text ? text : "no text");
}

std::chrono::seconds wait_timeout() {
    return std::chrono::seconds(settings::number_of(settings::Id::kWaitSeconds));
}

class CudaDevice final : public Device {
public:
    ~CudaDevice() override {
        gaps_.end();
        if (context_) driver_.cuDevicePrimaryCtxRelease_v2(device_);
        // The library stays: its threads and exit handlers do not survive a dlclose.
    }

    bool open(const std::string& key, const std::string& core_dump, bool* found, std::string& error) {
        key_ = key;
        if (!load(error) || !complete(error)) return false;
        guard_context_wide_calls(driver_, wait_timeout());
        guard_waits(driver_, [] { return cores_to_spare() && cores_scarce(); });
        if (settings::flag_of(settings::Id::kShortGaps, true)) gaps_.watch(driver_);
        auto check = [&](const char* call, CUresult status) {
            if (status != CUDA_SUCCESS) error = describe(driver_, call, status);
            return status == CUDA_SUCCESS;
        };
        // By default as many hardware queues as there are: a stream that waits must not hold up another
        // tenant's stream that happens to share its queue. The driver reads the variable in cuInit.
        const std::string queues = std::to_string(settings::number_of(settings::Id::kConnections));
        setenv("CUDA_DEVICE_MAX_CONNECTIONS", queues.c_str(), 1);
        if (!check("cuInit", driver_.cuInit(0))) return false;
        if (!check("cuDeviceGet", driver_.cuDeviceGet(&device_, 0))) return false;
        *found = true;
        if (!core_dump.empty()) core_dump_.enable(driver_, core_dump);
        if (driver_.cuDevicePrimaryCtxSetFlags_v2)
            driver_.cuDevicePrimaryCtxSetFlags_v2(device_, kContextFlags);
        CUcontext context = nullptr;
        if (!check("cuDevicePrimaryCtxRetain", driver_.cuDevicePrimaryCtxRetain(&context, device_)))
            return false;
        context_ = context;
        if (!check("cuCtxSetCurrent", enter_thread(nullptr, kNoLane))) return false;
        read_properties();
        if (count_gpus() > 1 && attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
            physical_memory().lend_to_other_gpus();
        return true;
    }

    void release_waits(const Guest& guest) override { stream_waits().release(guest, errands()); }
    void hold_wide_calls(bool hold) override { hold_context_wide_calls(hold); }
    void watch_launches(bool watch) override { device::watch_launches(watch); }
    std::vector<WatchedLaunch> watched_launches() const override { return device::watched_launches(); }
    bool stand_back(Clock::duration longest) override { return stand_back_for_calls(longest); }
    void make_deferred_calls() override { device::make_deferred_calls(); }
    bool begin_quiet() override { return device::begin_quiet(); }
    void end_quiet() override { device::end_quiet(); }
    void left(Guest& guest) override {
        stream_waits().forget(guest);
        set_guest_of_thread(nullptr);
    }

    CUresult enter_thread(Guest* guest, uint32_t) override {
        set_guest_of_thread(guest);
        CUresult status = driver_.cuCtxSetCurrent(context_);
        if (status != CUDA_SUCCESS) return status;
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        if (driver_.cuThreadExchangeStreamCaptureMode) driver_.cuThreadExchangeStreamCaptureMode(&mode);
        return CUDA_SUCCESS;
    }

    std::string memory_source() const override { return path_; }

    bool dumps_faults() const override { return core_dump_.enabled(); }
    bool fault_begun() const override { return core_dump_.begun(); }
    std::variant<image::FaultSite, image::Problem> fault() const override { return core_dump_.read(); }

private:
    bool load(std::string& error) {
        void* library = nullptr;
        if (const char* wanted = settings::c_text_of(settings::Id::kDriver)) {
            library = dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
            if (!library)
                error = fmt::format("cannot load {}={}: {}", settings::variable_of(settings::Id::kDriver),
                                    wanted, dlerror());
        } else {
            for (const char* place : kUsualPlaces) {
                library = dlopen(place, RTLD_NOW | RTLD_LOCAL);
                if (library) break;
                if (error.empty()) error = fmt::format("cannot load the CUDA driver: {}", dlerror());
            }
        }
        if (!library) return false;
        error.clear();
        link_map* map = nullptr;
        if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map) path_ = map->l_name;
        // Our own virtual driver has the same name; serving through it would be a circle.
        if (dlsym(library, "smt_is_virtual_driver")) {
            error = "the loader finds libsmt.so in place of the CUDA driver";
            return false;
        }
        for (const DriverApiName& name : kDriverApiNames) {
            void* function = dlsym(library, name.symbol);
            std::memcpy(reinterpret_cast<char*>(&driver_) + name.offset, &function, sizeof function);
        }
        return true;
    }

    // What the server itself calls without looking. Everything else may be missing: a handler then
    // answers NOT_SUPPORTED.
    bool complete(std::string& error) {
        const struct {
            const void* function;
            const char* name;
        } needed[] = {
#define NEED(name) {reinterpret_cast<const void*>(driver_.name), #name}
            NEED(cuInit),
            NEED(cuDeviceGet),
            NEED(cuDevicePrimaryCtxRetain),
            NEED(cuDevicePrimaryCtxRelease_v2),
            NEED(cuCtxSetCurrent),
            NEED(cuStreamCreateWithPriority),
            NEED(cuStreamDestroy_v2),
            NEED(cuStreamSynchronize),
            NEED(cuStreamQuery),
            NEED(cuStreamWaitEvent),
            NEED(cuStreamGetPriority),
            NEED(cuStreamGetId),
            NEED(cuStreamIsCapturing),
            NEED(cuStreamEndCapture),
            NEED(cuGraphDestroy),
            NEED(cuStreamWriteValue64_v2),
            NEED(cuStreamWaitValue64_v2),
            NEED(cuLaunchHostFunc),
            NEED(cuEventCreate),
            NEED(cuEventDestroy_v2),
            NEED(cuEventRecord),
            NEED(cuEventRecordWithFlags),
            NEED(cuEventSynchronize),
            NEED(cuEventElapsedTime_v2),
            NEED(cuMemHostRegister_v2),
            NEED(cuMemHostUnregister),
            NEED(cuMemAddressReserve),
            NEED(cuMemAddressFree),
            NEED(cuMemCreate),
            NEED(cuMemRelease),
            NEED(cuMemMap),
            NEED(cuMemUnmap),
            NEED(cuMemSetAccess),
            NEED(cuMemsetD8Async),
#undef NEED
        };
        for (const auto& each : needed) {
            if (each.function) continue;
            error = fmt::format("the driver is too old: it has no {}", each.name);
            return false;
        }
        return true;
    }

    void read_properties() {
        char name[256] = {};
        if (driver_.cuDeviceGetName &&
            driver_.cuDeviceGetName(name, sizeof name - 1, device_) == CUDA_SUCCESS) {
            properties_.name = name;
        }
        size_t total = 0;
        if (driver_.cuDeviceTotalMem_v2 && driver_.cuDeviceTotalMem_v2(&total, device_) == CUDA_SUCCESS) {
            properties_.total_memory = total;
            physical_memory().serves_device_of(total);
        }
        properties_.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        properties_.compute_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
        properties_.compute_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
        properties_.loads_wait = true;
        CUmemAllocationProp wanted{};
        wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
        size_t granularity = 0;
        if (driver_.cuMemGetAllocationGranularity &&
            driver_.cuMemGetAllocationGranularity(&granularity, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
                CUDA_SUCCESS) {
            properties_.granularity = granularity;
        }
    }

    int attribute(CUdevice_attribute which) const {
        int value = 0;
        if (driver_.cuDeviceGetAttribute) driver_.cuDeviceGetAttribute(&value, which, device_);
        return value;
    }

    // Programs' allocations must not fail for it: a context takes half a gigabyte.
    bool make_another_context(const ShortGaps::Over& over) {
        size_t free = 0, total = 0;
        if (enter_thread(nullptr, kNoLane) != CUDA_SUCCESS || !driver_.cuMemGetInfo_v2 ||
            driver_.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS)
            return false;
        return free < kRoomForContext || make_context_in_another_process(key_, over);
    }

    CoreDumpFile core_dump_;
    ShortGaps gaps_{[this](const ShortGaps::Over& over) { return make_another_context(over); }};
    std::string path_;  // of the library
};

}  // namespace

std::unique_ptr<Device> open_cuda(const std::string& key, const std::string& core_dump, bool* found,
                                  std::string& error) {
    auto device = std::make_unique<CudaDevice>();
    *found = false;
    if (!device->open(key, core_dump, found, error)) return nullptr;
    return device;
}

}  // namespace smt::runtime::device
