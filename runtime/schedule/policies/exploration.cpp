#include "runtime/schedule/policies/exploration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/schedule/combinations.h"
#include "runtime/schedule/estimate.h"

namespace smt::runtime::schedule {

namespace {

constexpr size_t kMostKeys = 4096;
// A slice of all blocks: also with quotas that leave a kernel what it takes by itself, workers keep to them.
constexpr uint64_t kWhole = uint64_t{1} << 30;
constexpr auto kSoon = std::chrono::milliseconds(1);  // what could not be tried just now is tried then
constexpr double kLeastRounds = 2, kRounds = 8;       // of all CTAs, in a slice; as in profiles/plan.h

bool is_timed(const Profile& profile, int sms, int ctas) {
    return std::ranges::any_of(
        profile.timed, [&](const Timed& each) { return each.sms == sms && each.ctas_per_sm == ctas; });
}

bool has_rates(const Profile& first, const Profile& second, const models::Blocks& ctas) {
    return rate_beside(first, second, ctas[0], ctas[1]) && rate_beside(second, first, ctas[1], ctas[0]);
}

// By `smt profile --pair`, or counters say what the model needs.
bool was_measured(const Profile& first, const Profile& second, const Device& device) {
    if (first.mix && second.mix && device.model) return true;
    return std::ranges::any_of(
        first.beside, [&](const Beside& each) { return each.other == second.identity && !each.learnt; });
}

// Time of a block beside as many as fit.
double block_ns(const Kernel& kernel, const Device& device, int most) {
    const double rounds = static_cast<double>(kernel.blocks) / (most * device.sms());
    return ns_of(*kernel.predicted) / std::max(1.0, rounds);
}

const Kernel* kernel_of(const Snapshot& snapshot, uint64_t id) {
    const auto found =
        std::ranges::find_if(snapshot.kernels, [&](const Kernel& each) { return each.id == id; });
    return found == snapshot.kernels.end() ? nullptr : &*found;
}

}  // namespace

bool Exploration::decides(const Snapshot& snapshot, TimePoint now, Wanted& wanted) {
    if (trial_ && is_over(snapshot, now)) end(now);
    if (!trial_ && !begin(snapshot, now)) {
        if (now < next_) wanted.ask_again(next_ - now);
        return false;
    }
    wanted.ask_again(std::max(Duration(1), trial_->begun + trial_->longest - now));
    if (trial_->sides.size() == 1)
        say_alone(snapshot, wanted);
    else
        say(snapshot, wanted);
    return true;
}

bool Exploration::begin(const Snapshot& snapshot, TimePoint now) {
    const bool pauses = now < next_;
    if (knobs_.part <= 0 || (pauses && !ended_)) return false;
    const Kernels kernels = candidates(snapshot);
    if (kernels.empty()) return false;
    if (std::exchange(ended_, false) && pauses) {  // it may have been the last that was missing
        missing(kernels, snapshot.device);
        return false;
    }
    blocked_ = false;
    trial_ = missing(kernels, snapshot.device);
    if (trial_) trial_->begun = now;
    if (!trial_ && blocked_) next_ = now + kSoon;
    return trial_.has_value();
}

// Empty: no trial can begin now.
Exploration::Kernels Exploration::candidates(const Snapshot& snapshot) const {
    Kernels kernels;
    bool company = false;
    for (const Kernel& kernel : snapshot.kernels) {
        if (!kernel.managed) return {};
        company |= kernel.session != snapshot.kernels.front().session;
        if (kernel.last_taken || kernel.own_sms || !kernel.profile || kernel.profile->identity == 0 ||
            !kernel.predicted || *kernel.predicted <= knobs_.short_kernel || kernel.blocks == 0)
            continue;
        kernels.push_back(&kernel);
    }
    return company ? kernels : Kernels{};
}

std::optional<Exploration::Trial> Exploration::missing(const Kernels& kernels, const Device& device) {
    std::vector<std::pair<uint64_t, const Profile*>> seen;
    for (const Kernel* each : kernels) seen.emplace_back(each->id, each->profile.get());
    if (seen == seen_) return std::nullopt;
    if (tries_.size() > kMostKeys) tries_.clear();
    std::optional<Trial> found;
    for (size_t i = 0; i < kernels.size() && !found; ++i) {
        if (what_ == What::kFootprints) found = missing_of(*kernels[i], device);
        for (size_t j = i + 1; j < kernels.size() && !found && what_ == What::kPairs; ++j) {
            if (kernels[i]->session != kernels[j]->session)
                found = missing_of(*kernels[i], *kernels[j], device);
        }
    }
    if (!found && !blocked_) seen_ = std::move(seen);
    return found;
}

// For its footprint. All CTAs first: with one point on each curve there is a footprint, if a rough one.
std::optional<Exploration::Trial> Exploration::missing_of(const Kernel& kernel, const Device& device) {
    if (kernel.profile->footprint && !kernel.profile->footprint_learnt) return std::nullopt;
    for (int ctas = most_ctas(kernel, limits_of(device)); ctas >= 1; ctas /= 2) {
        for (const int sms : {device.sms(), 1}) {
            if (auto trial = alone(kernel, device, sms, ctas)) return trial;
        }
    }
    return std::nullopt;
}

std::optional<Exploration::Trial> Exploration::missing_of(const Kernel& first, const Kernel& second,
                                                          const Device& device) {
    if (was_measured(*first.profile, *second.profile, device)) return std::nullopt;
    const std::vector<models::Blocks> all = combinations(first, second, device);
    const Resources limits = limits_of(device);
    for (const Kernel* each : {&first, &second}) {
        const int most = most_ctas(*each, limits);
        if (is_timed(*each->profile, device.sms(), most)) continue;
        if (auto trial = alone(*each, device, device.sms(), most)) return trial;
        return std::nullopt;  // rates mean nothing without it
    }
    const auto few = [&](const Kernel& kernel, int ctas) {
        return static_cast<double>(kernel.blocks) < (kLeastRounds + 1) * ctas * device.sms();
    };
    bool any = false;
    for (const models::Blocks& ctas : all) {
        const bool known = has_rates(*first.profile, *second.profile, ctas);
        any |= known;
        if (known || few(first, ctas[0]) || few(second, ctas[1])) continue;
        Trial trial;
        trial.key = {first.profile->identity, second.profile->identity, static_cast<uint64_t>(ctas[0]),
                     static_cast<uint64_t>(ctas[1])};
        if (given_up(trial.key) && !any) return std::nullopt;  // nor will others work
        if (given_up(trial.key)) continue;
        trial.longest = knobs_.longest_window;
        trial.sides = {{first.id, first.profile->identity, ctas[0]},
                       {second.id, second.profile->identity, ctas[1]}};
        return trial;
    }
    if (any) explored_.insert({first.profile->identity, second.profile->identity});
    return std::nullopt;
}

// Nothing: it is known, was tried in vain, takes too long, or there are too few blocks.
std::optional<Exploration::Trial> Exploration::alone(const Kernel& kernel, const Device& device, int sms,
                                                     int ctas) {
    Trial trial;
    trial.key = {kernel.profile->identity, static_cast<uint64_t>(sms), static_cast<uint64_t>(ctas)};
    if (is_timed(*kernel.profile, sms, ctas) || given_up(trial.key)) return std::nullopt;
    const double block = block_ns(kernel, device, most_ctas(kernel, limits_of(device)));
    if (kLeastRounds * block > ns_of(knobs_.longest_sample)) return std::nullopt;
    const double rounds = std::max(std::ceil(ns_of(knobs_.least_sample) / block),
                                   std::clamp(ns_of(knobs_.longest_sample) / block, kLeastRounds, kRounds));
    const double places = static_cast<double>(sms) * ctas;
    const auto left = static_cast<double>(blocks_left(kernel));
    if (static_cast<double>(kernel.blocks) < kLeastRounds * places) return std::nullopt;
    if (left < kLeastRounds * places) {
        blocked_ = true;
        return std::nullopt;
    }
    trial.slice = static_cast<uint64_t>(std::min(left, std::floor(rounds) * places));
    trial.longest = knobs_.longest_trial;
    trial.sides = {{kernel.id, kernel.profile->identity, ctas}};
    trial.sms = sms;
    return trial;
}

bool Exploration::given_up(const Key& key) const {
    const auto found = tries_.find(key);
    return found != tries_.end() && found->second >= knobs_.tries;
}

bool Exploration::is_over(const Snapshot& snapshot, TimePoint now) {
    const Trial& trial = *trial_;
    if (now - trial.begun >= trial.longest) return true;
    const Kernel* const first = kernel_of(snapshot, trial.sides[0].id);
    if (trial.sides.size() == 2) {
        const Kernel* const second = kernel_of(snapshot, trial.sides[1].id);
        if (!first || !second || !first->profile || !second->profile) return false;  // it may come back
        if (first->profile->identity != trial.sides[0].identity ||
            second->profile->identity != trial.sides[1].identity)
            return true;
        return has_rates(*first->profile, *second->profile, {trial.sides[0].ctas, trial.sides[1].ctas});
    }
    if (!first || !first->profile || first->profile->identity != trial.sides[0].identity) return true;
    if (!trial.runs) return false;
    return first->launch != trial.launch ||
           (first->state == Kernel::State::kWaiting && first->blocks_done > trial.blocks_done);
}

void Exploration::end(TimePoint now) {
    ++tries_[trial_->key];
    const Duration took = now - trial_->begun;
    next_ = now + nanoseconds(ns_of(took) * (1 / knobs_.part - 1));
    trial_.reset();
    ended_ = true;
    seen_.clear();
}

void Exploration::say(const Snapshot& snapshot, Wanted& wanted) {
    for (const Kernel& kernel : snapshot.kernels) {
        const auto side =
            std::ranges::find_if(trial_->sides, [&](const Side& each) { return each.id == kernel.id; });
        const bool tried =
            side != trial_->sides.end() && kernel.profile && kernel.profile->identity == side->identity;
        if ((tried && kernel.last_taken) || !kernel.managed) continue;  // nothing is left to hold
        if (!tried) {
            wanted.wait(kernel, "two others are tried beside each other");
            continue;
        }
        wanted.run(kernel, even_quota(side->ctas), kWhole,
                   [&] { return fmt::format("{} CTAs an SM beside another, to learn", side->ctas); });
    }
}

// All come to rest first, so that the slice has the device for itself.
void Exploration::say_alone(const Snapshot& snapshot, Wanted& wanted) {
    const Side& side = trial_->sides[0];
    const Kernel* const tried = kernel_of(snapshot, side.id);
    if (!trial_->runs && std::ranges::all_of(snapshot.kernels, [](const Kernel& each) {
            return each.state == Kernel::State::kWaiting;
        })) {
        trial_->runs = true;
        trial_->launch = tried->launch;
        trial_->blocks_done = tried->blocks_done;
    }
    for (const Kernel& kernel : snapshot.kernels) {
        if (kernel.id != side.id || !trial_->runs) {
            wanted.wait(kernel, "one kernel is tried by itself");
            continue;
        }
        Quota table = even_quota(side.ctas);
        if (trial_->sms < snapshot.device.multiprocessors) {
            table.assign(static_cast<size_t>(snapshot.device.multiprocessors), 0);
            std::fill_n(table.begin(), trial_->sms, static_cast<uint8_t>(side.ctas));
        }
        wanted.run(kernel, table, trial_->slice, [&] {
            return fmt::format("{} CTAs on each of {} SMs, to learn", side.ctas, trial_->sms);
        });
    }
}

}  // namespace smt::runtime::schedule
