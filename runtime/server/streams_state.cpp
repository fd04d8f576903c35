// What another process needs of a session's streams to take it over, and whether they are at rest.
#include <set>

#include "runtime/dispatch/tenants.h"
#include "runtime/protocol/try.h"
#include "runtime/server/streams.h"

namespace smt::runtime::server {

namespace {

constexpr uint32_t kStreamsPart = 0x53545245;

void keep(Stream& stream, dispatch::LaunchQueue::Works&& kept) {
    std::set<uint64_t> launches;  // one that was stopped may be in several pieces
    for (const dispatch::Work& work : kept) launches.insert(work.number);
    for (size_t i = 0; i < launches.size(); ++i) stream.in_flight.withdraw_last();
    if (!kept.empty()) stream.kept = std::move(kept);
}

}  // namespace

void Streams::stand_still() {
    for (const StreamPointer& stream : all()) {
        dispatch::ManagedStream* const managed = stream->managed.load();
        if (!managed) continue;
        dispatch::LaunchQueue::Works kept;
        managed->abandon(&kept);
        keep(*stream, std::move(kept));
    }
}

bool Streams::set_aside() {
    bool all_are = true;
    for (const StreamPointer& stream : all()) {
        if (dispatch::ManagedStream* const managed = stream->managed.load()) {
            dispatch::LaunchQueue::Works kept;
            if (!managed->set_aside(&kept)) {
                all_are = false;
                continue;
            }
            keep(*stream, std::move(kept));
        }
        if (stream->busy() && !capturing(stream->handle)) all_are &= query(*stream) != CUDA_ERROR_NOT_READY;
    }
    return all_are;
}

UnderWay Streams::begun() const {
    UnderWay sum;
    for (const StreamPointer& stream : all()) {
        dispatch::ManagedStream* const managed = stream->managed.load();
        sum.add(stream->in_flight.under_way(stream->synchronized,
                                            managed ? managed->held_launches() : std::vector<uint32_t>{}));
    }
    return sum;
}

std::vector<KernelWatch::Seat> Streams::running() const {
    std::vector<KernelWatch::Seat> seats;
    for (const StreamPointer& stream : all()) {
        dispatch::ManagedStream* const managed = stream->managed.load();
        KernelWatch::Seat seat{reinterpret_cast<uintptr_t>(stream.get()),
                               tenant_->session,
                               tenant_->priority,
                               tenant_->kernel_limit,
                               {}};
        if (const auto running = managed ? managed->running() : std::nullopt) {
            seat.running = *running;
        } else if (stream->busy() && !(managed && managed->knows_work()) && works(*stream)) {
            seat.limit = {};  // it may be no launch
            seat.running.launch = ~stream->uses.load();
        } else {
            continue;
        }
        seats.push_back(seat);
    }
    return seats;
}

// Whether the driver has work of a stream. It may not be asked while the stream captures.
bool Streams::works(Stream& stream) const {
    const std::unique_lock lock(stream.host_function_mutex, std::try_to_lock);
    return !lock || capturing(stream.handle) || query(stream) == CUDA_ERROR_NOT_READY;
}

// The lock keeps the stream from beginning to capture: a query would break that.
void Streams::note_rest() {
    for (const StreamPointer& stream : all()) {
        if (!stream->busy()) continue;
        const std::unique_lock lock(stream->host_function_mutex, std::try_to_lock);
        if (!lock || capturing(stream->handle) || driver_.cuStreamQuery(stream->handle) != CUDA_SUCCESS)
            continue;
        dispatch::ManagedStream* const managed = stream->managed.load();
        const uint64_t uses = stream->uses.load(), held = managed ? managed->held_launches().size() : 0;
        const uint64_t over = uses - std::min(uses, held);
        uint64_t known = stream->synchronized.load();
        while (known < over && !stream->synchronized.compare_exchange_weak(known, over)) {
        }
    }
}

void Streams::note_what_is_over() {
    for (const StreamPointer& stream : all()) {
        if (!stream->busy()) continue;
        const std::unique_lock lock(stream->host_function_mutex, std::try_to_lock);
        if (!lock || capturing(stream->handle)) continue;
        const uint64_t uses = stream->uses.load();
        if (query(*stream) != CUDA_SUCCESS) continue;
        uint64_t known = stream->synchronized.load();
        while (known < uses && !stream->synchronized.compare_exchange_weak(known, uses)) {
        }
    }
}

bool Streams::work() {
    note_what_is_over();
    const std::vector<StreamPointer> streams = all();
    return std::any_of(streams.begin(), streams.end(), [this](const StreamPointer& stream) {
        return stream->busy() && !capturing(stream->handle);
    });
}

bool Streams::driver_is_done(UnderWay* left) {
    bool done = true;
    for (const StreamPointer& stream : all()) {
        if (capturing(stream->handle)) continue;
        stream->held_back();  // so that the driver's stream waits for launches on others
        if (driver_.cuStreamQuery(stream->handle) != CUDA_ERROR_NOT_READY) continue;
        left->add(stream->in_flight.under_way(stream->synchronized));
        done = false;
    }
    return done;
}

std::string Streams::why_not_carried() const {
    if (captures()) return "it captures";
    for (const StreamPointer& stream : all())
        if (stream->function_runs()) return "a host function of it is under way";
    const UnderWay now = under_way();
    if (now.suspect()) return "kernels of it were under way, or may have been";
    return now.operations ? "copies or other operations of it were under way, or may have been" : "";
}

SavedStream Streams::saved(const Stream& stream) {
    return {stream.reference, stream.blocking, stream.priority, 0, stream.callback};
}

void Streams::save(protocol::StateWriter& out) const {
    std::lock_guard lock(mutex_);
    std::vector<SavedStream> streams{saved(*legacy_)};
    for (const auto& [reference, stream] : created_) streams.push_back(saved(*stream));
    out.part(kStreamsPart);
    out.list(streams);
    out.scalar(next_);
}

CUresult Streams::restore(protocol::Reader& in) {
    if (!protocol::take_part(in, kStreamsPart)) return CUDA_ERROR_INVALID_VALUE;
    const std::vector<SavedStream> streams = protocol::take_list<SavedStream>(in);
    next_ = in.scalar<uint32_t>();
    if (!in.good() || streams.empty()) return CUDA_ERROR_INVALID_VALUE;
    legacy_->callback = streams[0].callback;
    if (streams[0].priority != legacy_->priority) SMT_TRY(set_priority(legacy_->handle, streams[0].priority));
    for (size_t i = 1; i < streams.size(); ++i) {
        StreamPointer made;
        SMT_TRY(make(streams[i].blocking != 0, streams[i].priority, &made));
        made->reference = streams[i].reference;
        made->callback = streams[i].callback;
        std::lock_guard lock(mutex_);
        created_[made->reference] = std::move(made);
    }
    return CUDA_SUCCESS;
}

CUresult Streams::restore_own(const SavedStream& saved, StreamPointer* stream) {
    SMT_TRY(make(true, saved.priority, stream));
    (*stream)->reference = protocol::kPerThreadStream;
    (*stream)->callback = saved.callback;
    std::lock_guard lock(mutex_);
    own_.push_back(*stream);
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server
