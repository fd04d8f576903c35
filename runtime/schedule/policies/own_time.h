// How long requests of a service take by themselves: with no best-effort tenant at work, or with all of them
// stopped. By the number of launches, since requests differ; classes are an eighth of an octave wide. A class
// with few requests goes by the nearest class with enough of them, in proportion to launches, if that is not
// more than two octaves away: requests that follow each other closely come out as one. Of requests that were
// cut, as those of a closed loop are, there is no such limit.
//
// Of each class the last kKept requests count, so that it follows what changes. Not thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtime/schedule/requests.h"

namespace smt::runtime::schedule {

class OwnTime {
public:
    static constexpr size_t kKept = 64;
    static constexpr size_t kEnough = 16;        // of a class
    static constexpr size_t kMostClasses = 256;  // further ones are not learnt
    static constexpr int kFarthest = 16;         // classes

    void note(const Request& request) {
        const int number = class_of(request.launches);
        if (classes_.size() >= kMostClasses && !classes_.contains(number)) return;
        Class& of = classes_[number];
        if (of.times.size() < kKept)
            of.times.push_back(request.busy);
        else
            of.times[of.next++ % kKept] = request.busy;
        of.sorted = of.times;
        std::ranges::sort(of.sorted);
    }

    // The 99th percentile of its kind by itself, as far as so few requests tell: all but the slowest 2 %, of
    // which one is left out at least, since a single one may have had another cause. Nothing: not known yet.
    std::optional<Duration> tail(const Request& request) const {
        const int number = class_of(request.launches);
        const Class* nearest = nullptr;
        int distance = 0, found = 0;
        for (const auto& [each, of] : classes_) {
            if (of.times.size() < kEnough) continue;
            if (nearest && std::abs(each - number) >= distance) continue;
            nearest = &of;
            distance = std::abs(each - number);
            found = each;
        }
        if (!nearest || (distance > kFarthest && !request.cut)) return std::nullopt;
        const size_t slowest = nearest->sorted.size() - 1;
        const Duration time = nearest->sorted[std::min(slowest - 1, slowest * 98 / 100)];
        return std::chrono::duration_cast<Duration>(time * std::exp2((number - found) / kClasses));
    }

private:
    static constexpr double kClasses = 8;  // in an octave
    static int class_of(uint64_t launches) {
        return static_cast<int>(
            std::lround(std::log2(static_cast<double>(std::max<uint64_t>(1, launches))) * kClasses));
    }
    struct Class {
        std::vector<Duration> times, sorted;
        size_t next = 0;
    };
    std::map<int, Class> classes_;
};

}  // namespace smt::runtime::schedule
