// The device's address space. A device address is the host address where the server mapped it, so
// memory here is bookkeeping over ranges: which are live, which were freed. Every access of a kernel
// is checked against it before a byte is touched.
//
// Ranges come from two sides: allocated()/freed() report memory that other code maps (the
// server's tenants), obtain()/give_back() serve memory of our own (module variables, the device
// heap). Any thread may call anything; the interpreter keeps the range it used last and asks
// again when generation() has moved. Code that unmaps memory calls freed() first, and not while a
// step runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <type_traits>

namespace smt::runtime::device::simulated {

// The next multiple of `to`.
template <typename Unsigned>
constexpr Unsigned round_up(Unsigned value, std::type_identity_t<Unsigned> to) {
    return (value + to - 1) / to * to;
}

class Memory {
public:
    enum class State : uint8_t { kUnknown, kLive, kFreed };
    struct Range {
        uint64_t begin = 0;
        uint64_t end = 0;
        State state = State::kUnknown;

        bool holds(uint64_t address, uint64_t bytes) const {
            return address >= begin && address < end && bytes <= end - address;
        }
    };

    Memory() = default;
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // The range is live, or no longer; parts of ranges may be freed. What was freed is remembered
    // until it is allocated again or forgotten (unmapped for good).
    void allocated(uint64_t address, uint64_t bytes);
    void freed(uint64_t address, uint64_t bytes);
    void forget(uint64_t address, uint64_t bytes);

    // Zeroed memory of our own, live; 0: there is none. Addresses follow from the order of calls
    // alone, so that two runs see the same ones.
    uint64_t obtain(uint64_t bytes, uint64_t alignment = 256);
    void give_back(uint64_t address);

    // What lies at the address: the whole range around it, or one of state kUnknown.
    Range find(uint64_t address) const;
    bool live(uint64_t address, uint64_t bytes) const {
        Range range = find(address);
        return range.state == State::kLive && range.holds(address, bytes);
    }
    uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

private:
    void mark(uint64_t begin, uint64_t end, State state);

    mutable std::mutex mutex_;
    std::map<uint64_t, Range> ranges_;        // by begin; disjoint
    std::map<uint64_t, uint64_t> own_;        // address -> bytes
    std::multimap<uint64_t, uint64_t> idle_;  // bytes -> address, of own memory given back
    uint64_t base_ = 0;                       // the reservation that own memory is cut from
    uint64_t next_ = 0;
    std::atomic<uint64_t> generation_{1};
};

}  // namespace smt::runtime::device::simulated
