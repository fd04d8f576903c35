// See fleet.h.
#include "tools/fleet/fleet.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <numeric>
#include <utility>

namespace smt::fleet {

namespace {

constexpr double kStepsOfAJob = 50;
constexpr size_t kWindow = 5;  // steps that count for how busy a GPU is

struct Resident {
    size_t job;
    size_t streams_left;
    double ended_ns = 0;
    double gone_ns = 0;                    // GPU time of streams that have ended
    std::array<double, kWindow> before{};  // all GPU time at the ends of the last steps
};

struct Gpu {
    explicit Gpu(const Device& device, std::string_view policy_name)
        : gpu(device), policy(make_policy(policy_name)) {}
    VirtualGpu gpu;
    std::unique_ptr<Policy> policy;
    std::vector<Resident> residents;
};

class Fleet {
public:
    Fleet(const Workload& workload, std::string_view policy, const Rule& rule);
    Outcome run();

private:
    uint32_t session_of(size_t job) const { return static_cast<uint32_t>(job + 1); }
    void advance(double to_ns);
    Resident& resident_of(size_t gpu, const Program& program);
    void leave(size_t gpu);
    void end_step();
    void arrive(size_t job);
    void place_waiting();
    void place(size_t job, size_t gpu);

    const Workload& workload_;
    const Rule& rule_;
    std::vector<Gpu> gpus_;
    std::vector<GpuView> views_;
    std::deque<size_t> waiting_;  // jobs
    Outcome outcome_;
    double now_ns_ = 0, step_ns_ = 0;
    size_t steps_ = 0, in_use_ = 0;
    uint64_t next_stream_ = 1;
    double in_use_ns_ = 0;  // summed over GPUs
};

double mean_alone_ns(const Workload& workload) {
    double sum = 0;
    for (const Job& each : workload.jobs) sum += each.alone_ns;
    return sum / static_cast<double>(std::max<size_t>(1, workload.jobs.size()));
}

Fleet::Fleet(const Workload& workload, std::string_view policy, const Rule& rule)
    : workload_(workload), rule_(rule), step_ns_(mean_alone_ns(workload) / kStepsOfAJob) {
    gpus_.reserve(workload.gpus);
    for (size_t i = 0; i < workload.gpus; ++i) gpus_.emplace_back(workload.device, policy);
    views_.resize(workload.gpus);
    for (GpuView& each : views_) each.load.total_bytes = each.load.free_bytes = workload.gpu_memory;
    outcome_.placements.resize(workload.jobs.size());
}

Outcome Fleet::run() {
    double step_end = step_ns_;
    for (size_t next = 0; next < workload_.jobs.size() || in_use_ > 0;) {
        const bool arrives = next < workload_.jobs.size() && workload_.jobs[next].arrives_ns <= step_end;
        advance(arrives ? workload_.jobs[next].arrives_ns : step_end);
        if (arrives) {
            arrive(next++);
        } else {
            end_step();
            step_end += step_ns_;
        }
        place_waiting();
    }
    const auto jobs = static_cast<double>(std::max<size_t>(1, workload_.jobs.size()));
    outcome_.unusable_memory /= jobs;
    outcome_.gpus_in_use = in_use_ns_ / workload_.jobs.back().arrives_ns;
    return std::move(outcome_);
}

void Fleet::advance(double to_ns) {
    if (now_ns_ < workload_.jobs.back().arrives_ns)
        in_use_ns_ += static_cast<double>(in_use_) * (to_ns - now_ns_);
    now_ns_ = to_ns;
    for (size_t i = 0; i < gpus_.size(); ++i) {
        if (gpus_[i].residents.empty()) continue;
        gpus_[i].gpu.run(*gpus_[i].policy, to_ns);
        for (const Program& each : gpus_[i].gpu.take_done()) {
            Resident& resident = resident_of(i, each);
            --resident.streams_left;
            resident.gone_ns += each.gpu_ns;
            resident.ended_ns = std::max(resident.ended_ns, each.ends_ns.back());
        }
        leave(i);
    }
}

Resident& Fleet::resident_of(size_t gpu, const Program& program) {
    return *std::ranges::find_if(gpus_[gpu].residents, [&](const Resident& each) {
        return session_of(each.job) == program.kernel.session;
    });
}

// Those that have ended.
void Fleet::leave(size_t gpu) {
    GpuView& view = views_[gpu];
    std::vector<Resident>& residents = gpus_[gpu].residents;
    for (size_t i = 0; i < residents.size();) {
        const Resident& each = residents[i];
        if (each.streams_left > 0) {
            ++i;
            continue;
        }
        outcome_.placements[each.job].ended_ns = each.ended_ns;
        view.load.free_bytes += workload_.jobs[each.job].memory;
        --view.load.programs;
        view.tenants.erase(view.tenants.begin() + static_cast<std::ptrdiff_t>(i));
        residents.erase(residents.begin() + static_cast<std::ptrdiff_t>(i));
        if (residents.empty()) --in_use_;
    }
}

// How busy each GPU was kept by those that are there.
void Fleet::end_step() {
    const double window = static_cast<double>(kWindow) * step_ns_;
    for (size_t i = 0; i < gpus_.size(); ++i) {
        double busy_ns = 0;
        for (Resident& each : gpus_[i].residents) {
            double gpu_ns = each.gone_ns;
            for (const Program& program : gpus_[i].gpu.programs)
                if (program.kernel.session == session_of(each.job)) gpu_ns += program.gpu_ns;
            busy_ns += gpu_ns - std::exchange(each.before[steps_ % kWindow], gpu_ns);
        }
        views_[i].load.busy = std::min(1.0, busy_ns / window);
    }
    ++steps_;
}

void Fleet::arrive(size_t job) {
    const uint64_t memory = workload_.jobs[job].memory;
    if (memory > workload_.gpu_memory) return;  // refused
    double free = 0, unusable = 0;
    for (const GpuView& each : views_) {
        const auto bytes = static_cast<double>(each.load.free_bytes);
        free += bytes;
        if (each.load.free_bytes < memory) unusable += bytes;
    }
    if (free > 0) outcome_.unusable_memory += unusable / free;
    waiting_.push_back(job);
}

void Fleet::place_waiting() {
    while (!waiting_.empty()) {
        const Job& job = workload_.jobs[waiting_.front()];
        const std::optional<size_t> gpu = rule_.choose(views_, workload_.tenants[job.tenant], job.memory);
        if (!gpu) return;
        place(waiting_.front(), *gpu);
        waiting_.pop_front();
    }
}

void Fleet::place(size_t job, size_t gpu) {
    const Job& made = workload_.jobs[job];
    const Tenant& tenant = workload_.tenants[made.tenant];
    outcome_.placements[job].gpu = gpu;
    outcome_.placements[job].placed_ns = now_ns_;
    if (gpus_[gpu].residents.empty()) ++in_use_;
    for (Program& each : programs_of(tenant, made.rounds, now_ns_, next_stream_, session_of(job)))
        gpus_[gpu].gpu.add(std::move(each));
    next_stream_ += tenant.streams.size();
    gpus_[gpu].residents.push_back({.job = job, .streams_left = tenant.streams.size()});
    GpuView& view = views_[gpu];
    view.tenants.push_back(&tenant);
    view.load.free_bytes -= made.memory;
    ++view.load.programs;
}

double quantile(const std::vector<double>& sorted, double q) {
    return sorted[std::min(sorted.size() - 1, static_cast<size_t>(q * static_cast<double>(sorted.size())))];
}

}  // namespace

Outcome run_fleet(const Workload& workload, std::string_view policy, const Rule& rule) {
    return Fleet(workload, policy, rule).run();
}

Figures figures_of(const Workload& workload, const Outcome& outcome) {
    Figures figures;
    std::vector<double> slowdowns;
    double alone_ns = 0, last_ns = 0;
    for (size_t i = 0; i < workload.jobs.size(); ++i) {
        const Job& job = workload.jobs[i];
        const Placement& placement = outcome.placements[i];
        if (!placement.gpu) {
            ++figures.refused;
            continue;
        }
        ++figures.placed;
        slowdowns.push_back((placement.ended_ns - job.arrives_ns) / job.alone_ns);
        alone_ns += job.alone_ns;
        last_ns = std::max(last_ns, placement.ended_ns);
        if (placement.placed_ns <= job.arrives_ns) continue;
        ++figures.waited;
        figures.mean_wait_ns += placement.placed_ns - job.arrives_ns;
    }
    if (slowdowns.empty()) return figures;
    std::ranges::sort(slowdowns);
    if (figures.waited) figures.mean_wait_ns /= static_cast<double>(figures.waited);
    figures.antt =
        std::accumulate(slowdowns.begin(), slowdowns.end(), 0.0) / static_cast<double>(slowdowns.size());
    figures.p50 = quantile(slowdowns, .5);
    figures.p99 = quantile(slowdowns, .99);
    figures.most = slowdowns.back();
    figures.makespan_ns = last_ns - workload.jobs.front().arrives_ns;
    figures.stp = alone_ns / figures.makespan_ns;
    return figures;
}

}  // namespace smt::fleet
