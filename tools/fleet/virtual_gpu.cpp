// See virtual_gpu.h.
#include "tools/fleet/virtual_gpu.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace smt::fleet {

namespace {
using State = Kernel::State;
using Action = Assignment::Action;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kNothing = 1e-9;  // of a block: rounding

// The smallest number from 1 on that is enough, asked last.
template <class SaturatingCtas>
void least(const SaturatingCtas& enough) {
    double low = 1, high = 1;
    while (!enough(high)) low = high, high *= 2;
    for (int i = 0; i < 30 && high > low; ++i) {
        const double middle = (low + high) / 2;
        (enough(middle) ? high : low) = middle;
    }
    enough(high);
}

bool is_done(const Program& program) {
    return program.ends_ns.size() == program.launches * std::max<size_t>(1, program.requests_ns.size());
}
}  // namespace

VirtualGpu::VirtualGpu(const Device& device)
    : device_(device), limits_(limits_of(device)), alike_of_(static_cast<size_t>(device.multiprocessors)) {}

void VirtualGpu::add(Program program) {
    Progress progress;
    progress.arrives = program.requests_ns.empty() ? program.arrives_ns : program.requests_ns.front();
    progress.part = 1.0 / (most_ctas(program.kernel, limits_) * device_.multiprocessors);
    progress_.push_back(progress);
    counts_.emplace_back(static_cast<size_t>(device_.multiprocessors));
    programs.push_back(std::move(program));
}

void VirtualGpu::run(Policy& policy, double until_ns) {
    while (now_ < until_ns && !done()) {
        arrive();
        while (ask_ || now_ >= again_) ask(policy);
        place();
        if (std::exchange(speeds_, false)) set_speeds();
        advance(next_event(until_ns));
        end_blocks();
    }
}

bool VirtualGpu::done() const { return std::all_of(programs.begin(), programs.end(), is_done); }

// Those that stay keep their order.
std::vector<Program> VirtualGpu::take_done() {
    std::vector<Program> done;
    std::vector<size_t> places(programs.size());
    size_t next = 0;
    for (size_t i = 0; i < programs.size(); ++i) {
        if (is_done(programs[i])) {
            done.push_back(std::move(programs[i]));
            continue;
        }
        places[i] = next;
        if (next != i) {
            programs[next] = std::move(programs[i]);
            progress_[next] = std::move(progress_[i]);
            counts_[next] = std::move(counts_[i]);
        }
        ++next;
    }
    programs.resize(next);
    progress_.resize(next);
    counts_.resize(next);
    for (Cta& cta : ctas_) cta.program = places[cta.program];  // one that is done has none
    return done;
}

// ---- programs and the policy

void VirtualGpu::arrive() {
    for (size_t i = 0; i < programs.size(); ++i) {
        Progress& progress = progress_[i];
        if (progress.here || progress.arrives > now_) continue;
        progress.here = true;
        const bool begins = programs[i].ends_ns.size() % programs[i].launches == 0;
        if (!programs[i].requests_ns.empty() && begins) programs[i].begun_ns.push_back(now_);
        progress.in_queue = ++queue_;
        progress.begins = now_ + kStart;
        set(i, State::kRunning);
    }
}

Service VirtualGpu::service(size_t index) {
    const Program& program = programs[index];
    Worked& service = progress_[index].service;
    service.session = program.kernel.session;
    service.tenant = program.kernel.tenant;
    service.target = program.target;
    service.over = program.ends_ns.size();
    service.launches = service.over + (progress_[index].here ? 1 : 0);
    service.works(progress_[index].here, time());
    return service.take();
}

void VirtualGpu::ask(Policy& policy) {
    ask_ = false;
    again_ = kNever;
    Snapshot snapshot{device_, {}};
    for (size_t i = 0; i < programs.size(); ++i) {
        const Program& program = programs[i];
        if (program.target.any()) snapshot.services.push_back(service(i));
        if (!progress_[i].here) continue;
        Kernel& kernel = snapshot.kernels.emplace_back(program.kernel);
        kernel.received = nanoseconds(static_cast<double>(program.blocks) /
                                      static_cast<double>(kernel.blocks) * program.alone_ns);
        kernel.corrections = static_cast<uint32_t>(program.blocks) + 1;  // that is exact, and measured
    }
    const Decision decision = policy.decide(snapshot, time());
    for (const Confinement& each : decision.confinements) {
        for (size_t i = 0; i < programs.size(); ++i)
            if (programs[i].kernel.id == each.kernel) carry_out(each, i);
    }
    for (const Assignment& each : decision.assignments) carry_out(each);
    // Time is whole nanoseconds to a policy.
    if (decision.again)
        again_ = now_ + std::max(1.0, std::chrono::duration<double, std::nano>(*decision.again).count());
}

// CTAs elsewhere leave after their blocks. On a GPU that is so from the next launch on.
void VirtualGpu::carry_out(const Confinement& confinement, size_t program) {
    Kernel& kernel = programs[program].kernel;
    kernel.ahead = confinement.ahead;
    kernel.multiprocessors = confinement.multiprocessors;
    const bool applies = confinement.stoppable || !kernel.stoppable();
    progress_[program].multiprocessors = applies ? confinement.multiprocessors : 0;
}

void VirtualGpu::carry_out(const Assignment& assignment) {
    for (size_t i = 0; i < programs.size(); ++i) {
        if (programs[i].kernel.id != assignment.kernel) continue;
        const State state = programs[i].kernel.state;
        Progress& progress = progress_[i];
        if (assignment.action == Action::kWait) {
            if (state == State::kRunning) set(i, State::kStopping);
            settle(i);
            continue;
        }
        progress.quota = assignment.quota;
        progress.slice_left = assignment.slice;
        progress.begins = now_ + kStart;
        if (state == State::kRunning) continue;
        progress.in_queue = ++queue_;
        set(i, State::kRunning);
    }
}

void VirtualGpu::set(size_t program, State state) {
    programs[program].kernel.state = state;
    programs[program].kernel.since = time();
    ask_ = true;
}

// ---- CTAs

int VirtualGpu::quota(size_t program, size_t sm) const {
    const Quota& quota = progress_[program].quota;
    const int most = progress_[program].multiprocessors;
    if (most && sm >= static_cast<size_t>(most)) return 0;
    return quota.empty() ? UINT8_MAX : quota.size() == 1 ? quota[0] : quota[sm];
}

int VirtualGpu::ctas_of(size_t program) const {
    return std::accumulate(counts_[program].begin(), counts_[program].end(), 0);
}

bool VirtualGpu::may_take(size_t program) const {
    const Kernel& kernel = programs[program].kernel;
    return kernel.state == State::kRunning && progress_[program].taken < kernel.blocks;
}

bool VirtualGpu::takes(size_t program) {
    if (!may_take(program)) return false;
    Kernel& kernel = programs[program].kernel;
    Progress& progress = progress_[program];
    if (++progress.taken == kernel.blocks) {
        kernel.last_taken = true;
        ask_ = true;
    }
    if (progress.slice_left && !--progress.slice_left && kernel.state == State::kRunning)
        set(program, State::kStopping);
    return true;
}

void VirtualGpu::place() {
    std::vector<Resources> free(static_cast<size_t>(device_.multiprocessors), limits_);
    for (size_t i = 0; i < programs.size(); ++i)
        for (size_t sm = 0; sm < free.size(); ++sm)
            if (counts_[i][sm]) take(free[sm], cta_of(programs[i].kernel, limits_), counts_[i][sm]);
    std::vector<size_t> order;
    for (size_t i = 0; i < programs.size(); ++i)
        if (progress_[i].here && progress_[i].begins <= now_ && may_take(i)) order.push_back(i);
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return progress_[a].in_queue < progress_[b].in_queue; });
    for (const size_t program : order)
        if (!fill(program, free)) break;
    int used = 0;
    for (size_t sm = 0; sm < free.size(); ++sm)
        used += std::any_of(counts_.begin(), counts_.end(),
                            [&](const std::vector<int>& counts) { return counts[sm] > 0; });
    most_used_ = std::max(most_used_, used);
}

// False: not even one CTA of it has found room, so that those behind it wait.
bool VirtualGpu::fill(size_t program, std::vector<Resources>& free) {
    const Resources cta = cta_of(programs[program].kernel, limits_);
    // Breadth first, as the hardware does: few blocks go to many multiprocessors.
    for (bool found = true; found && may_take(program);) {
        found = false;
        for (size_t sm = 0; sm < free.size(); ++sm) {
            if (counts_[program][sm] >= quota(program, sm) || fitting(free[sm], cta) == 0) continue;
            if (!takes(program)) break;
            take(free[sm], cta, 1);
            ++counts_[program][sm];
            ctas_.push_back({program, sm, 1});
            found = speeds_ = true;
        }
    }
    return ctas_of(program) > 0;
}

// ---- time

// Most multiprocessors have the same CTAs on them as others.
void VirtualGpu::set_speeds() {
    alike_.clear();
    std::map<std::vector<int>, size_t> known;  // by counts of CTAs
    std::vector<int> counts(programs.size());
    for (size_t sm = 0; sm < alike_of_.size(); ++sm) {
        for (size_t i = 0; i < programs.size(); ++i) counts[i] = counts_[i][sm];
        const auto [place, is_new] = known.try_emplace(counts, alike_.size());
        alike_of_[sm] = place->second;
        if (is_new) {
            Alike& kind = alike_.emplace_back();
            for (size_t i = 0; i < programs.size(); ++i)
                if (counts[i]) kind.groups.push_back({&programs[i].work, i, counts[i]});
        }
        ++alike_[alike_of_[sm]].multiprocessors;
    }
    least([&](double waiting) { return memory_use(waiting) <= device_.multiprocessors; });
    for (Cta& cta : ctas_) {
        const std::vector<Group>& groups = alike_[alike_of_[cta.sm]].groups;
        cta.speed = std::find_if(groups.begin(), groups.end(), [&](const Group& each) {
                        return each.program == cta.program;
                    })->speed;
    }
}

// What all CTAs use of it if waiting takes so many times as long as alone; speeds are set by that.
double VirtualGpu::memory_use(double waiting) {
    double memory = 0;
    for (Alike& kind : alike_) {
        least([&](double issuing) {
            double pipeline = 0;
            for (Group& each : kind.groups) {
                each.speed = 1 / ((1 - each.work->waits) * issuing + each.work->waits * waiting);
                pipeline += each.count * each.work->pipeline * each.speed;
            }
            return pipeline <= 1;
        });
        for (const Group& each : kind.groups)
            memory += kind.multiprocessors * each.count * each.work->memory * each.speed;
    }
    return memory;
}

double VirtualGpu::next_event(double until) const {
    double next = std::min(until, again_);
    for (size_t i = 0; i < programs.size(); ++i) {
        const Progress& progress = progress_[i];
        if (!progress.here)
            next = std::min(next, progress.arrives);
        else if (progress.begins > now_)
            next = std::min(next, progress.begins);
    }
    if (ask_) next = now_;
    for (const Cta& cta : ctas_)
        next =
            std::min(next, now_ + std::max(cta.left, 0.0) * programs[cta.program].work.block_ns / cta.speed);
    return next;
}

void VirtualGpu::advance(double to) {
    for (Cta& cta : ctas_) {
        cta.left -= (to - now_) * cta.speed / programs[cta.program].work.block_ns;
        programs[cta.program].gpu_ns += (to - now_) * progress_[cta.program].part;
    }
    now_ = to;
}

void VirtualGpu::end_blocks() {
    for (Cta& cta : ctas_) {
        if (cta.left > kNothing) continue;
        Program& program = programs[cta.program];
        ++program.kernel.blocks_done;
        ++program.blocks;
        program.longest_ns = std::max(program.longest_ns, now_ - program.block_ended_ns);
        program.block_ended_ns = now_;
        const bool stays = counts_[cta.program][cta.sm] <= quota(cta.program, cta.sm) && takes(cta.program);
        cta.left = stays ? 1 : -1;
        if (stays) continue;
        --counts_[cta.program][cta.sm];
        speeds_ = true;
    }
    std::erase_if(ctas_, [](const Cta& cta) { return cta.left < -0.5; });
    for (size_t i = 0; i < programs.size(); ++i) settle(i);
}

// Whose last CTA has gone has stopped, or its launch has ended.
void VirtualGpu::settle(size_t program) {
    Kernel& kernel = programs[program].kernel;
    if (!progress_[program].here || ctas_of(program) > 0) return;
    if (kernel.state == State::kStopping) {
        const Duration took = time() - kernel.since;  // averaged as the dispatcher does
        kernel.preemption = kernel.preemption ? (3 * *kernel.preemption + took) / 4 : took;
        set(program, State::kWaiting);
    }
    if (kernel.blocks_done == kernel.blocks) end_launch(program);
}

void VirtualGpu::end_launch(size_t index) {
    Program& program = programs[index];
    Progress& progress = progress_[index];
    program.ends_ns.push_back(now_);
    const bool served = !program.requests_ns.empty() && program.ends_ns.size() % program.launches == 0;
    program.kernel.blocks_done = progress.taken = 0;
    program.kernel.last_taken = false;
    ++program.kernel.launch;
    progress.in_queue = ++queue_;  // the next one, which has been waiting behind this one
    ask_ = true;
    if (served) return end_request(index);
    if (!program.requests_ns.empty()) {
        progress.begins = now_ + program.gap_ns;
        progress.here = program.host_ns.empty();
        if (!progress.here)
            progress.arrives = now_ + program.host_ns[program.ends_ns.size() % program.host_ns.size()];
        return;
    }
    if (program.ends_ns.size() < program.launches && program.gap_ns == 0) return;
    progress.here = false;
    progress.arrives = program.ends_ns.size() < program.launches ? now_ + program.gap_ns : kNever;
    progress.quota = {};
    progress.slice_left = 0;
}

// The next one begins at once if it has come.
void VirtualGpu::end_request(size_t index) {
    Program& program = programs[index];
    Progress& progress = progress_[index];
    program.served_ns.push_back(now_);
    const size_t next = program.served_ns.size();
    progress.here = false;
    progress.arrives =
        next < program.requests_ns.size() ? std::max(program.requests_ns[next], now_ + kStart) : kNever;
}

}  // namespace smt::fleet
