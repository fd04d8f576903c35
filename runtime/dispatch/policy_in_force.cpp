#include "runtime/dispatch/policy_in_force.h"

#include <fmt/format.h>

#include <utility>

namespace smt::runtime::dispatch {

PolicyInForce::PolicyInForce(std::unique_ptr<schedule::Policy> policy, const schedule::Device& device) {
    snapshot_.device = device;
    adopt(std::move(policy));
}

void PolicyInForce::adopt(std::unique_ptr<schedule::Policy> policy) {
    if (policy_) {
        std::unique_ptr<schedule::Policy>& last = retired_[policy_->name()];
        last = std::move(policy_);
    }
    policy_ = std::move(policy);
    if (const auto earlier = retired_.extract(policy_->name())) policy_->recall(*earlier.mapped());
    ++policies_;
    study_ = nullptr;
    studying_ = false;  // the study under way is of no use to the new policy
    short_stops_.store(policy_->short_stops());
    explores_.store(policy_->explores() != schedule::Policy::Explores::kNothing);
    least_saved_.store(policy_->least_saved());
    may_stop_.store(policy_->stops() != schedule::Policy::Stops::kNone);
    name_.store(policy_->name().data());
    if (recorder_) recorder_->choose(policy_->name());
}

void PolicyInForce::record(std::unique_ptr<schedule::Recorder> recorder) {
    recorder_ = std::move(recorder);
    recorder_->choose(policy_->name());
}

std::optional<schedule::Decision> PolicyInForce::ask(TimePoint now) {
    study_ = policy_->study(snapshot_);
    studying_ = study_ != nullptr;
    if (studying_) return std::nullopt;
    const TimePoint asked = schedule::Clock::now();
    schedule::Decision decision = policy_->decide(snapshot_, now);
    asking_.add(schedule::Clock::now() - asked);
    if (recorder_) recorder_->write(snapshot_, now, decision);
    ask_again_ = decision.again ? now + *decision.again : TimePoint::max();
    return decision;
}

bool PolicyInForce::study(std::unique_lock<std::mutex>& lock) {
    if (!study_) return false;
    const uint64_t policy = policies_;
    std::unique_ptr<schedule::Study> study = std::move(study_);
    lock.unlock();
    study->run();
    lock.lock();
    if (policy != policies_) return true;  // another policy was set meanwhile, and has decided
    policy_->learn(std::move(study));
    studying_ = false;
    return true;
}

void PolicyInForce::decided_since(TimePoint begin) { decisions_.add(schedule::Clock::now() - begin); }

std::string PolicyInForce::durations() {
    if (decisions_.count() == 0) return "";
    const Durations asking = std::exchange(asking_, {}), decisions = std::exchange(decisions_, {});
    return fmt::format(
        "policy {} decided {} times: half of them took it {:.2f} us, 99 % {:.2f}, the "
        "longest {:.2f}; looked at and carried out in {:.2f}, {:.2f}, {:.2f}",
        policy_->name(), decisions.count(), asking.quantile_us(.5), asking.quantile_us(.99), asking.most_us(),
        decisions.quantile_us(.5), decisions.quantile_us(.99), decisions.most_us());
}

}  // namespace smt::runtime::dispatch
