#include "runtime/dispatch/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/profiles/device_facts.h"

namespace smt::runtime::dispatch {

namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenRefills = 1ms;        // most further workers find no place and cost a few microseconds
constexpr auto kRest = 100ms;                // between looks if no news is due
constexpr auto kShortRest = 5ms;             // while there is something to learn about a kernel
constexpr schedule::Duration kLook = 500ns;  // between looks, on a device that keeps its own clock
constexpr auto kWatch = 20us;                // the same, for the ends of all launches
constexpr auto kBetweenTimes = 200ms;        // that kernels have taken so far, in the journal
constexpr int kTopUps = 20;                  // within the time of the launch-ahead limit
constexpr int kTopUpsFed = 4;                // within the time for which the GPU has work of a stream
constexpr auto kLeastRest = 25us;
// In a solo session, after the last work. Longer than the time between two launches of a program that waits
// for each result: to wake the thread would cost the program more than the launch.
constexpr schedule::Duration kSoloLingers = 1ms;

schedule::Device device_of(device::Device& device) {
    const auto attribute = [&](CUdevice_attribute which) {
        int value = 0;
        if (device.driver().cuDeviceGetAttribute)
            device.driver().cuDeviceGetAttribute(&value, which, device.device());
        return static_cast<uint32_t>(value);
    };
    constexpr uint32_t kWarp = 32;
    const uint32_t threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    schedule::Device read;
    read.multiprocessors = device.properties().multiprocessors;
    read.sm = {threads, attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
               attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR), threads / kWarp,
               attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)};
    const profiles::DeviceFacts facts = profiles::read_facts(device);
    if (facts.model.memory.requests_per_cycle > 0) read.model = facts.model;
    return read;
}

}  // namespace

Dispatcher::Dispatcher(device::Device& device, journal::Writer& journal,
                       std::unique_ptr<schedule::Policy> policy, const Settings& settings)
    : device_(device),
      settings_(settings),
      notes_(device, journal),
      supplies_(device, notes_, settings),
      policy_(std::move(policy), device_of(device)),
      experiments_(policy_.snapshot().device, device.properties().keeps_clock),
      pair_watch_(policy_.snapshot().device.multiprocessors,
                  device.properties().keeps_clock ? schedule::Duration::zero() : PairWatch::kLeast) {
    // Now, while no session waits for it. Not on a simulated device: there no session would have to wait, and
    // it would take time of the device's clock.
    if (device.properties().keeps_sessions_apart) return;
    for (const int part : policy_.parts()) supplies_.places_for(part);
}

Dispatcher::~Dispatcher() {
    {
        const WantedMutex::Lock lock(mutex_);
        ending_ = true;
        device_.disturb();
    }
    thread_.join();
    note_decisions();
}

void Dispatcher::note_decisions() {
    const std::string sums = policy_.durations();
    if (sums.empty()) return;
    const auto [asked, unasked] = begins_.take();
    notes_.note(
        {}, fmt::format("{}; launches waited for {} of them, and {} had no need to", sums, asked, unasked));
}

// ---- For sessions and streams

void Dispatcher::record(std::unique_ptr<schedule::Recorder> recorder) {
    const WantedMutex::Lock lock(mutex_);
    policy_.record(std::move(recorder));
}

void Dispatcher::set_policy(std::unique_ptr<schedule::Policy> policy) {
    const bool ahead = !device_.properties().keeps_sessions_apart;
    for (const int part : policy->parts(policy_.snapshot().device))
        if (ahead) supplies_.places_for(part);
    const WantedMutex::Lock lock(mutex_);
    note_decisions();
    end_unasked();
    policy_.adopt(std::move(policy));
    notes_.note({}, fmt::format("policy {} from now on", policy_.traits().name));
    tenants_.forget_attainments();
    weigh_tenants();
    const std::string reason = fmt::format("policy {} begins", policy_.traits().name);
    for (Member& member : members_) {
        if (member.trial) continue;
        give(schedule::Assignment{member.stream->id(), schedule::Assignment::Action::kRun, reason});
        give(schedule::Confinement{.kernel = member.stream->id(), .reason = reason});
    }
    decide();
    device_.disturb();
}

void Dispatcher::set_terms(Tenant& tenant, int priority, double weight) {
    const WantedMutex::Lock lock(mutex_);
    tenant.priority.store(priority);
    tenant.weight.store(weight);
    company_changes();
}

void Dispatcher::enter(const std::shared_ptr<Tenant>& tenant) {
    const WantedMutex::Lock lock(mutex_);
    tenants_.enter(tenant);
    weigh_tenants();
}

void Dispatcher::exit(const std::shared_ptr<Tenant>& tenant) {
    const WantedMutex::Lock lock(mutex_);
    tenants_.exit(tenant);
    company_changes();
}

void Dispatcher::company_changes() {
    end_unasked();
    weigh_tenants();
    decide();
    device_.disturb();
}

void Dispatcher::ended(const std::shared_ptr<Tenant>& tenant) {
    const WantedMutex::Lock lock(mutex_);
    tenants_.ended(tenant);
    weigh_tenants();
}

void Dispatcher::weigh_tenants() {
    device_.watch_launches(tenants_.watched());
    tenants_.weigh(policy().stops, now(), [this](const Tenant& tenant) {
        for (const Member& member : members_) {
            if (&member.stream->tenant() == &tenant) member.stream->mark_what_is_there();
        }
    });
}

void Dispatcher::join(ManagedStream& stream) {
    const WantedMutex::Lock lock(mutex_);
    if (!thread_.joinable()) {
        const std::string why = thread_.serve({"dispatcher", ""}, [this] { run(); });
        if (!why.empty()) throw std::runtime_error(why);
    }
    const int multiprocessors = policy_.snapshot().device.multiprocessors;
    members_.push_back({&stream, Orders(multiprocessors, places_of(stream.tenant(), multiprocessors)),
                        experiments_.on(stream.tenant(), stream.id())});
    end_unasked();  // the policy has told the tenant's other streams only
    device_.disturb();
}

void Dispatcher::leave(ManagedStream& stream) {
    const WantedMutex::Lock lock(mutex_);
    const auto left =
        std::ranges::find_if(members_, [&](const Member& each) { return each.stream == &stream; });
    if (left != members_.end()) {
        if (left->trial) notes_.note(stream.tenant(), left->trial->summary());
        notes_.placed(stream.tenant(), stream.placement());
        stream.write_times();
        members_.erase(left);
    }
    end_unasked();
    device_.disturb();  // a thread in begin_quiesce() may wait for a stop on this stream
}

void Dispatcher::arrived(ManagedStream& stream) {
    const WantedMutex::Lock lock(mutex_);
    quiesce_.launched(stream.tenant().session);
    begins_.asked();
    decide();
    device_.disturb();
}

void Dispatcher::began_unasked() {
    begins_.unasked();
    if (attention_.misses_begins()) look_again();
}

void Dispatcher::kept_back() {
    if (attention_.misses_kept_back()) look_again();
}

void Dispatcher::look_again() {
    const WantedMutex::Lock lock(mutex_);
    device_.disturb();
}

// ---- The dispatcher's thread

void Dispatcher::run() {
    device_.enter_thread();
    WantedMutex::Hold lock = mutex_.take();
    policy_.forget_study();
    while (!ending_) {
        if (look() || now() >= policy_.ask_again()) decide();
        look_at_windows();
        if (policy_.study(lock)) {
            decide();
            continue;
        }
        rest(lock);
        read_mappings();
        write_times();
    }
}

void Dispatcher::rest(WantedMutex::Hold& lock) {
    const bool keeps_clock = device_.properties().keeps_clock;
    const schedule::TimePoint begin = schedule::Clock::now();
    const bool lingers = !keeps_clock && solo_;
    const bool news = attention_.to_begins(lingers ? kSoloLingers : schedule::Duration::zero(),
                                           [this] { return pending(); });
    if (news && !keeps_clock) {
        lock.unlock();
        do device::nap();
        while (mutex_.wanted());
        lock.lock();
        notes_.note_if_long({}, "without a core, or others had its lock", begin);
        return;
    }
    const schedule::TimePoint next = now() + (news ? kLook : poll_interval()), ask = policy_.ask_again();
    device_.rest(lock, std::min(next, ask),
                 news || !attention_.misses_kept_back() || ask != schedule::TimePoint::max());
    attention_.awake();
}

schedule::Duration Dispatcher::poll_interval() {
    const std::optional<schedule::Duration> fed = attention_.to_kept_back([this] {
        std::optional<schedule::Duration> least;
        for (const Member& each : members_)
            if (const auto work = each.stream->keeps_back()) least = std::min(*work, least.value_or(*work));
        return least;
    });
    if (settings_.gpu_time) return kWatch;
    if (!fed) return learning() ? kShortRest : kRest;
    const schedule::Duration most = settings_.ahead / kTopUps;
    return std::clamp(*fed / kTopUpsFed, std::min<schedule::Duration>(kLeastRest, most), most);
}

bool Dispatcher::learning() const {
    return std::ranges::any_of(members_, [](const Member& each) { return each.stream->learning(); });
}

// Not at every look: reading waits for the GPU.
void Dispatcher::read_mappings() {
    if (now() < read_again_) return;
    read_again_ = now() + kShortRest;
    if (!settings_.maps && !learning()) return;
    for (const Member& member : members_) member.stream->read_mappings();
}

void Dispatcher::write_times() {
    if (!settings_.gpu_time || now() < write_again_) return;
    write_again_ = now() + kBetweenTimes;
    for (const Member& member : members_) member.stream->write_times();
}

bool Dispatcher::look() {
    const schedule::TimePoint begin = schedule::Clock::now();
    bool changed = false;
    bool left = false;  // workers have left
    size_t busy = 0;    // unmanaged work ends without any notice but its marker
    for (Member& member : members_) {
        if (member.behind) follow(member);
        left |= member.stream->poll();
        if (suspended(member)) continue;
        if (member.trial ? member.trial->samples() : policy_.samples()) member.stream->sample();
        schedule::Kernel kernel;
        const bool works = member.stream->describe(&kernel);
        if (works && member.trial) {
            follow(member, kernel);
        } else if (works) {
            ++busy;
            changed |= look(member, kernel);
        } else if (member.trial) {
            member.trial->idle(now());
        } else {
            changed |= member.stream->unheard();
        }
    }
    if (left)
        for (Member& member : members_) member.refill = true;
    notes_.note_if_long({}, "looking how far streams are", begin);
    if (policy().explores == schedule::Policy::Explores::kPairs) changed |= watch_pairs();
    refill(now());
    return changed || left || busy < policy_.snapshot().kernels.size();
}

bool Dispatcher::look(Member& member, const schedule::Kernel& kernel) {
    bool changed = !member.decided;  // no thread announces that a wait for a value is over
    if (policy_.samples() && std::exchange(member.launch, kernel.launch) != kernel.launch) {
        changed = true;  // its order holds for the next launch, too, which may be larger
        if (kernel.state == schedule::Kernel::State::kRunning) member.behind = true;
    }
    return (std::exchange(member.last_taken, kernel.last_taken) != kernel.last_taken) || changed;
}

bool Dispatcher::watch_pairs() {
    std::vector<PairWatch::Seat> at_work;
    for (Member& member : members_) {
        PairWatch::Seat seat{.stream = member.stream->id()};
        if (!member.stream->describe(&seat.kernel) || seat.kernel.state == schedule::Kernel::State::kWaiting)
            continue;
        ManagedStream::Front front;
        if (!member.trial && !member.stream->passes_through() && member.stream->front(&front)) {
            seat.ctas = member.orders.held_evenly();
            seat.known = front.known;
            seat.shape = front.shape;
        }
        const auto places = static_cast<uint64_t>(seat.ctas * policy_.snapshot().device.multiprocessors);
        // If some workers found no place, other workers still had it: further ones are sent.
        seat.complete = [&member, places] {
            const bool complete = member.stream->residents() == places;
            if (!complete) member.stream->fill_up();
            return complete;
        };
        at_work.push_back(std::move(seat));
    }
    const std::string text = pair_watch_.look(now(), at_work);
    if (!text.empty()) notes_.note({}, text);
    return !text.empty();
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
        notes_.note_if_long(member.stream->tenant(), "sending more workers", begin);
    }
}

bool Dispatcher::pending() {
    for (const Member& member : members_) {
        const Tenant& tenant = member.stream->tenant();
        if (!tenant.preemptible.load() && !tenant.preemptor.load() && !settings_.gpu_time &&
            member.stream->passes_through())
            continue;
        schedule::Kernel kernel;
        const bool works = member.stream->describe(&kernel) || member.stream->held_back();
        if (works && !(suspended(member) && kernel.state == schedule::Kernel::State::kWaiting)) return true;
    }
    return false;
}

}  // namespace smt::runtime::dispatch
