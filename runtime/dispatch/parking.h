// Where threads of a suspended tenant stay that wait for its launches. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace smt::runtime::dispatch {

class Parking {
public:
    // Its work stands still from now on, whatever the policy says, or goes on. False: so it was already.
    bool close() { return !closed_.exchange(true); }
    bool open() { return closed_.exchange(false); }
    bool closed() const { return closed_.load(); }

    // A thread is parked as long as this lives.
    class Stay {
    public:
        explicit Stay(Parking& parking) : threads_(parking.threads_) { threads_.fetch_add(1); }
        ~Stay() { threads_.fetch_sub(1); }
        Stay(const Stay&) = delete;
        Stay& operator=(const Stay&) = delete;

    private:
        std::atomic<uint32_t>& threads_;
    };
    uint32_t threads() const { return threads_.load(); }

private:
    std::atomic<bool> closed_{false};
    std::atomic<uint32_t> threads_{0};
};

}  // namespace smt::runtime::dispatch
