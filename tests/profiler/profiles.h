// A profile to keep, and results taken apart, for the tests of the store.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <variant>

#include "profiler/store/store.h"

namespace smt::tests {

inline profiler::Key some_key(const std::string& kernel = "_Z5saxpyfPfS_") {
    return {kernel, "4f2a", {256, 1, 1}, 12, "NVIDIA H200"};
}

// Everything in it is known.
inline profiler::Profile some_profile(const std::string& kernel = "_Z5saxpyfPfS_") {
    profiler::Profile profile;
    profile.key = some_key(kernel);
    profile.resources = {32, 16, 1024, 2048, 8};
    profile.times[{132, 8}] = {2, 10000, 4096, 700};
    profile.times[{1, 4}] = {1, 5000, 2048, 9000};
    profile.beside[{some_key("_Z5otherv"), 3, 5}] = {2, 4000, 600};
    profile.beside[{{"_Z5thirdv", "77aa", {64, 2, 1}, 9, "NVIDIA H200"}, 1, 2}] = {1, 100, 50};
    profile.learnt_times[{132, 4}] = {1, 600, 0, 80};
    profile.learnt_beside[{some_key("_Z6fourthv"), 2, 2}] = {3, 900, 400};
    profile.counters = {5000, 350, 100000, 20000, 500, 4000, 2000};
    profile.preemption = {3, 60000};
    profile.slicing = {4, 90000};
    profile.coefficients = {{"duration.intercept_ns", 120.5}, {"duration.ns_per_block", 0.07}};
    return profile;
}

// What a call gave; the test ends here if that is a problem.
template <class Value>
Value value_of(profiler::Result<Value> result) {
    if (const auto* problem = std::get_if<profiler::Problem>(&result)) FAIL(problem->text);
    return std::get<Value>(std::move(result));
}

template <class Value>
std::string problem_of(const profiler::Result<Value>& result) {
    const auto* problem = std::get_if<profiler::Problem>(&result);
    return problem ? problem->text : "";
}

inline std::string problem_of(const std::optional<profiler::Problem>& problem) {
    return problem ? problem->text : "";
}

}  // namespace smt::tests
