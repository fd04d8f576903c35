#include "runtime/dispatch/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace smt::runtime::dispatch {

namespace {

using namespace std::chrono_literals;

// Size of each stream's mapping ring: if mappings are used to learn, and if none may be lost.
constexpr uint32_t kMapEntries = 1u << 12, kMostMapEntries = 1u << 15;
constexpr auto kBetweenRefills = 1ms;        // most further workers find no place and cost a few microseconds
constexpr auto kRest = 100ms;                // between looks if no news is due
constexpr auto kShortRest = 5ms;             // while there is something to learn about a kernel
constexpr schedule::Duration kLook = 500ns;  // between looks, on a device that keeps its own clock
constexpr int kTopUps = 20;                  // within the time of the launch-ahead limit

}  // namespace

Dispatcher::Dispatcher(device::Device& device, journal::Writer& journal,
                       std::unique_ptr<schedule::Policy> policy, const Settings& settings)
    : device_(device),
      journal_(journal),
      settings_(settings),
      control_memory_(device.driver(), settings.maps ? kMostMapEntries : kMapEntries),
      door_memory_(device.driver()),
      words_(device.driver()),
      sm_sets_(device) {
    driver().cuCtxGetStreamPriorityRange(&least_, &greatest_);
    driver().cuStreamCreateWithPriority(&control_, CU_STREAM_NON_BLOCKING, greatest_);
    adopt(std::move(policy));
    read_device();
    // Now, while no session waits for it. Not on a simulated device: there no session would have to wait, and
    // it would take time of the device's clock.
    const int part = device.properties().keeps_sessions_apart ? 0 : policy_->part(snapshot_.device);
    if (part) places_for(part);
}

Dispatcher::~Dispatcher() {
    {
        std::lock_guard lock(mutex_);
        ending_ = true;
        device_.disturb();
    }
    thread_.join();
    say_durations();
    if (control_) driver().cuStreamDestroy_v2(control_);
}

void Dispatcher::adopt(std::unique_ptr<schedule::Policy> policy) {
    policy_ = std::move(policy);
    ++policies_;
    study_ = nullptr;
    studying_ = false;  // the study under way is of no use to the new policy
    stops_.store(policy_->stops());
    short_stops_.store(policy_->short_stops());
    policy_name_.store(policy_->name().data());
}

void Dispatcher::record(std::unique_ptr<schedule::Recorder> recorder) {
    const Wanted wanted(wanted_);
    const auto lock = spin_lock(mutex_);
    recorder_ = std::move(recorder);
    recorder_->choose(policy_->name());
}

// ---- For sessions and streams

SmSetPointer Dispatcher::places_for(int multiprocessors) {
    std::string why;
    SmSetPointer set = sm_sets_.first(static_cast<unsigned>(multiprocessors), &why);
    if (!set && !unplaced_.exchange(true))
        note({}, fmt::format("kernels cannot be confined to {} multiprocessors: {}", multiprocessors, why));
    return set;
}

void Dispatcher::set_policy(std::unique_ptr<schedule::Policy> policy) {
    const Wanted wanted(wanted_);
    const auto lock = spin_lock(mutex_);
    say_durations();
    adopt(std::move(policy));
    if (recorder_) recorder_->choose(policy_->name());
    note({}, fmt::format("policy {} from now on", policy_->name()));
    weigh_tenants();
    for (Member& member : members_) {
        if (member.trial) continue;
        const std::string reason = fmt::format("policy {} begins", policy_->name());
        carry_out(schedule::Assignment{member.stream->id(), schedule::Assignment::Action::kRun, reason});
        carry_out(schedule::Confinement{member.stream->id(), 0, {}, reason});
    }
    decide();
    device_.disturb();
}

void Dispatcher::read_device() {
    const auto attribute = [&](CUdevice_attribute which) {
        int value = 0;
        if (driver().cuDeviceGetAttribute) driver().cuDeviceGetAttribute(&value, which, device_.device());
        return static_cast<uint32_t>(value);
    };
    constexpr uint32_t kWarp = 32;
    const uint32_t threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    snapshot_.device.multiprocessors = device_.properties().multiprocessors;
    snapshot_.device.sm = {threads, attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
                           attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
                           threads / kWarp, attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)};
    const profiles::DeviceFacts facts = profiles::read_facts(device_);
    if (facts.model.memory.requests_per_cycle > 0) snapshot_.device.model = facts.model;
}

void Dispatcher::join(ManagedStream& stream) {
    const Wanted wanted(wanted_);
    const auto lock = spin_lock(mutex_);
    if (!thread_.joinable()) {
        const std::string why = thread_.serve({"dispatcher", ""}, [this] { run(); });
        if (!why.empty()) throw std::runtime_error(why);
    }
    Member member{&stream, {snapshot_.device.multiprocessors, places(stream.tenant())}};
    member.trial = trial(stream);
    members_.push_back(std::move(member));
    device_.disturb();
}

// Null: the policy decides.
std::unique_ptr<Experiment> Dispatcher::trial(const ManagedStream& stream) {
    const Tenant& tenant = stream.tenant();
    const int multiprocessors = snapshot_.device.multiprocessors;
    if (tenant.stress)
        return std::make_unique<Stress>(tenant.stress + stream.id(), multiprocessors, places(tenant));
    if (tenant.sweeps) return std::make_unique<Sweep>(multiprocessors, places(tenant));
    if (tenant.halves) return std::make_unique<HalfCtas>(multiprocessors, places(tenant));
    if (!tenant.paired) return nullptr;
    const schedule::Duration least =
        device_.properties().keeps_clock ? schedule::Duration::zero() : Pairing::kLeast;
    if (!pairing_)
        pairing_ = std::make_shared<Pairing>(snapshot_.device, least, [] { return schedule::Clock::now(); });
    return std::make_unique<SideBySide>(pairing_, stream.id(), multiprocessors, places(tenant));
}

std::vector<uint32_t> Dispatcher::places(const Tenant& tenant) const {
    if (tenant.places && !tenant.places->multiprocessors().empty()) return tenant.places->multiprocessors();
    std::vector<uint32_t> all(static_cast<size_t>(snapshot_.device.multiprocessors));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

void Dispatcher::leave(ManagedStream& stream) {
    const Wanted wanted(wanted_);
    const auto lock = spin_lock(mutex_);
    for (Member& each : members_) {
        if (each.stream == &stream) sum_up(each);
    }
    std::erase_if(members_, [&](const Member& each) { return each.stream == &stream; });
    device_.disturb();  // a thread in begin_quiesce() may wait for a stop on this stream
}

void Dispatcher::arrived(ManagedStream& stream) {
    const Wanted wanted(wanted_);
    const auto lock = spin_lock(mutex_);
    end_lingering(stream.tenant());
    decide();
    device_.disturb();
}

void Dispatcher::kept_back() {
    if (!tops_up_.load()) look_again();
}

void Dispatcher::look_again() {
    const Wanted wanted(wanted_);
    const auto lock = spin_lock(mutex_);
    device_.disturb();
}

// ---- The dispatcher's thread

void Dispatcher::run() {
    device_.enter_thread();
    std::unique_lock lock(mutex_);
    studying_ = study_ != nullptr;  // a study that threw is over
    while (!ending_) {
        if (look() || now() >= ask_again_) decide();
        poll_quiesce();
        if (study(lock)) continue;
        rest(lock);
        read_mappings();
    }
}

void Dispatcher::rest(std::unique_lock<std::mutex>& lock) {
    const bool news = pending();
    if (news && !device_.properties().keeps_clock) {
        const schedule::TimePoint begin = schedule::Clock::now();
        lock.unlock();
        do device::nap();
        while (wanted_.load(std::memory_order_relaxed) > 0);
        lock.lock();
        note_if_long({}, "without a core, or others had its lock", begin);
        return;
    }
    const schedule::TimePoint next = now() + (news ? kLook : poll_interval());
    device_.rest(lock, std::min(next, ask_again_),
                 news || tops_up_.load() || ask_again_ != schedule::TimePoint::max());
}

// A thread that keeps launches back after this look finds tops_up_ false, and wakes the dispatcher's thread.
schedule::Duration Dispatcher::poll_interval() {
    tops_up_.store(false);
    const bool any = std::any_of(members_.begin(), members_.end(),
                                 [](const Member& each) { return each.stream->keeps_back(); });
    tops_up_.store(any);
    return any ? settings_.ahead / kTopUps : schedule::Duration(learning() ? kShortRest : kRest);
}

bool Dispatcher::learning() const {
    return std::any_of(members_.begin(), members_.end(),
                       [](const Member& each) { return each.stream->learning(); });
}

// Not at every look: reading waits for the GPU.
void Dispatcher::read_mappings() {
    if (now() < read_again_) return;
    read_again_ = now() + kShortRest;
    if (!settings_.maps && !learning()) return;
    for (const Member& member : members_) member.stream->read_mappings();
}

bool Dispatcher::samples() const { return policy_->stops() == schedule::Policy::Stops::kAny; }

bool Dispatcher::look() {
    const schedule::TimePoint begin = schedule::Clock::now();
    bool changed = false;
    bool left = false;  // workers have left
    size_t busy = 0;    // unmanaged work ends without any notice but its marker
    for (Member& member : members_) {
        if (member.behind) follow(member);
        left |= member.stream->poll();
        if (member.trial ? member.trial->samples() : samples()) member.stream->sample();
        schedule::Kernel kernel;
        const bool works = member.stream->describe(&kernel);
        if (member.trial)
            works ? member.trial->step(*member.stream, kernel) : member.trial->idle(*member.stream);
        if (!works || member.trial) continue;
        ++busy;
        changed |= !member.decided;  // no thread announces that a wait for a value is over
        if (samples() && std::exchange(member.launch, kernel.launch) != kernel.launch) {
            changed = true;  // its order holds for the next launch, too, which may be larger
            if (kernel.state == schedule::Kernel::State::kRunning) member.behind = true;
        }
        if (std::exchange(member.last_taken, kernel.last_taken) != kernel.last_taken) changed = true;
    }
    if (left)
        for (Member& member : members_) member.refill = true;
    note_if_long({}, "looking how far streams are", begin);
    refill(now());
    return changed || left || busy < snapshot_.kernels.size();
}

// Workers that arrived while another kernel's were still present found no place, and left. Now there may be
// room.
void Dispatcher::refill(schedule::TimePoint now) {
    for (Member& member : members_) {
        schedule::Kernel kernel;
        // There may be room for long, without further news.
        if (!member.refill || (member.orders.held() && now < member.refill_again)) continue;
        member.refill = false;
        if (member.trial || !member.orders.held()) continue;
        if (member.stream->passes_through() || !member.stream->describe(&kernel) || kernel.last_taken)
            continue;
        member.refill_again = now + kBetweenRefills;
        const schedule::TimePoint begin = schedule::Clock::now();
        member.stream->fill_up();
        note_if_long(member.stream->tenant(), "sending more workers", begin);
    }
}

bool Dispatcher::pending() {
    for (const Member& member : members_) {
        const Tenant& tenant = member.stream->tenant();
        if (!tenant.preemptible.load() && !tenant.preemptor.load() && member.stream->passes_through())
            continue;
        schedule::Kernel kernel;
        if (member.stream->describe(&kernel) || member.stream->held_back()) return true;
    }
    return false;
}

void Dispatcher::decide() {
    if (studying_) return;  // the decision is made when the study has been learnt
    // By the host's clock: the cost of the decision.
    const schedule::TimePoint begin = schedule::Clock::now();
    snapshot_.kernels.clear();
    snapshot_.urgent.clear();
    for (const auto& tenant : tenants_) {
        if (tenant->preemptor.load()) snapshot_.urgent.push_back({tenant->priority, tenant->preemptor_since});
    }
    for (Member& member : members_) {
        schedule::Kernel kernel;
        member.decided = !member.trial && member.stream->describe(&kernel);
        if (member.decided) snapshot_.kernels.push_back(std::move(kernel));
    }
    study_ = policy_->study(snapshot_);
    studying_ = study_ != nullptr;
    if (studying_) return;
    const schedule::TimePoint asked = schedule::Clock::now(), moment = now();
    const schedule::Decision decision = policy_->decide(snapshot_, moment);
    deciding_.add(schedule::Clock::now() - asked);
    if (recorder_) recorder_->write(snapshot_, moment, decision);
    ask_again_ = decision.again ? moment + *decision.again : schedule::TimePoint::max();
    for (const schedule::Confinement& confinement : decision.confinements) carry_out(confinement);
    for (const schedule::Assignment& assignment : decision.assignments) carry_out(assignment);
    decisions_.add(schedule::Clock::now() - begin);
}

// Launches run while the study runs.
bool Dispatcher::study(std::unique_lock<std::mutex>& lock) {
    if (!study_) return false;
    const uint64_t policy = policies_;
    std::unique_ptr<schedule::Study> study = std::move(study_);
    lock.unlock();
    study->run();
    lock.lock();
    if (policy != policies_) return true;  // another policy was set meanwhile, and has decided
    policy_->learn(std::move(study));
    studying_ = false;
    decide();
    return true;
}

Dispatcher::Member* Dispatcher::member_of(uint64_t stream) {
    const auto found = std::find_if(members_.begin(), members_.end(),
                                    [&](const Member& each) { return each.stream->id() == stream; });
    return found == members_.end() ? nullptr : &*found;
}

void Dispatcher::carry_out(const schedule::Assignment& assignment) {
    Member* const member = member_of(assignment.kernel);
    if (!member) return;
    if (member->orders.give(assignment)) say(member->stream->tenant(), assignment.reason);
    member->stream->waits_because(assignment.action == schedule::Assignment::Action::kWait ? assignment.reason
                                                                                           : "");
    follow(*member);
}

void Dispatcher::follow(Member& member) {
    schedule::Kernel kernel;
    const schedule::TimePoint begin = schedule::Clock::now();
    member.behind = member.stream->describe(&kernel) && !follow(member, kernel);
    note_if_long(member.stream->tenant(), "stopping, launching or placing", begin);
}

// False: not possible now. It is tried again.
bool Dispatcher::follow(Member& member, const schedule::Kernel& kernel) {
    using Step = Orders::Step;
    ManagedStream& stream = *member.stream;
    const Step step = quiesces(member) ? Orders::to_rest(kernel, stream.passes_through())
                                       : member.orders.next(kernel, stream.passes_through());
    CUresult status = CUDA_SUCCESS;
    switch (step) {
        case Step::kNone:
            return true;
        case Step::kStop:
            return stream.stop();
        // Failures are returned by the program's next call.
        case Step::kPassThrough:
            stream.pass_through();
            return true;
        case Step::kHalt:
            if (!stream.ready()) return false;
            status = stream.halt();
            break;
        case Step::kRun:
            status = stream.run(member.orders.quotas(), member.orders.slice());
            break;
        case Step::kChange:
            if (!stream.ready()) return false;
            status = stream.change(member.orders.quotas());
            // Twice as many: some find no place on the SM where they arrive.
            if (status == CUDA_SUCCESS && member.orders.growth())
                status = stream.grow(2 * member.orders.growth());
            break;
    }
    if (status != CUDA_SUCCESS && step == Step::kRun) stream.pass_through();
    if (status == CUDA_SUCCESS) member.orders.done(step);
    return true;
}

// A confinement takes effect before waiting launches are released.
void Dispatcher::carry_out(const schedule::Confinement& confinement) {
    Member* const member = member_of(confinement.kernel);
    if (!member) return;
    member->stream->confine(confinement);
    say(member->stream->tenant(), confinement.reason);
}

}  // namespace smt::runtime::dispatch
