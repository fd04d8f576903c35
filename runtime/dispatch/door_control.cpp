#include "runtime/dispatch/door_control.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

namespace {

// A step of the frontier takes the GPU longer than a write to it needs to be seen. After a stop two more
// steps may begin.
constexpr uint64_t kStepPs = 2'000'000;
constexpr uint64_t kStepsUnknown = 1u << 10;  // of a launch of unknown time
constexpr int kLeastShift = 3, kMostShift = 12, kWidestShift = 28;
// What to ask and to move the frontier costs a unit, about 2 us, is little of a unit that takes so long.
// Units that begin at once move it one after the other, as do those that follow.
constexpr double kLongUnitPs = 30e6;
constexpr uint64_t kBetweenMovesPs = 8'000;
constexpr double kMovePs = 3'000, kMovesAtOnce = 0.01;  // the latter: of the launch's time, at most
constexpr double kQuickPs = 25e6;  // a stop may have to wait for early units that it finds decided on
// Each of them may move the frontier: atomic operations on one word, one after the other.
constexpr uint16_t kMostUndecided = 256;
// Units that wait for each other, and not only for earlier ones, find a group of so many whole. Where waves
// of CTAs follow each other a stop seldom finds a group that has begun in part: 132 multiprocessors are 33
// groups.
constexpr uint16_t kGroup = 4;
static_assert(kMostUndecided % kGroup == 0);

}  // namespace

DoorPace door_pace(uint64_t blocks, uint32_t unit, uint64_t places, uint64_t block_ps, bool waits) {
    const uint64_t step = block_ps ? kStepPs / (block_ps * unit) : blocks / unit / kStepsUnknown;
    const double all = static_cast<double>(block_ps) * static_cast<double>(blocks);
    const uint64_t waves = (blocks + places - 1) / places, at_once = std::min(blocks, places);
    const bool whole = waits && blocks <= places;
    DoorPace pace;
    pace.shift = static_cast<uint8_t>(
        whole ? std::min(static_cast<int>(std::bit_width(blocks)), kWidestShift)
              : std::clamp(static_cast<int>(std::bit_width(step)), kLeastShift, kMostShift));
    pace.quick = block_ps && all <= kQuickPs * static_cast<double>(waves);
    const uint64_t early = (pace.quick && all <= kQuickPs ? blocks : places) / unit;
    pace.early = static_cast<uint16_t>(std::clamp<uint64_t>(early, 1, UINT16_MAX));
    const double units_at_once = static_cast<double>(at_once) / unit;
    pace.exact = !whole && block_ps * unit >= kBetweenMovesPs &&
                 static_cast<double>(block_ps * at_once) >= kLongUnitPs &&
                 units_at_once * kMovePs <= all * kMovesAtOnce;
    if (waits && pace.exact) {
        pace.last = kGroup - 1;
        if (pace.early > kGroup) pace.early = static_cast<uint16_t>(pace.early / kGroup * kGroup);
    }
    return pace;
}

smt::DoorStep door_step(const DoorPace& pace, bool decides, bool decided) {
    const int how = (decides ? smt::kDoorDecides : 0) |
                    (pace.exact ? smt::kDoorExact | pace.last << smt::kDoorGroupAt : 0);
    return {pace.shift, static_cast<uint8_t>(how),
            decided ? pace.early : std::min(pace.early, kMostUndecided)};
}

DoorControl::~DoorControl() {
    if (base_) memory_.give(base_);
}

// Run numbers begin again on an idle stream only, and when no stop of earlier runs can arrive any more.
CUresult DoorControl::prepare(CUstream stream, CUstream control, bool idle, bool* anew) {
    constexpr uint64_t kHalf = DoorMemory::kFrontiers / 2;
    static_assert(kHalf > kMostDoorPlaces);
    if (!base_) SMT_TRY(memory_.take(&base_));
    *anew = !begun_ || (idle && used_up());
    if (*anew) {
        begun_ = false;
        SMT_TRY(driver_.cuStreamSynchronize(control));
        SMT_TRY(driver_.cuMemsetD8Async(base_, 0, DoorMemory::kBytes, stream));
        run_ = 0;
        decided_ = false;
        cleared_ = next_ / kHalf * kHalf + kHalf;
        begun_ = true;
    }
    if (next_ + (decided_ ? 1 : 0) < cleared_) return CUDA_SUCCESS;
    SMT_TRY(driver_.cuMemsetD8Async(frontier(cleared_), 0, kHalf * sizeof(uint32_t), stream));
    cleared_ += kHalf;
    return CUDA_SUCCESS;
}

// A run that does not ask must not be accounted for by what another one has decided.
smt::DoorLaunch DoorControl::next_run(uint32_t from, uint32_t to, const DoorPace& pace, bool asks,
                                      uint64_t* place) {
    if (std::exchange(segment_ends_, false)) ++segment_, leave_out();
    if (!asks || !pace.quick) leave_out();
    *place = next_++;
    const bool decides = asks && next_ % DoorMemory::kFrontiers != 0;
    was_decided_ = std::exchange(decided_, decides);
    ++run_;
    if (!asks) return {};
    return {stop_word(), frontier(*place), run_, from, to, door_step(pace, decides, was_decided_)};
}

// What runs then may have seen the stop, and decided against a run that is not in flight.
CUresult DoorControl::stop(CUstream control) {
    if (segment_ends_) return CUDA_SUCCESS;
    leave_out();
    return driver_.cuStreamWriteValue32_v2(control, stop_word(), run_, 0);
}

CUresult DoorControl::report(CUstream stream, uint64_t first, uint64_t last, uint32_t* pinned) {
    const uint64_t count = std::min<uint64_t>(last - first + 1, kMostDoorPlaces);
    const uint64_t before_end = std::min(count, DoorMemory::kFrontiers - first % DoorMemory::kFrontiers);
    SMT_TRY(driver_.cuMemcpyDtoHAsync_v2(pinned, frontier(first), before_end * sizeof(uint32_t), stream));
    if (before_end == count) return CUDA_SUCCESS;
    return driver_.cuMemcpyDtoHAsync_v2(pinned + before_end, frontier(first + before_end),
                                        (count - before_end) * sizeof(uint32_t), stream);
}

}  // namespace smt::runtime::dispatch
