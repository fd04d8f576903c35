// PairWatch: what two kernels get done side by side, learnt whenever two happen to run so: two streams of two
// sessions are at work, each with so many CTAs on each multiprocessor, and no other stream. Policies that
// explore bring that about (schedule/policies/exploration.h). `smt profile --pair` measures the same at
// length, with each kernel as the elder once (pairing.h).
//
// A window is over when both have done kRounds rounds of blocks, in kLeast at least (common_time.h). What is
// known already is not watched.
//
// Not thread-safe: the dispatcher's lock guards it. Touches no stream.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/dispatch/common_time.h"
#include "runtime/profiles/known_kernel.h"

namespace smt::runtime::dispatch {

class PairWatch {
public:
    static constexpr double kRounds = 8;
    static constexpr schedule::Duration kLeast = std::chrono::milliseconds(10);  // a hundred looks at tickets

    // A stream that is at work.
    struct Seat {
        uint64_t stream = 0;
        int ctas = 0;  // that it keeps to on each SM; 0: it does not
        schedule::Kernel kernel = {};
        std::shared_ptr<profiles::KnownKernel> known = nullptr;  // null: nothing is kept of it
        profiles::Shape shape = {};
        std::function<bool()> complete =
            {};  // all its CTAs have a place; asked seldom, as it waits for the GPU
    };

    // `least`: of a window; 0 for a device with an exact clock.
    PairWatch(int multiprocessors, schedule::Duration least)
        : multiprocessors_(multiprocessors), least_(least) {}
    // At a look at all streams. A text for the journal, when something was learnt; else "".
    std::string look(schedule::TimePoint now, std::span<const Seat> at_work);
    bool any() const { return window_.has_value(); }

private:
    struct Side {
        uint64_t stream = 0;
        std::shared_ptr<profiles::KnownKernel> known;
        profiles::Shape shape;
        int ctas = 0;
        uint64_t launch = ~0ull;  // of which all CTAs were seen to have a place
        bool complete = false;
        schedule::TimePoint look_again{};
    };
    struct Window {
        std::array<Side, 2> sides;
        CommonTime time;
    };
    static bool same(const Side& side, const Seat& seat);
    bool is_known(const std::array<Side, 2>& sides) const;
    static profiler::Beside company(const std::array<Side, 2>& sides, size_t side);
    CommonTime::Seen seen(Side& side, const Seat& seat, schedule::TimePoint now) const;
    std::string learn();

    const int multiprocessors_;
    const schedule::Duration least_;
    std::optional<Window> window_;
};

}  // namespace smt::runtime::dispatch
