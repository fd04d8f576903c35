// A session's linker states, with the log buffers that the driver writes to while a state exists. The states
// themselves are the session's handles (HandleKind::kLink). Any thread.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/jit/source.h"
#include "runtime/server/code/jit_options.h"

namespace smt::runtime::server {

using JitOptionsPointer = std::shared_ptr<JitOptions>;

class Links {
public:
    explicit Links(const DriverApi& driver) : driver_(driver) {}

    CUresult create(JitOptionsPointer options, CUlinkState* state);
    JitOptionsPointer find(CUlinkState state) const;  // null: none

    // Inputs for the compile worker's linker. False: the state's or the session's inputs have too many bytes.
    bool add(CUlinkState state, jit::Input input);
    bool has_inputs(CUlinkState state) const;
    std::vector<jit::Input> inputs(CUlinkState state) const;

    // Marks a state with inputs in the driver's linker, which cannot be taken back.
    void give_to_driver(CUlinkState state);
    bool given_to_driver(CUlinkState state) const;
    CUresult destroy(CUlinkState state);
    void clear();  // the states must be destroyed already

private:
    struct State {
        JitOptionsPointer options;
        std::vector<jit::Input> inputs;
        bool drivers = false;  // given_to_driver()
    };

    const DriverApi& driver_;
    mutable std::mutex mutex_;
    std::unordered_map<CUlinkState, State> states_;
    uint64_t bytes_ = 0;  // of all inputs
};

}  // namespace smt::runtime::server
