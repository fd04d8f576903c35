#include "runtime/device/simulated/simulated_device.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "runtime/device/held_up.h"
#include "runtime/device/hosted/table.h"
#include "runtime/device/simulated/driver/backend.h"
#include "runtime/device/simulated/driver/settings.h"
#include "runtime/protocol/server_key.h"
#include "runtime/protocol/simulated_gpus.h"

namespace smt::runtime::device::simulated {

namespace {

using namespace std::chrono_literals;

constexpr int kKeptMemory = 32 << 20;  // the most that malloc takes for such a threshold
constexpr auto kTenantsTimeout = 30s;  // for the other sessions that tenants in SMT_SIM wants

class SimulatedDevice final : public Device {
public:
    SimulatedDevice(const Settings& settings, int gpu)
        : settings_(settings), backend_(settings.engine, settings.memory_bytes, settings.streams, gpu) {
        // Blocks begin and end all the time: what one took is there for the next one.
        mallopt(M_MMAP_THRESHOLD, kKeptMemory);
        mallopt(M_TRIM_THRESHOLD, 2 * kKeptMemory);
        hosted::serve(backend_);
        hosted::fill(driver_);
    }

    bool open(const std::string& key, std::string& error) {
        key_ = key;
        CUcontext context = nullptr;
        if (driver_.cuInit(0) != CUDA_SUCCESS ||
            driver_.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) {
            error = "the simulated device does not begin";
            return false;
        }
        context_ = context;
        if (protocol::simulated_gpus() > 1) physical_memory().lend_to_other_gpus();
        properties_.name = backend_.device_name();
        properties_.total_memory = settings_.memory_bytes;
        physical_memory().serves_device_of(settings_.memory_bytes);
        properties_.multiprocessors = settings_.engine.machine.multiprocessors;
        properties_.compute_major = 9;
        properties_.compute_minor = 0;
        properties_.granularity = 2ull << 20;
        properties_.keeps_sessions_apart = true;
        properties_.keeps_faults_apart = !settings_.engine.one_context;
        properties_.keeps_clock = settings_.dispatch_clock;
        properties_.loads_wait = settings_.engine.loads_wait;
        properties_.puts_doors = settings_.doors;
        return enter_thread(nullptr, kNoLane) == CUDA_SUCCESS;
    }

    CUresult enter_thread(Guest* guest, uint32_t lane) override {
        set_guest_of_thread(guest);
        Caller& self = caller();
        self = {guest ? tenant_of(*guest) : nullptr, lane, 0};
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        driver_.cuThreadExchangeStreamCaptureMode(&mode);
        return driver_.cuCtxSetCurrent(context_);
    }

    uint32_t admit(const std::string& tenant) override;
    void arrived(Guest& guest) override;
    void leaving(Guest& guest) override;
    void left(Guest& guest) override;
    bool end_work(const Guest& guest, CUresult error) override {
        const auto tenant = properties_.keeps_faults_apart ? tenant_of(guest) : nullptr;
        if (tenant) backend_.engine().end_work(*tenant, error);
        return tenant != nullptr;
    }
    void made_for(uint32_t session, CUstream stream) override { backend_.engine().made_for(session, stream); }

    void allocated(CUdeviceptr address, uint64_t bytes) override {
        backend_.memory().allocated(address, bytes);
    }
    void freed(CUdeviceptr address, uint64_t bytes) override { backend_.freed(address, bytes); }
    void forgotten(CUdeviceptr address, uint64_t bytes) override {
        backend_.quietly([&] { backend_.memory().forget(address, bytes); });
    }

    Clock::time_point now() const override {
        return settings_.dispatch_clock
                   ? Clock::time_point(std::chrono::nanoseconds(backend_.engine().now_ns()))
                   : Device::now();
    }
    void rest(std::unique_lock<std::mutex>& lock, Clock::time_point until, bool due) override {
        if (!settings_.dispatch_clock) return Device::rest(lock, until, due);
        backend_.engine().rest(
            lock, static_cast<uint64_t>(std::chrono::nanoseconds(until.time_since_epoch()).count()), due);
    }
    void disturb() override { settings_.dispatch_clock ? backend_.engine().disturb() : Device::disturb(); }

    void let_go(uint32_t session) override { backend_.engine().let_go(session); }
    void waits_for_others(bool waits) override { backend_.engine().waits_for_others(waits); }
    bool announce(const journal::Entry& entry) override {
        backend_.announce(entry);
        return true;
    }
    bool place_managed(const ManagedMemory& memory) override {
        backend_.place_managed(memory);
        return true;
    }
    bool place_variables(const VariableMemory& memory) override {
        backend_.place_variables(memory);
        return true;
    }
    void write(journal::Writer&, const journal::Entry& entry, const Guest* guest) override {
        journal::Entry stamped = entry;
        stamped.virtual_time = 1;
        stamped.time_ns = backend_.engine().now_ns();
        backend_.engine().journal().add(stamped, guest ? guest->tenant() : "", guest ? guest->id() : 0);
    }
    void attach(journal::Writer& journal) override {
        backend_.engine().journal().attach(journal);
        backend_.surroundings().names = &journal;
    }

private:
    std::shared_ptr<Tenant> tenant_of(const Guest& guest) {
        std::lock_guard lock(mutex_);
        auto found = tenants_.find(&guest);
        return found == tenants_.end() ? nullptr : found->second;
    }

    const Settings settings_;
    SimulatedBackend backend_;
    std::mutex mutex_;
    std::unordered_map<const Guest*, std::shared_ptr<Tenant>> tenants_;

    // Sessions that wait to be admitted together.
    std::condition_variable admitted_;
    std::vector<std::pair<std::string, uint32_t*>> waiting_;
    uint32_t next_number_ = 1;
    bool open_ = false;
};

// The first sessions get their numbers by name, so that the order of arrival does not matter.
uint32_t SimulatedDevice::admit(const std::string& tenant) {
    std::unique_lock lock(mutex_);
    if (open_ || settings_.engine.sessions <= 1) return next_number_++;
    uint32_t number = 0;
    waiting_.emplace_back(tenant, &number);
    const auto let_in = [&] {
        open_ = true;
        std::stable_sort(waiting_.begin(), waiting_.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (auto& [name, where] : waiting_) *where = next_number_++;
        waiting_.clear();
        admitted_.notify_all();
    };
    if (waiting_.size() == settings_.engine.sessions) let_in();
    admitted_.wait_for(lock, kTenantsTimeout, [&] { return number != 0; });
    if (number == 0) let_in();
    return number;
}

void SimulatedDevice::arrived(Guest& guest) {
    auto tenant = std::make_shared<Tenant>();
    tenant->number = guest.id();
    tenant->name = guest.tenant();
    tenant->guest = &guest;
    {
        std::lock_guard lock(mutex_);
        tenants_[&guest] = tenant;
    }
    backend_.engine().arrived(tenant);
}

void SimulatedDevice::leaving(Guest& guest) {
    if (auto tenant = tenant_of(guest)) backend_.engine().leaving(*tenant);
}

void SimulatedDevice::left(Guest& guest) {
    auto tenant = tenant_of(guest);
    if (!tenant) return;
    {
        std::lock_guard lock(mutex_);
        tenants_.erase(&guest);
    }
    {
        std::lock_guard lock(tenant->guest_mutex);
        tenant->guest = nullptr;
    }
    backend_.engine().left(tenant);
    backend_.quietly([&] { free_heap(backend_.memory(), *tenant); });
    caller() = {};
}

}  // namespace

void tell(const std::string& line) {
    const std::shared_ptr<Tenant>& tenant = caller().tenant;
    if (!tenant) return;
    std::lock_guard lock(tenant->guest_mutex);
    if (tenant->guest) tenant->guest->tell(line);
}

std::unique_ptr<Device> open(const std::string& key, std::string& error) {
    // A server that has no GPU falls back to the simulated device under its own key.
    const int gpu = std::max(protocol::simulated_gpu_of(protocol::gpu_of_key(key)), 0);
    auto device = std::make_unique<SimulatedDevice>(read_settings(), gpu);
    if (!device->open(key, error)) return nullptr;
    return device;
}

}  // namespace smt::runtime::device::simulated
