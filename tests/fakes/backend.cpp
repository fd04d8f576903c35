// The fake as a backend: every stream is a thread that works in order, and no time is kept.
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "fake.h"
#include "runtime/protocol/simulated_gpus.h"

namespace fake {

namespace {

constexpr uint64_t kDefaultBytes = 8ull << 30;
constexpr uint64_t kMostGarbage = 64ull << 20;  // of one allocation that is made dirty

void nap() {
    const timespec rest{0, 20'000};
    nanosleep(&rest, nullptr);
}

void await_turn(Lock& lock, Node& node) {
    if (!node.ready) return;
    if (!node.polled) return changed().wait(lock, node.ready);
    while (!node.ready()) {
        lock.unlock();
        nap();
        lock.lock();
    }
}

void work_off(std::shared_ptr<Stream> stream) {
    Lock lock(world());
    for (;;) {
        changed().wait(lock, [&] { return !stream->queue.empty() || stream->closing; });
        if (stream->queue.empty()) return;
        std::shared_ptr<Node> node = stream->queue.front();
        await_turn(lock, *node);
        lock.unlock();
        if (node->type == CU_GRAPH_NODE_TYPE_KERNEL) run(node->launch);
        if (node->work) node->work();
        node.reset();
        lock.lock();
        finish_front(*stream);
    }
}

// Those of the machine's that CUDA_VISIBLE_DEVICES shows.
struct Gpus {
    int visible[smt::protocol::kMostSimulatedGpus] = {};
    int count = 0;
    Gpus() {
        const char* all = getenv("SMT_FAKE_GPUS");
        count = smt::protocol::visible_simulated_gpus(getenv("CUDA_VISIBLE_DEVICES"), all ? atoi(all) : 1,
                                                      visible);
    }
};

class Fake final : public Backend {
public:
    CUresult asked(const char* name, const char* format, va_list arguments) override {
        await_others(name);
        return record(name, format, arguments);
    }
    const char* device_name() const override { return "Fake GPU"; }
    int gpu(CUdevice device) const override {
        static const Gpus gpus;
        return device >= 0 && device < gpus.count ? gpus.visible[device] : -1;
    }
    int attribute(CUdevice_attribute which) const override { return fake::attribute(which); }
    uint64_t memory_bytes() const override {
        const char* given = getenv("SMT_FAKE_MEMORY");
        return given ? strtoull(given, nullptr, 0) : kDefaultBytes;
    }
    bool doubts_memory() const override {
        static const bool strict = getenv("SMT_FAKE_STRICT") != nullptr;
        return strict;
    }
    void soil(void* memory, uint64_t bytes) override {
        memset(memory, 0xa5, bytes < kMostGarbage ? bytes : kMostGarbage);
    }

    std::shared_ptr<Stream> make_stream() override { return std::make_shared<Stream>(); }
    void opened(const std::shared_ptr<Stream>& stream) override {
        std::erase_if(opened_, [](const std::shared_ptr<Stream>& each) { return each.use_count() == 1; });
        opened_.push_back(stream);
        std::thread(work_off, stream).detach();
    }
    void submitted(Stream&) override { changed().notify_all(); }
    double now_ms() override {
        timespec now{};
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
    }
    void await(Lock& lock, const std::function<bool()>& done) override { changed().wait(lock, done); }

    CUresult load(const void* image, std::unique_ptr<Image>* loaded, std::string*) override {
        return fake::load(image, loaded);
    }
    CUresult link(CUjitInputType type, const void* data, size_t bytes, std::string* image) override {
        const char* text = static_cast<const char*>(data);
        const size_t header = type == CU_JIT_INPUT_FATBINARY ? 80 : 0;  // a container of one text
        if (bytes < header) return CUDA_ERROR_INVALID_IMAGE;
        image->append(text + header, strnlen(text + header, bytes - header));
        return CUDA_SUCCESS;
    }
    // The shapes that cuDeviceGetAttribute promises; the driver itself refuses zeros.
    CUresult check(Launch& launch) override {
        const bool fits = launch.grid[1] <= 65535 && launch.grid[2] <= 65535 && launch.block[2] <= 64 &&
                          uint64_t{launch.block[0]} * launch.block[1] * launch.block[2] <= 1024;
        return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    int attribute(const Function&, CUfunction_attribute which) const override {
        switch (which) {
            case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
                return 1024;
            case CU_FUNC_ATTRIBUTE_NUM_REGS:
                return 32;
            case CU_FUNC_ATTRIBUTE_PTX_VERSION:
            case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
                return 90;
            case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
                return 48 << 10;
            case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
                return -1;
            default:
                return 0;
        }
    }
    int resident_blocks(const Function&, int threads, size_t) const override {
        return 2048 / threads < 32 ? 2048 / threads : 32;
    }
    size_t dynamic_shared(const Function&, int, int blocks) const override {
        return (227u << 10) / static_cast<unsigned>(blocks);
    }

private:
    // With world()'s lock. A stream is freed here and not by its thread: a leak check does not find what only
    // a thread that ends still holds.
    std::vector<std::shared_ptr<Stream>> opened_;
};

__attribute__((constructor)) void begin() { serve(*new Fake); }

}  // namespace

}  // namespace fake
