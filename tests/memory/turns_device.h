// The rule of turns for want of memory, in virtual time: a device of which programs have more than it has.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/server/memory/memory_turns.h"

namespace smt::tests::turns {

using namespace std::chrono_literals;
using runtime::server::MemoryTurns;
using Program = MemoryTurns::Program;
using Step = MemoryTurns::Step;
using What = Step::What;
using TimePoint = MemoryTurns::TimePoint;

constexpr uint64_t kGiB = 1ull << 30;
constexpr double kSpeed = 20.0 * kGiB;  // bytes a second, if nothing else is said
constexpr double kForCalls = 0.33;

// Carries steps out as the server does, and counts.
struct Device {
    explicit Device(uint64_t bytes, double part = 0.1, double for_calls = kForCalls)
        : turns(part, for_calls), total(bytes) {}

    Program& add(uint32_t id, uint64_t bytes) {
        programs.push_back({.id = id, .here = bytes});
        return of(id);
    }
    Program& of(uint32_t id) {
        return *std::find_if(programs.begin(), programs.end(), [&](const Program& p) { return p.id == id; });
    }
    uint64_t free() const {
        uint64_t used = 0;
        for (const Program& each : programs) used += each.here;
        if (used > total) FAIL("more than the device has");  // thousands of times a test
        return total - used;
    }
    // Until there is nothing to do now. The last step; a grant is taken at once.
    Step settle() {
        for (int steps = 0; steps < 100; ++steps) {
            const Step step = turns.next(programs, free(), now);
            if (step.what == What::kNothing) return step;
            Program& program = of(step.id);
            if (step.what == What::kOut) {
                const uint64_t bytes = std::min(step.bytes + step.ahead, program.here);
                CHECK(bytes > 0);
                ++moves_out;
                program.out = true;
                program.here -= bytes;
                program.away += bytes;
                out += bytes;
                move(step.requester, bytes);
            } else if (step.what == What::kIn) {
                const uint64_t bytes = program.away;
                program.out = false;
                program.here += bytes;
                program.away = 0;
                if (step.with) {  // and its allocation, which it frees soon
                    CHECK(step.with == program.asks);
                    CHECK(free() >= program.asks);
                    program.asks = 0;
                    ++served_with[program.id];
                }
                move(step.id, bytes);
                turns.served(step.id, now);
            } else if (step.what == What::kGrant) {
                program.here += program.asks;
                program.asks = 0;
                turns.served(step.id, now);
            } else {
                program.asks = 0;
                ++refused;
                return step;
            }
        }
        FAIL("no end of steps");
        return {};
    }
    void move(uint32_t requester, uint64_t bytes) {
        const auto took = std::chrono::duration_cast<MemoryTurns::Duration>(
            std::chrono::duration<double>(static_cast<double>(bytes) / speed));
        turns.moved(requester, bytes, took);
        now += took;
        moving += took;
    }
    // All programs work without a pause; the time that each was here, by its place in `programs`.
    std::vector<double> run(MemoryTurns::Duration time) {
        std::vector<double> here(programs.size());
        for (Program& each : programs) each.works = true;
        const TimePoint until = now + time;
        while (now < until) {
            settle();
            for (size_t i = 0; i < programs.size(); ++i)
                if (!programs[i].out) here[i] += std::chrono::duration<double>(10ms).count();
            now += 10ms;
        }
        return here;
    }

    MemoryTurns turns;
    const uint64_t total;
    double speed = kSpeed;
    std::vector<Program> programs;
    TimePoint now = TimePoint(1000s);
    uint64_t out = 0;
    int moves_out = 0;
    MemoryTurns::Duration moving{};
    int refused = 0;
    std::map<uint32_t, int> served_with;  // program -> allocations that came in with it
};

}  // namespace smt::tests::turns
