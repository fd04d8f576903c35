// The machine: multiprocessors, the block scheduler, copy engines and the clock that drives them.
// config.h says what is modelled, with which constants.
//
// It is one event loop without threads or real time: advance() goes to the next cycle at which
// something happens and does all of it. At one cycle, timed events come first, in the order they were
// asked for, then the multiprocessors by number. The same calls at the same cycles give the same run.
// While advance() runs, only the functions that it calls may call the machine.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/device/simulated/machine/block_scheduler.h"

namespace smt::runtime::device::simulated {

enum class CopyEngine : uint8_t { kToDevice, kToHost, kWithin, kCount };

class Machine final : public Clock, private Multiprocessor::Listener {
public:
    explicit Machine(const MachineConfig& config);
    ~Machine() override;

    const MachineConfig& config() const { return config_; }
    Cycle now() const override { return now_; }

    // The grid's needs are possible. It reaches the block scheduler after kLaunchLatency, and ended()
    // is called when its last block is over and the machine has drained.
    void launch(std::shared_ptr<Grid> grid);
    // Ends a grid that was launched and is not over; not from within a block's step.
    void cancel(const Grid& grid);
    // `done` is called when the engine has moved so many bytes, after those asked for before.
    void copy(CopyEngine engine, uint64_t bytes, std::function<void()> done);
    void at(Cycle when, std::function<void()> what);  // not before now

    bool idle() const { return next() == kNever; }
    Cycle next() const;                                       // when something happens; kNever: nothing will
    bool advance(Cycle until = kNever);                       // not beyond; false: nothing happens until then
    void pass(Cycle until) { now_ = std::max(now_, until); }  // idle: nothing happens but that time goes on

private:
    void finished(GridRun& run, uint32_t multiprocessor, Cycle now) override;
    void failed(GridRun& run, GridResult::End end, const Block& block, Dim3 index, int line) override;
    void stop(GridRun& run);
    void end(GridRun& run, Cycle when);
    void give_out_at(Cycle when);

    const MachineConfig config_;
    Cycle now_ = 0;
    uint64_t asked_ = 0;
    std::map<std::pair<Cycle, uint64_t>, std::function<void()>> events_;  // by time, then order
    Cycle giving_out_ = kNever;
    std::map<const Grid*, bool> on_the_way_;                       // to the scheduler; true: cancelled
    Cycle engines_[static_cast<size_t>(CopyEngine::kCount)] = {};  // when each is free
    MemorySystem memory_;
    std::vector<Multiprocessor> multiprocessors_;
    BlockScheduler scheduler_;
};

}  // namespace smt::runtime::device::simulated
