// See workload.h.
#include "tools/fleet/workload.h"

#include <array>
#include <cmath>
#include <map>
#include <random>
#include <utility>

namespace smt::fleet {

namespace {

constexpr std::array<uint64_t, 4> kRounds{1, 2, 4, 8};
constexpr double kLeast = 1.0 / 32, kMost = 1.0 / 2;  // of a GPU's memory
constexpr uint64_t kGranule = 1 << 20;

// The library's distributions differ from one library to another.
class Draw {
public:
    explicit Draw(uint64_t seed) : engine_(seed) {}
    double part() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // from 0 to below 1
    size_t below(size_t count) { return static_cast<size_t>(part() * static_cast<double>(count)); }
    double exponential(double mean) { return -mean * std::log1p(-part()); }

private:
    std::mt19937_64 engine_;
};

uint64_t draw_memory(Draw& draw, uint64_t gpu_memory) {
    const double part = kLeast * std::pow(kMost / kLeast, draw.part());
    return static_cast<uint64_t>(part * static_cast<double>(gpu_memory)) / kGranule * kGranule;
}

}  // namespace

Workload spread(const Device& device, std::vector<Tenant> tenants, const WorkloadKnobs& knobs) {
    Workload workload{device, knobs.gpus, knobs.gpu_memory, std::move(tenants), {}};
    Draw draw(knobs.seed);
    double gpu_ns = 0;
    for (size_t i = 0; i < knobs.jobs; ++i) {
        Job& job = workload.jobs.emplace_back();
        job.tenant = draw.below(workload.tenants.size());
        job.rounds = kRounds[draw.below(kRounds.size())];
        job.memory = draw_memory(draw, knobs.gpu_memory);
        gpu_ns += workload.tenants[job.tenant].gpu_ns * static_cast<double>(job.rounds);
    }
    const double between =
        gpu_ns / (static_cast<double>(knobs.jobs) * static_cast<double>(knobs.gpus) * knobs.load);
    std::map<std::pair<size_t, uint64_t>, double> known;
    double now = 0;
    for (Job& job : workload.jobs) {
        job.arrives_ns = now += draw.exponential(between);
        const auto [place, missing] = known.try_emplace({job.tenant, job.rounds});
        if (missing) place->second = time_alone_ns(workload.tenants[job.tenant], job.rounds, device);
        job.alone_ns = place->second;
    }
    return workload;
}

}  // namespace smt::fleet
