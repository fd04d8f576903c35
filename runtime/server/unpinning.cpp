// See unpinning.h.
#include "runtime/server/unpinning.h"

#include <limits>

#include "runtime/dispatch/quiesce.h"
#include "runtime/server/server.h"

namespace smt::runtime::server {

namespace {

constexpr auto kUnused = std::chrono::seconds(10);  // another suspension, or a turn, may come
constexpr auto kLook = std::chrono::seconds(1);
constexpr auto kBetween = std::chrono::milliseconds(20);  // two blocks: other calls' time

}  // namespace

Unpinning::Unpinning(Server& server)
    : server_(server),
      blocks_(std::make_shared<SpareBlocks>(server.device().driver())),
      pinning_(server, *blocks_) {
    self_.name = "the server";
    self_.priority = std::numeric_limits<int>::min();
}

Unpinning::~Unpinning() {
    {
        std::lock_guard lock(mutex_);
        leaves_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Unpinning::begin() {
    std::lock_guard lock(mutex_);
    if (begun_) return;
    begun_ = true;
    pinning_.begin();
    const std::string why = thread_.serve({"unpinning", ""}, [this] { run(); });
    if (!why.empty()) server_.note("host memory stays pinned: " + why);
}

void Unpinning::run() {
    server_.device().enter_thread();
    std::unique_lock lock(mutex_);
    for (auto pause = std::chrono::milliseconds(kLook);; lock.lock()) {
        if (changed_.wait_for(lock, pause, [this] { return leaves_; })) return;
        lock.unlock();
        std::shared_ptr<HostBlock> block = blocks_->take_unused(kUnused);
        pause = block ? kBetween : std::chrono::milliseconds(kLook);
        if (!block || server_.fatal() != CUDA_SUCCESS) continue;
        self_.awaited = {};  // a program has its waits for windows once in its life, this once for a block
        const dispatch::Quiesce others(server_.dispatcher(), self_, dispatch::Quiesce::For::kFree);
        block.reset();
    }
}

}  // namespace smt::runtime::server
