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
    study_ = nullptr;
    studying_ = false;  // the study under way is of no use to the new policy
    traits_.store(&adopted_.emplace_back(policy_->traits()), std::memory_order_release);
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
    const size_t policies = adopted_.size();
    std::unique_ptr<schedule::Study> study = std::move(study_);
    lock.unlock();
    study->run();
    lock.lock();
    if (policies != adopted_.size()) return true;  // another policy was set meanwhile, and has decided
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
