// How long the steps of a longer work take, one after the other, for the log.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>

namespace smt::runtime::server {

class Laps {
public:
    // The step that began with the one before, or with the object, is over.
    void end(std::string_view step) {
        const Clock::time_point now = Clock::now();
        text_ += fmt::format("{}{} {:.1f}", text_.empty() ? "" : ", ", step, milliseconds(now - last_));
        last_ = now;
    }
    // "12.3 ms (place 0.4, streams 11.9)".
    std::string text() const { return fmt::format("{:.1f} ms ({})", milliseconds(last_ - begun_), text_); }

private:
    using Clock = std::chrono::steady_clock;
    static double milliseconds(Clock::duration time) {
        return std::chrono::duration<double, std::milli>(time).count();
    }

    const Clock::time_point begun_ = Clock::now();
    Clock::time_point last_ = begun_;
    std::string text_;
};

}  // namespace smt::runtime::server
