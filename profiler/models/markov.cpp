#include "profiler/models/markov.h"

#include <Eigen/Core>
#include <algorithm>
#include <vector>

namespace smt::profiler::models {

namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

constexpr double kMostMemory = 0.9999;  // with 1, a chain may fall into parts that never meet

// Units that can be idle at all, and whether some wait for coalesced accesses and some for others.
int most_idle(const Units& kernel) { return kernel.memory_ratio > 0 ? std::max(kernel.count, 0) : 0; }
bool is_mixed(const Units& kernel) { return kernel.uncoalesced_ratio > 0 && kernel.uncoalesced_ratio < 1; }
int states_up_to(int idle, bool mixed) { return mixed ? (idle + 1) * (idle + 2) / 2 : idle + 1; }

// One kernel's states, and how they follow from each other. They are numbered by the units that are idle, and
// among those, if it makes both kinds of accesses, by the units on uncoalesced ones.
class KernelChain {
public:
    explicit KernelChain(const Units& units)
        : units_(units),
          mixed_(is_mixed(units)),
          most_idle_(most_idle(units)),
          stall_(std::clamp(units.memory_ratio, 0.0, kMostMemory)),
          uncoalesced_(stall_ * std::clamp(units.uncoalesced_ratio, 0.0, 1.0)) {
        for (int idle = 0; idle <= most_idle_; ++idle) {
            for (int more = 0; more <= (mixed_ ? idle : 0); ++more)
                states_.push_back({idle, mixed_ || uncoalesced_ == 0 ? more : idle});
        }
        stalls_ = Matrix::Zero(size(), size());
        for (int state = 0; state < size(); ++state) {
            stalls_(state, 0) = 1;
            for (int unit = 0; unit < most_idle_ - states_[state].idle; ++unit)
                add_unit(unit, stall_ - uncoalesced_, uncoalesced_, &stalls_(state, 0));
        }
    }

    int size() const { return static_cast<int>(states_.size()); }
    double interval() const { return std::max(1.0, units_.interval); }
    const PipeCycles& pipes() const { return units_.pipes; }
    double ready(int state) const { return units_.warps * (units_.count - states_[state].idle); }
    double requests_of(bool uncoalesced, const Memory& memory) const {
        if (units_.requests >= 0) return units_.requests;
        return uncoalesced ? memory.uncoalesced_requests : memory.coalesced_requests;
    }
    double requests(int state, const Memory& memory) const {
        const State& at = states_[state];
        return units_.warps * ((at.idle - at.uncoalesced) * requests_of(false, memory) +
                               at.uncoalesced * requests_of(true, memory));
    }
    // Of an access, while so many requests wait.
    double latency(bool uncoalesced, double waiting, const Memory& memory) const {
        const double own = requests_of(uncoalesced, memory);
        const double unloaded = units_.latency > 0 ? units_.latency : memory.latency;
        return unloaded + std::max(0.0, waiting + own - 1) / memory.requests_per_cycle;
    }

    // Probability of each state a round after `state`, if a ready unit issues with one probability and an
    // access ends with the others.
    void next(int state, double issues, double coalesced_ends, double uncoalesced_ends,
              Vector& probability) const {
        const State& from = states_[state];
        int unit = most_idle_ - from.idle;
        if (issues == 1) {
            probability = stalls_.row(state);
        } else {
            probability = Vector::Zero(size());
            probability[0] = 1;
            for (int i = 0; i < unit; ++i)
                add_unit(i, issues * (stall_ - uncoalesced_), issues * uncoalesced_, probability.data());
        }
        for (int i = from.uncoalesced; i < from.idle; ++i)
            add_unit(unit++, 1 - coalesced_ends, 0, probability.data());
        for (int i = 0; i < from.uncoalesced; ++i)
            add_unit(unit++, 0, 1 - uncoalesced_ends, probability.data());
    }

private:
    struct State {
        int idle, uncoalesced;
    };

    // Adds a unit, which will be stalled with these probabilities, to `units` others. Backwards, so that it
    // is added once.
    void add_unit(int units, double coalesced, double uncoalesced, double* probability) const {
        for (int state = states_up_to(units, mixed_) - 1; state >= 0; --state) {
            const double before = probability[state];
            const int more =
                mixed_ ? state + states_[state].idle + 1 : state + 1;  // one more idle, coalesced
            probability[state] = before * (1 - coalesced - uncoalesced);
            probability[more] += before * coalesced;
            probability[more + mixed_] += before * uncoalesced;
        }
    }

    Units units_;
    bool mixed_;
    int most_idle_;
    double stall_, uncoalesced_;  // probability that a ready unit stalls at all, on an uncoalesced access
    std::vector<State> states_;
    Matrix stalls_;  // row: what becomes of the ready units of a state
};

// A round: its cycles, and how many instructions each ready warp of a kernel issues in it, 1 at most.
struct Round {
    double cycles;
    std::array<double, 2> issues;
};

// With these cycles of one pipe for all that each kernel's ready warps could issue.
double pipe_round(double fast, double slow, double long_interval) {
    if (fast + slow >= long_interval) return fast + slow;
    return fast / (1 - slow / long_interval);
}

Round round_of(const std::array<double, 2>& ready, const std::array<double, 2>& interval,
               const std::array<const PipeCycles*, 2>& pipes) {
    const int slow = interval[1] > interval[0], fast = 1 - slow;
    const double short_one = interval[fast], long_one = interval[slow];
    double cycles = std::max(short_one, pipe_round(ready[fast], ready[slow], long_one));
    for (int i = 0; i < kPipes; ++i)
        cycles = std::max(
            cycles, pipe_round(ready[fast] * (*pipes[fast])[i], ready[slow] * (*pipes[slow])[i], long_one));
    Round round{cycles, {1, 1}};
    round.issues[slow] = std::min(1.0, cycles / long_one);
    return round;
}

// The vector pi with pi P = pi, up to a factor, by the elimination of Grassmann, Taksar and Heyman: no
// subtraction, so nothing is cancelled however rare a transition. Each state can be followed by state 0.
Vector steady_state(Matrix& chain) {
    for (Eigen::Index n = chain.rows() - 1; n > 0; --n) {
        chain.col(n).head(n) *= 1 / chain.row(n).head(n).sum();
        chain.topLeftCorner(n, n).noalias() += chain.col(n).head(n) * chain.row(n).head(n);
    }
    Vector steady(chain.rows());
    steady[0] = 1;
    for (Eigen::Index n = 1; n < chain.rows(); ++n) steady[n] = steady.head(n).dot(chain.col(n).head(n));
    return steady;
}

}  // namespace

int states_of(const Units& kernel) { return states_up_to(most_idle(kernel), is_mixed(kernel)); }

std::array<double, 2> issued(const Memory& memory, const Units& first_units, const Units& second_units) {
    const KernelChain first(first_units), second(second_units);
    const Eigen::Index states = first.size() * second.size();
    // A kernel without units does not decide how long rounds are.
    const std::array<double, 2> intervals{first_units.count > 0 ? first.interval() : second.interval(),
                                          second_units.count > 0 ? second.interval() : first.interval()};
    Matrix chain(states, states);
    Vector cycles(states), first_issues(states), second_issues(states);  // of a round in each state
    Vector first_next, second_next;
    for (int i = 0, state = 0; i < first.size(); ++i) {
        for (int j = 0; j < second.size(); ++j, ++state) {
            const std::array<double, 2> ready{first.ready(i), second.ready(j)};
            const Round round = ready[0] + ready[1] > 0
                                    ? round_of(ready, intervals, {&first.pipes(), &second.pipes()})
                                    : Round{1, {1, 1}};
            cycles[state] = round.cycles;
            first_issues[state] = ready[0] * round.issues[0];
            second_issues[state] = ready[1] * round.issues[1];
            const double waiting =
                memory.contention * (first.requests(i, memory) + second.requests(j, memory));
            const auto ends = [&](const KernelChain& kernel, bool uncoalesced) {
                return std::min(1.0, round.cycles / kernel.latency(uncoalesced, waiting, memory));
            };
            first.next(i, round.issues[0], ends(first, false), ends(first, true), first_next);
            second.next(j, round.issues[1], ends(second, false), ends(second, true), second_next);
            Eigen::Map<Matrix>(chain.row(state).data(), first.size(), second.size()).noalias() =
                first_next * second_next.transpose();
        }
    }
    const Vector steady = steady_state(chain);
    const double all = steady.dot(cycles);
    return {steady.dot(first_issues) / all, steady.dot(second_issues) / all};
}

}  // namespace smt::profiler::models
