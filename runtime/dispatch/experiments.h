// Experiments: what decides on a stream's launches in place of a policy, for `smt run --stress` and
// `smt profile` only.
//
//   stress   Random disturbance: launches run with random quotas, in slices, and are stopped, moved, shrunk
//            and grown, so that results that depend on any of this show it. One seed gives one series of
//            choices; when they take effect depends on the device. The seed's upper bits select fewer kinds
//            of disturbance, and more of each:
//              kStopsOnly   Launches are stopped and resumed as often as possible, with few workers at a
//                           time. So a launch takes many stops, and several programs can be stopped at once.
//              kQuotasOnly  Launches run with one random table after the other, and with further workers
//                           that find no place, so that mappings (SMT_JOURNAL=mapping) can be checked
//                           against the tables.
//              kSlicesOnly  Nothing is random: launches run in slices of as many blocks for each SM as the
//                           seed's lower bits say, with as many CTAs, if they fit. 0: quotas, and no slices.
//                           Kernelet's figure 6 (tools/bench/papers) times programs with it.
//   sweep    Measures managed launches with every number of CTAs and SMs of the plan (profiles/plan.h). A
//            launch runs in slices, each with its own quotas, timed by its workers. What this server or an
//            earlier one measured often enough is left out. What is left of a launch passes through.
//   halves   Every managed launch is limited to half of the CTAs that fit on an SM, on all SMs. Kernels of
//            any two programs then find room beside each other, and their co-scheduling profit (Kernelet;
//            profiler/models/co_schedule.h) can be measured apart from any policy. A kernel of which one CTA
//            fits keeps that one.
//   pairs    Measures managed launches beside those of another program, as the plan of all streams wants
//            (pairing.h).
#pragma once

#include <memory>
#include <vector>

#include "runtime/dispatch/decider.h"
#include "runtime/dispatch/pairing.h"
#include "runtime/dispatch/tenants.h"

namespace smt::runtime::dispatch {

inline constexpr uint64_t kStopsOnly = 1ull << 31;
inline constexpr uint64_t kQuotasOnly = 3ull << 30;
inline constexpr uint64_t kSlicesOnly = 1ull << 30;

// `places`: the SMs that the stream may use, of the device's `multiprocessors`.
struct Sms {
    int multiprocessors;
    std::vector<uint32_t> places;
};
std::unique_ptr<Decider> make_stress(uint64_t seed, Sms sms);

// Those of one server.
class Experiments {
public:
    Experiments(const schedule::Device& device, bool keeps_clock)
        : device_(device), least_window_(keeps_clock ? schedule::Duration::zero() : Pairing::kLeast) {}
    // Null: the policy decides.
    std::unique_ptr<Decider> on(const Tenant& tenant, uint64_t stream);

private:
    const schedule::Device device_;
    const schedule::Duration least_window_;
    std::shared_ptr<Pairing> plan_;  // shared by all paired tenants; made for the first one
};

}  // namespace smt::runtime::dispatch
