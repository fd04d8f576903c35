// The fields of each struct in a recording: its members, under their names. Only record.cpp includes this.
//
// A new member of one of the structs breaks the build of its list here until the list has it.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

template <class T>
inline constexpr std::string_view kFieldNames = "";

#define SMT_FIELDS(Type, ...)                                           \
    template <>                                                         \
    inline constexpr std::string_view kFieldNames<Type> = #__VA_ARGS__; \
    template <class T>                                                  \
        requires std::same_as<std::remove_const_t<T>, Type>             \
    auto fields_of(T& value) {                                          \
        auto& [__VA_ARGS__] = value;                                    \
        return std::tie(__VA_ARGS__);                                   \
    }

SMT_FIELDS(Resources, threads, registers, shared_bytes, warps, ctas)
SMT_FIELDS(models::Memory, latency, requests_per_cycle, contention, coalesced_requests, uncoalesced_requests)
SMT_FIELDS(models::Multiprocessor, warp_schedulers, memory)
SMT_FIELDS(models::Configuration, ctas_per_sm, nanoseconds)
SMT_FIELDS(models::Utilization, pur, mur)
SMT_FIELDS(models::Footprint, sms, ctas_per_sm, throughput)
SMT_FIELDS(models::Waits, interval, latency, requests, pipes)
SMT_FIELDS(Mix, utilization, memory_ratio, uncoalesced_ratio, instructions_per_block, waits)
SMT_FIELDS(Beside, other, ctas_per_sm, other_ctas_per_sm, rate, learnt)
SMT_FIELDS(Timed, sms, ctas_per_sm)
SMT_FIELDS(Profile, identity, blocks, configurations, by_ctas, preemption, slice_overhead, mix, footprint,
           footprint_learnt, timed, beside)
SMT_FIELDS(Kernel, id, tenant, session, priority, managed, has_door, state, blocks, blocks_done, ctas_per_sm,
           usual_ctas, own_sms, multiprocessors, ahead, since, launch, last_taken, weight, cta, predicted,
           remaining, preemption, profile, received, guessed, receiving, correction, corrections)
SMT_FIELDS(Device, multiprocessors, sm, model)
SMT_FIELDS(Urgent, priority, since)
SMT_FIELDS(Target, p99, slowdown)
SMT_FIELDS(Pause, from, to, launches, over)
SMT_FIELDS(Activity, works, began, ended, pauses, forgotten)
SMT_FIELDS(Service, session, tenant, target, launches, over, activity)
SMT_FIELDS(Snapshot, device, kernels, urgent, services)
SMT_FIELDS(Assignment, kernel, action, reason, quota, slice)
SMT_FIELDS(Confinement, kernel, multiprocessors, longer_than, reason, stoppable, ahead)

#undef SMT_FIELDS

template <>
inline constexpr std::string_view kFieldNames<Decision> = "assignments, confinements, again";
template <class T>
    requires std::same_as<std::remove_const_t<T>, Decision>
auto fields_of(T& value) {
    auto& [assignments, confinements, attained, again] = value;
    return std::tie(assignments, confinements, again);
}

template <class T>
constexpr auto field_names() {
    std::array<std::string_view, std::tuple_size_v<decltype(fields_of(std::declval<T&>()))>> names;
    std::string_view rest = kFieldNames<T>;
    for (std::string_view& name : names) {
        name = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), name.size() + 2));
    }
    return names;
}

// Calls archive(name, member, default) for each member.
template <class Archive, class T>
void fields(Archive& archive, T& value) {
    using Plain = std::remove_const_t<T>;
    static constexpr auto kNames = field_names<Plain>();
    const Plain standard{};
    const auto standards = fields_of(standard);
    const auto members = fields_of(value);
    [&]<size_t... i>(std::index_sequence<i...>) {
        (archive(kNames[i], std::get<i>(members), std::get<i>(standards)), ...);
    }(std::make_index_sequence<kNames.size()>());
}

}  // namespace smt::runtime::schedule
