// The plan of a server that measures pairs of kernels (SMT_PROFILE=pairs), shared by all its streams: which
// two kernels are measured side by side, and with how many CTAs of each.
//
// Kernelet's OPT uses measurements of all slice ratios of all pairs, made beforehand (5.1). Here each full
// combination of CTAs (schedule/combinations.h) has windows of time in which both kernels keep to it on all
// SMs, and what both get done is counted (common_time.h).
//
// - A pair is two kernels of two programs that are present at the same time. While nothing is left to measure
//   of the kernels present, all streams pass through.
// - A window begins with both kernels at rest. They take turns in being started first, because of two
//   compute-bound kernels the elder is served first.
// - Time counts while all CTAs of both have a place. Time in which another stream is at work does not count.
//   A window ends when enough was done of both.
// - If a launch ends within a window, the program's next launch of the same kernel continues with the same
//   CTAs. If another kernel follows, the window continues when the first kernel is back.
// - Windows that earlier servers measured (in the profile cache) are not measured again. Combinations without
//   progress are given up.
// - Every wait is bounded: by kLongestTry for a stopped partner, by kGap for a partner without work, and by
//   kCompany of the host's time for a second program, because programs seldom begin at the same moment.
//
// Not thread-safe: the caller serializes. Touches no stream: measuring.cpp makes steps of what is wanted.
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

// A stream at a look.
struct Seat {
    bool works = false;           // a launch is unfinished
    bool passes_through = false;  // quotas do not apply
    bool complete = false;        // all CTAs that it was given have a place
    schedule::Kernel kernel;
    std::shared_ptr<profiles::KnownKernel> known;  // null: it cannot be measured
    profiles::Shape shape;
};

class Pairing {
public:
    static constexpr int64_t kWindows = 2;  // per combination: each kernel is the elder once
    // Of each kernel's blocks in a window, so that the work of half a round matters little.
    static constexpr double kRounds = 8;
    // Of a window: three hundred looks at its tickets.
    static constexpr schedule::Duration kLeast = std::chrono::milliseconds(30);
    // For a window, while both have work.
    static constexpr schedule::Duration kLongestTry = std::chrono::seconds(10);
    // For a window in which one kernel has not done a round.
    static constexpr schedule::Duration kLongestFruitless = std::chrono::seconds(2);
    // Windows of a combination that failed.
    static constexpr int kTries = 2;
    static constexpr schedule::Duration kGap = std::chrono::milliseconds(20);
    static constexpr schedule::Duration kCompany = std::chrono::seconds(10);
    // Of a launch: one round is needed to settle.
    static constexpr uint64_t kLeastRoundsOfLaunch = 3;

    using HostClock = std::function<schedule::TimePoint()>;
    // `least`: of a window; 0 for a device with an exact clock.
    Pairing(const schedule::Device& device, schedule::Duration least, HostClock host_clock)
        : device_(device), least_(least), host_clock_(std::move(host_clock)) {}

    struct Want {
        enum class What {
            kPassThrough,  // as without a policy
            kRest,         // stops between two blocks and waits
            kHold,         // keeps to `ctas` CTAs on each SM
        } what = What::kPassThrough;
        int ctas = 0;
    };
    Want see(uint64_t stream, const Seat& seat, schedule::TimePoint now);
    void leave(uint64_t stream);
    bool counts(uint64_t stream) const {
        return current_ && (current_->streams[0] == stream || current_->streams[1] == stream);
    }
    // For the journal: what was measured, and what is missing and why. Begins with profiles::kSideBySide.
    std::string summary() const;

private:
    struct Side {
        std::shared_ptr<profiles::KnownKernel> known;
        profiles::Shape shape;
    };
    struct Pair {
        std::array<Side, 2> sides;
        std::vector<schedule::models::Blocks> combinations;
        std::optional<schedule::models::Blocks> ctas;                  // of the window under way
        CommonTime time;                                               // what was counted in it
        schedule::Duration tried{};                                    // how long that has taken
        std::map<schedule::models::Blocks, int64_t> measured, failed;  // windows of this server
        const char* hopeless = nullptr;                                // why nothing more is tried
    };
    struct Current {
        std::array<uint64_t, 2> streams;
        Pair* pair;
        bool younger = false;  // which of the two is started last
        bool runs = false;     // both were at rest, and have begun since
        bool elder_runs = false;
        std::array<std::optional<schedule::TimePoint>, 2> gone = {};
    };

    static bool measurable(const Seat& seat) {
        return seat.works && seat.kernel.managed && seat.known && !seat.kernel.own_sms;
    }
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
    std::map<uint64_t, Seat> seats_;  // by stream
    std::map<std::array<profiler::Key, 2>, Pair> pairs_;
    std::optional<Current> current_;
    // Something has changed since nothing was found to measure.
    bool news_ = false;
    schedule::TimePoint seen_{};
    // Two programs have met, or one has waited long enough.
    bool met_ = false;
    // Since when the first program waits, by the host's clock.
    std::optional<schedule::TimePoint> waits_;
    uint64_t windows_ = 0;  // measured
};

}  // namespace smt::runtime::dispatch
