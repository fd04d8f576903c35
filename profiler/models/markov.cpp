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
class Kernel {
public:
    explicit Kernel(const Units& units)
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
    double issues(int state) const { return units_.warps * (units_.count - states_[state].idle); }
    double requests(int state, const Memory& memory) const {
        const State& at = states_[state];
        return units_.warps * ((at.idle - at.uncoalesced) * memory.coalesced_requests +
                               at.uncoalesced * memory.uncoalesced_requests);
    }

    // Probability of each state a round after `state`, if an access ends with the probability given.
    void next(int state, double coalesced_ends, double uncoalesced_ends, Vector& probability) const {
        const State& from = states_[state];
        probability = stalls_.row(state);
        int unit = most_idle_ - from.idle;
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
    const Kernel first(first_units), second(second_units);
    const Eigen::Index states = first.size() * second.size();
    Matrix chain(states, states);
    Vector cycles(states), first_issues(states), second_issues(states);  // of a round in each state
    Vector first_next, second_next;
    for (int i = 0, state = 0; i < first.size(); ++i) {
        for (int j = 0; j < second.size(); ++j, ++state) {
            first_issues[state] = first.issues(i);
            second_issues[state] = second.issues(j);
            const double ready = first.issues(i) + second.issues(j);
            cycles[state] = ready > 0 ? ready : 1;
            const double waiting =
                memory.contention * (first.requests(i, memory) + second.requests(j, memory));
            const auto ends = [&](double own) {
                const double latency = memory.latency + (waiting + own - 1) / memory.requests_per_cycle;
                return std::min(1.0, cycles[state] / latency);
            };
            const double coalesced = ends(memory.coalesced_requests);
            const double uncoalesced = ends(memory.uncoalesced_requests);
            first.next(i, coalesced, uncoalesced, first_next);
            second.next(j, coalesced, uncoalesced, second_next);
            Eigen::Map<Matrix>(chain.row(state).data(), first.size(), second.size()).noalias() =
                first_next * second_next.transpose();
        }
    }
    const Vector steady = steady_state(chain);
    const double all = steady.dot(cycles);
    return {steady.dot(first_issues) / all, steady.dot(second_issues) / all};
}

}  // namespace smt::profiler::models
