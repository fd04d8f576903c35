// See pinning.h.
#include "runtime/server/pinning.h"

#include <algorithm>
#include <thread>

#include "runtime/server/server.h"

namespace smt::runtime::server {

Pinning::Pinning(Server& server, SpareBlocks& blocks)
    : server_(server),
      blocks_(blocks),
      helpers_(std::clamp<size_t>(std::thread::hardware_concurrency() / 2, kLeast, kMost)) {}

Pinning::~Pinning() {
    blocks_.leave();
    for (Thread& each : helpers_) each.join();
}

void Pinning::begin() {
    for (size_t i = 0; i < helpers_.size(); ++i) {
        const std::string why = helpers_[i].serve({"pinning", ""}, [this, i] {
            server_.device().enter_thread();
            while (blocks_.help(i)) {
            }
        });
        if (!why.empty()) server_.note("fewer threads pin host memory: " + why);
    }
}

}  // namespace smt::runtime::server
