// See tenants.h.
#include "tools/fleet/tenants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace smt::fleet {

namespace {

double in_ns(Duration duration) { return std::chrono::duration<double, std::nano>(duration).count(); }

bool has_time(const Kernel& kernel) {
    return kernel.predicted || (kernel.profile && !kernel.profile->configurations.empty());
}

// What a CTA asks of its multiprocessor, of which `most` fit.
Work work_of(const Kernel& kernel, const Device& device, int most) {
    Work work{.block_ns = 1, .pipeline = 1.0 / most};
    if (!kernel.profile || !kernel.profile->mix) return work;
    const Mix& mix = *kernel.profile->mix;
    work.pipeline = std::min(1.0, mix.utilization.pur) / most;
    work.memory = std::min(1.0, mix.utilization.mur) / most;
    if (device.model) work.waits = 1 - 1 / (1 + mix.memory_ratio * device.model->memory.latency);
    return work;
}

}  // namespace

std::vector<Program> programs_of(const Tenant& tenant, uint64_t rounds, double arrives_ns, uint64_t id,
                                 uint32_t session) {
    std::vector<Program> programs = tenant.streams;
    for (Program& each : programs) {
        each.kernel.id = id++;
        each.kernel.session = session;
        each.kernel.tenant = fmt::format("{}#{}", tenant.name, session);
        each.arrives_ns += arrives_ns;
        each.launches *= rounds;
    }
    return programs;
}

namespace {

VirtualGpu run_alone(const Tenant& tenant, uint64_t rounds, const Device& device) {
    VirtualGpu gpu(device);
    for (Program& each : programs_of(tenant, rounds, 0, 1, 1)) gpu.add(std::move(each));
    const auto policy = make_policy("fifo");
    gpu.run(*policy, std::numeric_limits<double>::max());
    return gpu;
}

}  // namespace

double time_alone_ns(const Tenant& tenant, uint64_t rounds, const Device& device) {
    double end = 0;
    for (const Program& each : run_alone(tenant, rounds, device).programs)
        end = std::max(end, each.ends_ns.back());
    return end;
}

void learn(Tenant& tenant, const Device& device) {
    tenant.alone_ns = time_alone_ns(tenant, 1, device);
    tenant.gpu_ns = 0;
    for (const Program& each : run_alone(tenant, 1, device).programs) tenant.gpu_ns += each.gpu_ns;
}

void TenantReader::read(const std::string& path) {
    read_recording(path, [&](const Record& record) {
        const Device& device = record.snapshot.device;
        if (device.multiprocessors <= 0)
            throw std::runtime_error(path + " does not say how many multiprocessors its device has");
        if (device_.multiprocessors == 0) device_ = device;
        if (device.multiprocessors != device_.multiprocessors)
            throw std::runtime_error(fmt::format(
                "{} was recorded on {} multiprocessors, a recording before on {}: all GPUs are of "
                "one kind. Replay recordings of one device",
                path, device.multiprocessors, device_.multiprocessors));
        note(record);
    });
    ++files_;
}

void TenantReader::note(const Record& record) {
    ++decisions_;
    for (const Kernel& kernel : record.snapshot.kernels) note(kernel, record.now);
    for (auto& [session, streams] : sessions_) {
        if (std::get<0>(session) != files_) continue;
        for (auto& [id, stream] : streams) stream.here = stream.seen_by == decisions_;
    }
}

void TenantReader::note(const Kernel& kernel, TimePoint now) {
    const auto [place, begins] = sessions_[{files_, kernel.session, kernel.tenant}].try_emplace(kernel.id);
    Stream& stream = place->second;
    if (begins) stream.first = now;
    const bool anew = begins || !stream.here || stream.launch != kernel.launch;
    Launches& launches = stream.kernels[kernel.blocks];
    if (anew) ++stream.launches, ++launches.count;
    if (!begins && !stream.here) {
        ++stream.pauses;
        stream.idle_ns += in_ns(now - stream.seen);
    }
    if (stream.here && stream.ran) launches.at_work_ns += in_ns(now - stream.seen);
    if (!has_time(launches.last) || has_time(kernel)) launches.last = kernel;
    stream.launch = kernel.launch;
    stream.ran = kernel.state != Kernel::State::kWaiting;
    stream.seen = now;
    stream.seen_by = decisions_;
}

Program TenantReader::program_of(const Stream& stream, TimePoint begin) const {
    const auto most_time =
        std::ranges::max_element(stream.kernels, {}, [](const auto& each) { return each.second.at_work_ns; });
    const Launches& launches = most_time->second;
    Program program;
    program.kernel = launches.last;
    Kernel& kernel = program.kernel;
    kernel.state = Kernel::State::kRunning;
    kernel.blocks_done = 0;
    kernel.last_taken = false;
    kernel.remaining.reset();
    kernel.multiprocessors = 0;
    kernel.ahead = {};
    const int most = most_ctas(kernel, limits_of(device_));
    const double at_once = static_cast<double>(most) * std::max(1, device_.multiprocessors);
    const double seen_ns = launches.at_work_ns / static_cast<double>(std::max<uint64_t>(1, launches.count));
    const double launch_ns = has_time(kernel) || seen_ns == 0 ? remaining_ns(kernel, device_, most) : seen_ns;
    if (kernel.blocks == 0) kernel.blocks = static_cast<uint64_t>(at_once);
    program.work = work_of(kernel, device_, most);
    program.work.block_ns =
        std::max(1.0, launch_ns / std::ceil(static_cast<double>(kernel.blocks) / at_once));
    program.alone_ns = launch_ns;
    program.launches = stream.launches;
    program.gap_ns = stream.idle_ns / static_cast<double>(stream.launches);
    program.arrives_ns = in_ns(stream.first - begin);
    return program;
}

std::vector<Tenant> TenantReader::tenants() const {
    std::vector<Tenant> tenants;
    for (const auto& [session, streams] : sessions_) {
        const TimePoint begin = std::ranges::min_element(streams, {}, [](const auto& each) {
                                    return each.second.first;
                                })->second.first;
        Tenant& tenant = tenants.emplace_back();
        tenant.name = std::get<2>(session);
        for (const auto& [id, stream] : streams) tenant.streams.push_back(program_of(stream, begin));
        learn(tenant, device_);
    }
    return tenants;
}

}  // namespace smt::fleet
