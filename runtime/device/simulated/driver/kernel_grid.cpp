#include "runtime/device/simulated/driver/kernel_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace smt::runtime::device::simulated {

namespace {

constexpr uint64_t kHeapAlignment = 16;
constexpr uint64_t kGridWorkspace = 4096;  // of a cooperative launch: its barrier's words

Dim3 dimensions(const unsigned (&size)[3]) { return {size[0], size[1], size[2]}; }

class KernelGrid final : public Grid {
public:
    KernelGrid(LaunchSurroundings& surroundings, const hosted::Launch& launch, std::shared_ptr<Tenant> tenant,
               std::function<void(const GridResult&)> over)
        : surroundings_(surroundings),
          code_(std::static_pointer_cast<LaunchCode>(launch.code)),
          tenant_(std::move(tenant)),
          over_(std::move(over)) {
        launch_.kernel = code_->kernel;
        launch_.grid = dimensions(launch.grid);
        launch_.block = dimensions(launch.block);
        launch_.dynamic_shared = launch.shared_bytes;
        launch_.parameters.resize(launch.parameters.size());
        if (!launch.parameters.empty())
            std::memcpy(launch_.parameters.data(), launch.parameters.data(), launch.parameters.size());
        launch_.id = ++surroundings.launches;
        if (launch.cooperative) launch_.grid_workspace = surroundings.memory.obtain(kGridWorkspace);
        name = code_->kernel->name;
        size = launch_.grid;
        needs = {static_cast<uint32_t>(launch_.block.count()), code_->registers,
                 code_->kernel->static_shared + launch.shared_bytes, code_->kernel->barriers};
        stream_ = surroundings.streams.begin(*this);
    }

    std::unique_ptr<Block> begin(Dim3 index, const Place& place) override;
    void ended(const GridResult& result) override;

    const Launch& launch() const { return launch_; }
    Memory& memory() { return surroundings_.memory; }
    void print(std::string_view text) {
        if (tenant_) tenant_->print(text);
    }
    uint64_t heap_allocate(uint64_t bytes);
    bool heap_free(uint64_t address);

private:
    void write_journal(const GridResult& result);
    void report(const GridResult& result);
    void lose(CUresult error, const std::string& what);

    LaunchSurroundings& surroundings_;
    const std::shared_ptr<LaunchCode> code_;
    const std::shared_ptr<Tenant> tenant_;
    const std::function<void(const GridResult&)> over_;
    Launch launch_;
    std::unique_ptr<InstructionStream> stream_;  // null: it is not recorded
};

class KernelBlock final : public Block, private Environment {
public:
    KernelBlock(KernelGrid& grid, Dim3 index, const Place& place)
        : grid_(grid), place_(place), cta_(grid.launch(), index, grid.memory(), *this) {}

    int warps() const override { return cta_.warps(); }
    uint32_t runnable() const override { return cta_.runnable(); }
    const StaticFacts* next(int warp) const override { return cta_.next(warp); }
    Step step(int warp) override { return cta_.step(warp); }
    bool finished() const override { return cta_.finished(); }
    bool deadlocked() const override { return cta_.deadlocked(); }
    const Fault* fault() const override { return cta_.fault(); }
    int line(int warp) const override { return cta_.line(warp); }

private:
    uint64_t cycles() override { return place_.clock->now(); }
    uint64_t nanoseconds() override { return nanoseconds_of(place_.clock->now()); }
    uint32_t sm() override { return place_.multiprocessor; }
    uint32_t sms() override { return place_.multiprocessors; }
    void print(std::string_view text) override { grid_.print(text); }
    uint64_t heap_allocate(uint64_t bytes) override { return grid_.heap_allocate(bytes); }
    bool heap_free(uint64_t address) override { return grid_.heap_free(address); }

    KernelGrid& grid_;
    const Place place_;
    Cta cta_;
};

std::unique_ptr<Block> KernelGrid::begin(Dim3 index, const Place& place) {
    auto block = std::make_unique<KernelBlock>(*this, index, place);
    if (!stream_) return block;
    const uint64_t number = index.x + uint64_t{size.x} * (index.y + uint64_t{size.y} * index.z);
    return surroundings_.streams.watch(*stream_, number, std::move(block));
}

void KernelGrid::ended(const GridResult& result) {
    if (launch_.grid_workspace) memory().give_back(launch_.grid_workspace);
    write_journal(result);
    if (stream_) surroundings_.streams.end(*stream_);
    if (result.end != GridResult::End::kDone && result.end != GridResult::End::kCancelled) report(result);
    // On a GPU it would have executed whatever lies there next.
    if (result.end == GridResult::End::kDone && code_->module->unloaded.load())
        lose(CUDA_ERROR_ILLEGAL_INSTRUCTION, fmt::format("kernel {} ran after its code was unloaded", name));
    over_(result);
}

uint64_t KernelGrid::heap_allocate(uint64_t bytes) {
    if (!tenant_ || bytes == 0) return 0;
    const uint64_t most = hosted::limit(CU_LIMIT_MALLOC_HEAP_SIZE);
    if (bytes > most || tenant_->heap_bytes > most - bytes) return 0;
    const uint64_t address = memory().obtain(bytes, kHeapAlignment);
    if (address) tenant_->heap[address] = bytes, tenant_->heap_bytes += bytes;
    return address;
}

bool KernelGrid::heap_free(uint64_t address) {
    if (!tenant_) return false;
    auto found = tenant_->heap.find(address);
    if (found == tenant_->heap.end()) return false;
    tenant_->heap_bytes -= found->second;
    tenant_->heap.erase(found);
    memory().give_back(address);
    return true;
}

// What the server said about the launch, or, of a graph's, what is known without it.
void KernelGrid::write_journal(const GridResult& result) {
    journal::Entry entry;
    if (code_->entry) {
        entry = *code_->entry;
    } else if (surroundings_.names) {
        entry.kind = journal::Kind::kLaunch;
        entry.session = tenant_ ? tenant_->number : 0;
        entry.name = surroundings_.names->name(name);
        entry.text = tenant_ ? surroundings_.names->name(tenant_->name) : 0;
        entry.time_ns = nanoseconds_of(result.started);
        const Dim3* from[] = {&launch_.grid, &launch_.block};
        uint32_t* to[] = {entry.grid, entry.block};
        for (int i = 0; i < 2; ++i) to[i][0] = from[i]->x, to[i][1] = from[i]->y, to[i][2] = from[i]->z;
        entry.registers = code_->registers;
        entry.shared_bytes = needs.shared_bytes;
    }
    entry.virtual_time = 1;
    entry.start_ns = nanoseconds_of(result.started);
    entry.end_ns = nanoseconds_of(result.ended);
    for (size_t i = 0; i < result.blocks.size() && i < 64 * journal::kPlaceWords; ++i) {
        if (result.blocks[i]) entry.multiprocessors[i / 64] |= 1ull << i % 64;
        entry.blocks_together = std::max(entry.blocks_together, result.most_resident[i]);
    }
    surroundings_.journal.add(entry, tenant_ ? tenant_->name : "", entry.session);
}

void KernelGrid::report(const GridResult& result) {
    CUresult error = CUDA_ERROR_LAUNCH_TIMEOUT;
    std::string what;
    const Dim3& block = result.where;
    switch (result.end) {
        case GridResult::End::kFault:
            error = static_cast<CUresult>(result.fault ? result.fault->result : CUDA_ERROR_LAUNCH_FAILED);
            what = result.fault ? result.fault->message : "a fault";
            break;
        case GridResult::End::kStepLimit:
            what = fmt::format(
                "kernel {} did not end within {} warp-instructions (step_limit in SMT_SIM); block ({}, {}, "
                "{}) "
                "is at PTX line {}",
                name, surroundings_.step_limit, block.x, block.y, block.z, result.line);
            break;
        default:
            what = fmt::format(
                "kernel {} waits for ever: no warp of block ({}, {}, {}) can go on, one is at PTX line {}",
                name, block.x, block.y, block.z, result.line);
            break;
    }
    lose(error, what);
}

void KernelGrid::lose(CUresult error, const std::string& what) {
    if (surroundings_.lose_context) {
        if (tenant_) tenant_->tell("the simulated device: " + what);
        return surroundings_.lose_context(error);
    }
    if (!tenant_) return;
    int none = CUDA_SUCCESS;
    if (tenant_->fault.compare_exchange_strong(none, error)) tenant_->lost(error, what);
}

}  // namespace

std::shared_ptr<Grid> make_kernel_grid(LaunchSurroundings& surroundings, const hosted::Launch& launch,
                                       std::shared_ptr<Tenant> tenant,
                                       std::function<void(const GridResult&)> over) {
    return std::make_shared<KernelGrid>(surroundings, launch, std::move(tenant), std::move(over));
}

void free_heap(Memory& memory, Tenant& tenant) {
    for (const auto& [address, bytes] : tenant.heap) memory.give_back(address);
    tenant.heap.clear();
    tenant.heap_bytes = 0;
}

}  // namespace smt::runtime::device::simulated
