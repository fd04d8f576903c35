// Which two kernels are measured side by side, and with how many CTAs of each: the one plan of all streams of a server that measures pairs
// (SMT_PROFILE=pairs). Kernelet's OPT goes by what all slice ratios of all pairs have got done when they were tried beforehand (5.1). Here each full combination of
// CTAs (schedule/combinations.h) has windows of time in which both kernels keep to it on all multiprocessors, and what both get done is counted (common_time.h).
//
// - Pairs are what two kernels of two programs are there at the same time. While nothing is left to measure of them, everything passes_through.
// - A window begins with both at rest. Who is started first takes turns, for of two kernels that compute the elder is served first.
// - Time counts while all the CTAs of both have a place. It ends when enough was done of both. A launch that ends in it is followed by the program's next one of the same kernel with the same CTAs; where another kernel follows, the
//   window goes on when the first one is there again.
// - What was measured by servers before (the store) is not measured again. What does not get anywhere is given up.
// - Time in which somebody else is at work, too, is not counted.
//
// Nobody waits for ever: for a partner that is stopped, no longer than kLongestTry; for one that has nothing to do, kGap; and for another program to come at
// all, kCompany of the host's time, for programs seldom begin at the same moment.
//
// Whoever calls sees to it that nobody else does. Nothing here touches a stream: side_by_side.h does what is wanted.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/dispatch/common_time.h"
#include "runtime/profiles/known_kernel.h"
#include "runtime/schedule/combinations.h"

namespace smt::runtime::dispatch {

// A stream, as it is at a look.
struct Seat {
    bool works = false;       // a launch is unfinished,
    bool passes_through = false;       // and quotas do not count;
    bool complete = false;    // all the CTAs that it was given have a place
    schedule::Kernel kernel;
    std::shared_ptr<profiles::KnownKernel> known;   // null: it cannot be measured
    profiles::Shape shape;
};

class Pairing {
public:
    static constexpr int64_t kWindows = 2;   // of each combination: each kernel is the elder once
    static constexpr double kRounds = 8;     // of each kernel's blocks in a window: what is in half a round is little then. And for so long,
    static constexpr schedule::Duration kLeast = std::chrono::milliseconds(30);           // three hundred looks at its tickets
    static constexpr schedule::Duration kLongestTry = std::chrono::seconds(10);           // for a window, while both have something to do,
    static constexpr schedule::Duration kLongestFruitless = std::chrono::seconds(2);      // without anything that could be counted
    static constexpr int kTries = 2;                                                      // windows of a combination that came to nothing
    static constexpr schedule::Duration kGap = std::chrono::milliseconds(20);
    static constexpr schedule::Duration kCompany = std::chrono::seconds(10);
    // Of a launch: it takes one to settle.
    static constexpr uint64_t kLeastRoundsOfLaunch = 3;

    using HostClock = std::function<schedule::TimePoint()>;
    // `least`: of a window. 0 for a device whose clock is exact.
    Pairing(const schedule::Device& device, schedule::Duration least, HostClock host_clock) : device_(device), least_(least), host_clock_(std::move(host_clock)) {}

    struct Want {
        enum class What {
            kPassThrough,   // as without a policy
            kRest,   // stops between two blocks, and waits
            kHold,   // keeps to so many CTAs on each multiprocessor
        } what = What::kPassThrough;
        int ctas = 0;
    };
    Want see(uint64_t stream, const Seat& seat, schedule::TimePoint now);
    void leave(uint64_t stream);
    bool counts(uint64_t stream) const { return current_ && (current_->streams[0] == stream || current_->streams[1] == stream); }
    // What was measured, and what is missing and why: begins with profiles::kSideBySide.
    std::string summary() const;

private:
    struct Side {
        std::shared_ptr<profiles::KnownKernel> known;
        profiles::Shape shape;
    };
    struct Pair {
        std::array<Side, 2> sides;
        std::vector<schedule::models::Blocks> combinations;
        std::optional<schedule::models::Blocks> ctas;   // of the window under way,
        CommonTime time;                                // what was counted in it,
        schedule::Duration tried{};                     // and how long that has taken
        std::map<schedule::models::Blocks, int64_t> measured, failed;   // windows of this server
        const char* hopeless = nullptr;                 // why nothing more is tried
    };
    struct Current {
        std::array<uint64_t, 2> streams;
        Pair* pair;
        bool younger = false;                           // which of the two is started last
        bool runs = false;                              // both were at rest, and have begun since
        bool elder_runs = false;
        std::array<std::optional<schedule::TimePoint>, 2> gone = {};
    };

    static bool measurable(const Seat& seat) { return seat.works && seat.kernel.managed && seat.known && !seat.kernel.own_sms; }
    static bool is(const Seat& seat, const Side& side);
    void choose();
    bool choose(uint64_t first, uint64_t second);
    bool next_window(Pair& pair) const;
    profiler::Beside company(const Pair& pair, size_t side, const schedule::models::Blocks& ctas) const;
    int64_t windows(const Pair& pair, const schedule::models::Blocks& ctas) const;
    uint64_t round(const schedule::models::Blocks& ctas, size_t side) const;
    bool few_blocks(const Pair& pair, const schedule::models::Blocks& ctas) const;
    void go_on(schedule::TimePoint now);
    bool both_there(schedule::TimePoint now);
    void count(schedule::TimePoint now);
    bool others_work() const;
    void judge();
    const char* why_fruitless() const;
    void end_window();
    void look_for_company(const Seat& seat);
    std::string missing(const Pair& pair) const;

    const schedule::Device device_;
    const schedule::Duration least_;
    const HostClock host_clock_;
    std::map<uint64_t, Seat> seats_;                    // by stream
    std::map<std::array<profiler::Key, 2>, Pair> pairs_;
    std::optional<Current> current_;
    bool news_ = false;                                 // since nothing was found to measure
    schedule::TimePoint seen_{};
    bool met_ = false;                                  // two programs have, or one has waited long enough
    std::optional<schedule::TimePoint> waits_;          // since then, by the host's clock
    uint64_t windows_ = 0;                              // measured
};

}  // namespace smt::runtime::dispatch
