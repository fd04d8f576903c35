// Threads of sessions that calls of the driver's make wait (runtime/device/device.h).
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/device/cuda/context_wide.h"
#include "runtime/device/device.h"
#include "runtime/device/held_up.h"

namespace smt::tests {

// A session whose thread the test is, while it lives. When it must end, its waits are released, as by its
// teardown.
class Session final : public runtime::device::Guest {
public:
    Session(uint32_t id, std::string name) : id_(id), name_(std::move(name)) {}
    ~Session() override { runtime::device::stream_waits().forget(*this); }
    uint32_t id() const override { return id_; }
    const std::string& tenant() const override { return name_; }
    void print(std::string_view) override {}
    void lost(CUresult, const std::string&) override {}
    void tell(const std::string&) override {}
    void must_end(const std::string& why) override {
        why_ = why;
        ended_ = true;
    }
    bool leaves() const override { return leaves_; }

    const uint32_t id_;
    const std::string name_;
    std::string why_;
    std::atomic<bool> ended_{false}, leaves_{false};
};

class Acting {
public:
    explicit Acting(Session& session) { runtime::device::set_guest_of_thread(&session); }
    ~Acting() { runtime::device::set_guest_of_thread(nullptr); }
};

// For a call that waits for its kernels.
inline bool stands_back(const Session& session) {
    const auto wait = runtime::device::longest_wait(session.id());
    return wait && wait->by == "a call that waits for its kernels";
}

inline CUstream stream(uintptr_t number) { return reinterpret_cast<CUstream>(number); }

}  // namespace smt::tests
