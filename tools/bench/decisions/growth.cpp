// How the time of a decision grows, for people: bench_growth [POLICY...].
//
// A snapshot has so many kernels, each of a tenant of its own and of one of sixteen kinds. From one decision
// to the next one kernel goes on to its next launch, another has made progress, and what was decided holds.
// The time is the median over decisions of the least of several runs. "growth" is e of n^e, from the last
// number of kernels but one to the last. Below that, the same of the choice of a GPU for a program
// (`smt run --gpu any`).
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "tools/bench/decisions/kernels.h"
#include "tools/smt/gpu_choice.h"

using namespace smt::bench;

namespace {

constexpr size_t kKernels[] = {1, 4, 16, 64, 250, 500, 1000, 2000};
constexpr size_t kGpus[] = {1, 4, 16, 64, 128, 256, 512};
constexpr int kDecisions = 40, kFirst = 10, kRuns = 3;  // the first ones find nothing that holds
constexpr double kTooLong = 2e6;                        // us, of all decisions: larger numbers are left out

Snapshot snapshot_of(size_t count) {
    static std::map<uint64_t, std::shared_ptr<const Profile>> profiles;  // one for each kind, as servers have
    Snapshot snapshot{large_device(), {}};
    for (uint64_t id = 1; id <= count; ++id) {
        const uint64_t kind = 1 + id % 16;
        Kernel& made = snapshot.kernels.emplace_back(kernel_of(id, kind));
        made.session = static_cast<uint32_t>(id);
        auto& profile = profiles[kind];
        if (profile)
            made.profile = profile;
        else
            profile = made.profile;
        made.predicted = 1ms;
        made.since = kBegin;
    }
    return snapshot;
}

// What a policy said holds at once.
void carry_out(const Decision& decision, Snapshot& snapshot, TimePoint now) {
    for (const Assignment& each : decision.assignments) {
        Kernel& kernel = snapshot.kernels[each.kernel - 1];
        kernel.state = each.action == Action::kWait ? State::kWaiting : State::kRunning;
        kernel.since = now;
    }
    for (const Confinement& each : decision.confinements) {
        snapshot.kernels[each.kernel - 1].multiprocessors = each.multiprocessors;
        snapshot.kernels[each.kernel - 1].ahead = each.ahead;
    }
}

void go_on(Snapshot& snapshot, size_t step) {
    Kernel& over = snapshot.kernels[step * 7 % snapshot.kernels.size()];
    ++over.launch;
    over.blocks_done = 0;
    Kernel& other = snapshot.kernels[step * 11 % snapshot.kernels.size()];
    other.blocks_done = std::min(other.blocks_done + 8, other.blocks - 1);
    for (Kernel& each : snapshot.kernels)
        if (each.state == State::kRunning) each.received += 20us, ++each.corrections;
}

// us of each decision.
std::vector<double> decide(const std::string& name, size_t count) {
    const auto policy = make_policy(name);
    Snapshot snapshot = snapshot_of(count);
    TimePoint now = kBegin;
    std::vector<double> times;
    for (int step = 0; step < kDecisions; ++step) {
        while (std::unique_ptr<Study> study = policy->study(snapshot)) {
            study->run();
            policy->learn(std::move(study));
        }
        const auto begin = Watch::now();
        policy->study(snapshot);
        const Decision decision = policy->decide(snapshot, now);
        times.push_back(since_us(begin));
        now += 50us;
        carry_out(decision, snapshot, now);
        go_on(snapshot, static_cast<size_t>(step));
    }
    return times;
}

// us; below 0: it takes too long.
double decision_us(const std::string& name, size_t count) {
    std::vector<double> least(kDecisions, 1e300);
    double all = 0;
    for (int run = 0; run < kRuns; ++run) {
        const std::vector<double> times = decide(name, count);
        for (size_t i = 0; i < times.size(); ++i) all += times[i], least[i] = std::min(least[i], times[i]);
    }
    least.erase(least.begin(), least.begin() + kFirst);
    return all > kTooLong ? -1 : quantile(std::move(least), .5);
}

double choice_us(size_t gpus) {
    std::vector<smt::tools::GpuLoad> loads(gpus);
    for (size_t i = 0; i < gpus; ++i)
        loads[i] = {80, 80 - i * 7 % 60, static_cast<unsigned>(i * 5 % 9), static_cast<double>(i % 11) / 10};
    constexpr int kTimes = 100, kTrials = 20;
    double least = 1e300;
    size_t sum = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
        const auto begin = Watch::now();
        for (int i = 0; i < kTimes; ++i) sum += *smt::tools::choose_gpu(loads, static_cast<uint64_t>(i % 40));
        least = std::min(least, since_us(begin) / kTimes);
    }
    if (sum == SIZE_MAX) std::abort();  // so that it is computed
    return least;
}

template <class Time, size_t size>
void print_row(const char* name, const size_t (&numbers)[size], const Time& time) {
    std::printf("%-15s", name);
    std::vector<double> us;
    for (const size_t number : numbers) {
        us.push_back(us.empty() || us.back() >= 0 ? time(number) : -1);
        us.back() < 0 ? std::printf(" %9s", "-") : std::printf(" %9.2f", us.back());
        std::fflush(stdout);
    }
    std::erase_if(us, [](double each) { return each < 0; });
    if (us.size() > 1)
        std::printf(" %8.2f", std::log(us.back() / us[us.size() - 2]) /
                                  std::log(static_cast<double>(numbers[us.size() - 1]) /
                                           static_cast<double>(numbers[us.size() - 2])));
    std::printf("\n");
}

template <size_t size>
void print_head(const char* what, const size_t (&numbers)[size]) {
    std::printf("%-15s", what);
    for (const size_t number : numbers) std::printf(" %9zu", number);
    std::printf(" %8s\n", "growth");
}

}  // namespace

int main(int argc, char** argv) {
    print_head("kernels", kKernels);
    const std::vector<std::string> names =
        argc > 1 ? std::vector<std::string>(argv + 1, argv + argc) : policy_names();
    for (const std::string& name : names)
        print_row(name.c_str(), kKernels, [&](size_t count) { return decision_us(name, count); });
    std::printf("\n");
    print_head("GPUs", kGpus);
    print_row("choose_gpu", kGpus, choice_us);
}
