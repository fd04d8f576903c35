#include "runtime/dispatch/gpu_time.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace smt::runtime::dispatch {

namespace {

constexpr double kNewWeight = 1.0 / 8;  // weight of one launch in what is known
constexpr double kMostLonger = 8;       // times what is known: more than that has another cause
constexpr size_t kMostUnmanaged = 4096;

}  // namespace

// ---- Company

void Company::advance(TimePoint now) {
    const double passed = schedule::ns_of(now - seen_);
    if (passed <= 0) return;
    seen_ = now;
    if (working_.size() > 1) together_ = now;
    for (Part* part : working_) {
        if (part->streams > 1) part->crowded = now;
        part->own += passed / part->streams;
        part->shared += passed / part->streams / static_cast<double>(working_.size());
    }
}

void Company::begins(Part& part, TimePoint now) {
    const std::lock_guard lock(mutex_);
    advance(now);
    if (part.streams++ == 0) working_.push_back(&part);
}

void Company::ends(Part& part, TimePoint now) {
    const std::lock_guard lock(mutex_);
    advance(now);
    if (--part.streams == 0) std::erase(working_, &part);
}

bool Company::by_itself(const Part& part, TimePoint since, TimePoint now) {
    const std::lock_guard lock(mutex_);
    advance(now);
    return together_ <= since && part.crowded <= since;
}

Company::Sums Company::sums(const Part& part, TimePoint now) {
    const std::lock_guard lock(mutex_);
    advance(now);
    return {part.own, part.shared, together_};
}

// ---- Of a kernel

void LaunchTime::learn(double blocks, double took_ns) {
    const double each = took_ns * kPicoseconds / blocks;
    const auto known = static_cast<double>(block_ps_.load(std::memory_order_relaxed));
    const double now = known > 0 ? known + (std::min(each, known * kMostLonger) - known) * kNewWeight : each;
    block_ps_.store(static_cast<uint64_t>(std::max(1.0, now)), std::memory_order_relaxed);
}

LaunchTime& LaunchTimes::of(uint64_t blocks, uint32_t threads) {
    constexpr uint64_t kExactly = uint64_t{1} << 63;
    const std::lock_guard lock(mutex_);
    const uint64_t shape = kExactly | blocks << 11 | threads;  // at most 1,024 threads
    if (const auto found = by_shape_.find(shape); found != by_shape_.end()) return found->second;
    return by_shape_[by_shape_.size() < kMost ? shape : static_cast<uint64_t>(std::bit_width(blocks))];
}

void LaunchTimes::forget() {
    const std::lock_guard lock(mutex_);
    for (auto& [shape, time] : by_shape_) time.forget();
    last_.forget();
}

// ---- Of a tenant

void Correction::measured(double expected, double took) {
    const std::lock_guard lock(mutex_);
    const double seen = std::clamp(took / expected, kLeast, kMost), last = factor();
    const double weight = std::max(kLastWeight, 1.0 / (windows() + 1));
    factor_.store(last + (seen - last) * weight, std::memory_order_relaxed);
    windows_.fetch_add(1, std::memory_order_relaxed);
}

// ---- Of a stream

void GpuTime::over(LaunchTime& kernel, uint64_t blocks, bool whole, const Alike& alike) {
    if (blocks) over_.push_back({&kernel, static_cast<double>(blocks), whole, alike});
}

double GpuTime::Item::expected() const {
    const double last = alike.last ? alike.last->last(alike.key) : 0;
    return last > 0 ? last * blocks / alike.launch.blocks : kernel->of(blocks);
}

// The rest of a launch that was stopped before teaches what all of it takes, too.
void GpuTime::Item::learn(double took) const {
    kernel->learn(blocks, took);
    if (alike.last) alike.last->learn(alike.key, alike.launch, took * alike.launch.blocks / blocks);
}

// A program that captures graph after graph has ever new keys. What has to be learnt again is little.
void GpuTime::over_unmanaged(uint64_t key) {
    if (unmanaged_.size() >= kMostUnmanaged && over_.empty()) unmanaged_.clear();
    over(unmanaged_[key], 1, true);
}

// Each launch with what it takes alone; those of which that is not known share an equal part of the time.
void GpuTime::receive_beside_others(double shared) {
    double known = 0, guessed = 0;
    for (const Item& each : over_) {
        const double expected = each.kernel->of(each.blocks) * tenant_.correction.factor();
        known += expected;
        if (expected <= 0) guessed += shared / static_cast<double>(over_.size());
    }
    tenant_.ns.fetch_add(static_cast<int64_t>(known + guessed), std::memory_order_relaxed);
    tenant_.guessed_ns.fetch_add(static_cast<int64_t>(guessed), std::memory_order_relaxed);
}

// Launches that were seen to be over at the same time divide what they took as they were expected to.
void GpuTime::learn(double took) {
    double known = 0;
    size_t unknown = 0;
    for (const Item& each : over_) {
        const double expected = each.expected();
        known += expected;
        unknown += expected <= 0;
        if (!each.whole) return;
    }
    const double rest = unknown ? std::max(1.0, took - known) / static_cast<double>(unknown) : 0;
    const double late = took / std::max(1.0, known + rest * static_cast<double>(unknown));
    std::vector<double> times;
    for (const Item& each : over_) {
        const double expected = each.expected();
        times.push_back(expected > 0 ? expected * late : rest);
    }
    for (size_t i = 0; i < over_.size(); ++i) over_[i].learn(times[i]);
}

// The first work behind an idle time, or behind company, is left out: it starts late, or on a GPU that is not
// as it is later.
void GpuTime::compare(double took) {
    double expected = 0;
    for (const Item& each : over_) {
        const double one = each.kernel->of(each.blocks);
        if (!each.whole || one <= 0) return;
        expected += one;
    }
    compared_ += took;
    expected_of_ += expected;
    if (compared_ < Correction::kWindow) return;
    tenant_.correction.measured(expected_of_, compared_);
    compared_ = expected_of_ = 0;
}

void GpuTime::settle(bool at_work, TimePoint now, bool learns) {
    if (!needs_settling(at_work)) return;
    if (at_work && !at_work_) company_.begins(tenant_.part, now);
    const Company::Sums sums = company_.sums(tenant_.part, now);
    if (at_work_ && !over_.empty()) {
        const bool alone = sums.together <= begun_;
        const double own = sums.own - since_.own, shared = sums.shared - since_.shared;
        if (!alone) receive_beside_others(shared);
        if (alone) tenant_.ns.fetch_add(static_cast<int64_t>(own), std::memory_order_relaxed);
        if (alone && learns && steady_) compare(own);
        if (alone && learns) learn(own);
        steady_ = alone;
    }
    steady_ = steady_ && at_work;
    over_.clear();
    since_ = sums;
    begun_ = now;
    if (!at_work && at_work_) company_.ends(tenant_.part, now);
    at_work_ = at_work;
}

schedule::Duration GpuTime::receiving(const LaunchTime* next, uint64_t blocks, TimePoint now) {
    if (!at_work_) return {};
    const Company::Sums sums = company_.sums(tenant_.part, now);
    double worth = sums.together <= begun_ ? sums.own - since_.own : sums.shared - since_.shared;
    if (const double known = next ? next->of(static_cast<double>(blocks)) : 0; known > 0)
        worth = std::min(worth, known * tenant_.correction.factor());
    return schedule::Duration(static_cast<schedule::Duration::rep>(worth));
}

}  // namespace smt::runtime::dispatch
