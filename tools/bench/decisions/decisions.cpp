// What a decision for 16 kernels takes, for people: bench_decisions [FOLDER [POLICY...]]. With a folder
// that is not "", the situations it was measured in are recorded there, one file a policy, for `smt replay`.
//
// Sixteen tenants of all kinds launch, pause and launch again on a GPU of 132 multiprocessors in virtual
// time, as the policy decides. The situations are kept and decided on again by a new policy, several times
// over; a decision's time is the least of these, so that what else the machine did is left out. What is
// computed ahead of a decision, outside of every lock, is apart.
#include <cstdio>
#include <cstdlib>

#include "runtime/schedule/recorder.h"
#include "tests/policy/virtual_gpu.h"
#include "tools/bench/decisions/kernels.h"

using namespace smt::bench;

namespace {

constexpr int kTrials = 9;
constexpr uint64_t kKernels = 16;
constexpr double kUntil = 60e6;  // ns

struct Situation {
    Snapshot snapshot;
    TimePoint now;
};

// Keeps what a policy is asked.
class Kept final : public Policy {
public:
    Kept(std::unique_ptr<Policy> policy, Recorder* recorder)
        : Policy(policy->traits()), policy_(std::move(policy)), recorder_(recorder) {
        if (recorder_) recorder_->choose(policy_->name());
    }
    void want(const Snapshot& snapshot, TimePoint now, Wanted& wanted) override {
        situations.push_back({snapshot, now});
        const Decision decision = policy_->decide(snapshot, now);
        if (recorder_) recorder_->write(snapshot, now, decision);
        wanted.repeat(decision);
    }
    std::vector<Situation> situations;

private:
    std::unique_ptr<Policy> policy_;
    Recorder* recorder_;
};

std::vector<Situation> situations(const std::string& policy, const char* folder) {
    VirtualGpu gpu(large_device());
    for (uint64_t id = 1; id <= kKernels; ++id) {
        Program program;
        program.kernel = kernel_of(id, id);
        program.work.block_ns = 50e3 * static_cast<double>(1 + id % 7);
        program.launches = kEndless;
        program.arrives_ns = 100e3 * static_cast<double>(id);
        program.gap_ns = 30e3 * static_cast<double>(id % 6);
        gpu.add(program);
    }
    std::unique_ptr<Recorder> recorder;
    if (folder)
        recorder = std::make_unique<Recorder>(folder + ("/" + policy + ".jsonl"), 1ull << 30,
                                              [](const std::string& why) { std::puts(why.c_str()); });
    if (recorder && !recorder->error().empty())
        std::fprintf(stderr, "%s\n", recorder->error().c_str()), std::exit(2);
    Kept kept(make_policy(policy), recorder.get());
    gpu.run(kept, kUntil);
    return std::move(kept.situations);
}

void measure(const std::string& name, const char* folder) {
    const std::vector<Situation> all = situations(name, folder);
    std::vector<double> least(all.size(), 1e300);
    double ahead_us = 0;
    int studies = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
        const auto policy = make_policy(name);
        for (size_t i = 0; i < all.size(); ++i) {
            const auto before = Watch::now();
            while (std::unique_ptr<Study> study = policy->study(all[i].snapshot)) {
                study->run();
                policy->learn(std::move(study));
                ++studies;
            }
            ahead_us += since_us(before);
            const auto begin = Watch::now();
            policy->study(all[i].snapshot);  // as the dispatcher asks, when there is nothing left
            policy->decide(all[i].snapshot, all[i].now);
            least[i] = std::min(least[i], since_us(begin));
        }
    }
    size_t most = 0;
    for (const Situation& each : all) most = std::max(most, each.snapshot.kernels.size());
    std::printf("%-15s %6zu %8zu %8.2f %8.2f %8.2f", name.c_str(), all.size(), most, quantile(least, .5),
                quantile(least, .99), quantile(least, 1));
    if (studies)
        std::printf("   and %d pairs ahead of them, %.0f us each", studies / kTrials, ahead_us / studies);
    std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
    std::printf("%-15s %6s %8s %8s %8s %8s   us\n", "policy", "n", "kernels", "p50", "p99", "most");
    const std::vector<std::string> names =
        argc > 2 ? std::vector<std::string>(argv + 2, argv + argc) : policy_names();
    for (const std::string& name : names) measure(name, argc > 1 && *argv[1] ? argv[1] : nullptr);
}
