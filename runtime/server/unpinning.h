// Frees host memory that no move has used for a while, behind the moves: to unpin a block waits for the whole
// context and holds up its other calls meanwhile (device/cuda/context_wide.h), so it happens block by block,
// in windows in which launches stop (dispatch/quiesce.h).
//
// Any thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "runtime/dispatch/tenants.h"
#include "runtime/server/memory/spare_blocks.h"
#include "runtime/server/pinning.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::server {

class Server;

class Unpinning {
public:
    explicit Unpinning(Server& server);
    ~Unpinning();
    Unpinning(const Unpinning&) = delete;
    Unpinning& operator=(const Unpinning&) = delete;

    const std::shared_ptr<SpareBlocks>& blocks() const { return blocks_; }
    // Memory moves from now on: the thread begins, and those that pin.
    void begin();

private:
    void run();

    Server& server_;
    dispatch::Tenant self_;  // to the dispatcher
    const std::shared_ptr<SpareBlocks> blocks_;
    Pinning pinning_;
    std::mutex mutex_;  // guards what follows; a leaf lock
    std::condition_variable changed_;
    bool begun_ = false, leaves_ = false;
    Thread thread_;
};

}  // namespace smt::runtime::server
