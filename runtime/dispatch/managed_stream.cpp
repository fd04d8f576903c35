#include "runtime/dispatch/managed_stream.h"

#include <algorithm>
#include <utility>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

namespace {

uint64_t next_id() {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1) + 1;
}

}  // namespace

ManagedStream::ManagedStream(Dispatcher& dispatcher, std::shared_ptr<Tenant> tenant, CUstream stream)
    : dispatcher_(dispatcher),
      tenant_(std::move(tenant)),
      id_(next_id()),
      detour_(dispatcher.driver(), stream, dispatcher.supplies(),
              [this](CUresult why) { dispatcher_.notes().refused(*tenant_, why); }),
      preemptor_(tenant_->tried() ? State::kStopped : State::kPassThrough),
      queue_(dispatcher.ahead()),
      markers_(dispatcher.driver(), dispatcher.supplies().words(), stream),
      learner_(dispatcher, *tenant_),
      forms_({dispatcher, *tenant_, stream, markers_, learner_, detour_}),
      account_(dispatcher, *tenant_),
      samples_(markers_) {}

ManagedStream::~ManagedStream() {
    dispatcher_.leave(*this);
    for (const UnmanagedSide::Flight& each : unmanaged_.in_flight) {
        if (each.number) tenant_->window.give(each.number, {});
    }
}

CUresult ManagedStream::open() {
    SMT_TRY(markers_.open());
    SMT_TRY(forms_.persistent().open());
    dispatcher_.join(*this);
    return CUDA_SUCCESS;
}

schedule::TimePoint ManagedStream::now() const { return dispatcher_.now(); }

// ---- Launches, with mutex_ held

CUresult ManagedStream::issue(Work&& work) {
    LaunchForm& form = forms_.of(work);
    const bool idle = queue_.in_flight().empty();
    bool anew = false;
    SMT_TRY(form.prepare(work, idle, &anew));
    if (anew) SMT_TRY(get_ready());
    work.endures = will_endure(work);
    if (dispatcher_.watches()) SMT_TRY(mark_before(&work.before));
    SMT_TRY(form.launch(work));
    const schedule::TimePoint now = work.issued = dispatcher_.now();
    if (idle) preemptor_.set_since(now);
    queue_.issued(std::move(work), now);
    if (idle) settle_account();
    note_begin();
    // The end of these launches is waited for.
    const bool awaited = account_.watches_ends() || tenant_->preemptor.load(std::memory_order_relaxed) ||
                         dispatcher_.watches() || !form.may_follow(queue_.in_flight().size());
    if (awaited || queue_.wants_marker(stops_soon())) mark();
    // The launch has begun, whatever became of its marker: a fault may be its own, and the next call tells
    // it.
    return CUDA_SUCCESS;
}

// What cannot be stopped must not follow what can: it would overtake what a stop leaves of that. Where a stop
// would save little of that, too, it is not stopped any more.
bool ManagedStream::will_endure(const Work& work) {
    LaunchForm& form = forms_.of(work);
    if (tenant_->tried() || form.worth_stopping(work)) return false;
    const LaunchQueue::Works& in_flight = queue_.in_flight();
    if (in_flight.empty() || in_flight.back().endures) return true;
    const std::optional<schedule::TimePoint> end = queue_.expected_end();
    return end && *end - dispatcher_.now() <= dispatcher_.policy().least_saved && form.let_pass();
}

// When the GPU reaches the marker, everything before it is over.
CUresult ManagedStream::mark(CUresult (Markers::*how)()) {
    markers_.at(detour_.where());
    SMT_TRY((markers_.*how)());
    queue_.marked(markers_.last());
    return CUDA_SUCCESS;
}

// What was written in the stream's order to the control block, or to the door's stop word, must not arrive
// after later writes on the control stream.
CUresult ManagedStream::get_ready() {
    samples_.forget();
    const CUresult status = mark(&Markers::mark_by_write);
    preemptor_.set_ready(markers_.last());
    return status;
}

void ManagedStream::top_up() {
    LaunchQueue::Works& waiting = queue_.waiting();
    while (preemptor_.in(State::kPassThrough) && !waiting.empty() && client_ == Client::kHere &&
           !over_launch_ahead()) {
        if (!forms_.may_follow(waiting.front(), queue_.in_flight())) {
            if (queue_.unmarked()) mark();
            return;
        }
        issue_first();
    }
}

void ManagedStream::issue_first() {
    Work work = std::move(queue_.waiting().front());
    queue_.waiting().pop_front();
    CUresult status = issue(std::move(work));
    // For a caller of launch() NOT_SUPPORTED means another form of the same launch.
    if (status == CUDA_ERROR_NOT_SUPPORTED) status = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (failed_ == CUDA_SUCCESS) failed_ = status;
}

bool ManagedStream::over_launch_ahead() {
    return queue_.full(stops_soon(), [this] { return dispatcher_.now(); });
}

void ManagedStream::go_on() {
    prune();
    top_up();
}

// Without a marker the last launches would never be known to be over, and a wait for that would not end.
void ManagedStream::mark_tail() {
    if (!preemptor_.in(State::kPassThrough) || !queue_.unmarked()) return;
    if (!queue_.tail(dispatcher_.now())) return;
    if (tenant_->preemptible.load(std::memory_order_relaxed) ||
        tenant_->preemptor.load(std::memory_order_relaxed))
        mark();
}

// ---- The dispatcher: states of the stream

bool ManagedStream::poll() {
    std::lock_guard lock(mutex_);
    const bool had = under_way();
    go_on();
    mark_tail();
    if (preemptor_.in(State::kPassThrough)) return had && !under_way();
    if (!preemptor_.takes(Event::kOver) || markers_.reached() < markers_.last() ||
        !forms_.persistent().has_grown())
        return false;
    return settle() == CUDA_SUCCESS;
}

bool ManagedStream::ready() {
    std::lock_guard lock(mutex_);
    return markers_.reached() >= preemptor_.ready();
}

bool ManagedStream::passes_through() {
    std::lock_guard lock(mutex_);
    return preemptor_.in(State::kPassThrough);
}

std::optional<schedule::Duration> ManagedStream::keeps_back() {
    std::lock_guard lock(mutex_);
    if (!preemptor_.in(State::kPassThrough) || queue_.waiting().empty() || client_ != Client::kHere)
        return std::nullopt;
    // Looks are the rarer the longer the end is overdue.
    return std::chrono::abs(queue_.fed_for(dispatcher_.now()));
}

void ManagedStream::confine(const schedule::Confinement& confinement) {
    std::lock_guard lock(mutex_);
    unmanaged_.confined_to = confinement.multiprocessors;
    unmanaged_.confines_longer = confinement.longer_than;
    detour_.confine(confinement.stoppable && !tenant_->places ? confinement.multiprocessors : 0);
    queue_.limit(confinement.ahead);
}

void ManagedStream::mark_what_is_there() {
    std::lock_guard lock(mutex_);
    if (preemptor_.in(State::kPassThrough) && queue_.unmarked()) mark();
}

CUresult ManagedStream::pass_through() {
    std::lock_guard lock(mutex_);
    if (!preemptor_.takes(Event::kResume)) return CUDA_SUCCESS;
    preemptor_.take(Event::kResume, dispatcher_.now());
    top_up();
    if (queue_.unmarked()) mark();
    tell_changed();
    return failed_;
}

bool ManagedStream::stop() {
    std::lock_guard lock(mutex_);
    prune();
    if (!preemptor_.takes(Event::kStop)) return true;
    if (unmanaged_.entering) return false;
    if (!under_way()) return come_to_rest() == CUDA_SUCCESS;
    if (queue_.in_flight().empty()) {  // unmanaged work only, with a marker behind the last
        preemptor_.begin_stop({dispatcher_.now_ns(), unmanaged_.in_flight.back().name, true});
        preemptor_.take(Event::kStop, dispatcher_.now());
        return true;
    }
    if (const Work* const passed = queue_.last_let_pass()) {  // its end is waited for
        if (!passed->marker) mark();
        return false;
    }
    return stop_in_flight();
}

// In pass-through mode with launches in flight. False: not possible now.
bool ManagedStream::stop_in_flight() {
    if (markers_.reached() < preemptor_.ready() || !forms_.alike(queue_.in_flight())) return false;
    const uint64_t said = dispatcher_.now_ns();
    LaunchQueue::Works& in_flight = queue_.in_flight();
    LaunchForm& form = forms_.of(in_flight.front());
    const bool inside = forms_.ends_blocks(in_flight);
    if (form.stop(inside) != CUDA_SUCCESS) return false;
    // Enqueued behind the last launch: when the marker is reached, all workers have left. Without a report it
    // is unknown what has run; the context is lost then.
    if (form.report(in_flight.front(), in_flight.back()) != CUDA_SUCCESS ||
        mark(&Markers::mark_by_write) != CUDA_SUCCESS)
        client_ = Client::kGone;
    preemptor_.begin_stop({said, learner_.last().name, false, inside});
    preemptor_.take(Event::kStop, dispatcher_.now());
    return true;
}

CUresult ManagedStream::run(const QuotaTable& quotas, uint64_t blocks) {
    std::lock_guard lock(mutex_);
    if (!preemptor_.takes(Event::kRun) || queue_.waiting().empty() || client_ != Client::kHere)
        return CUDA_SUCCESS;
    Work& work = queue_.waiting().front();
    LaunchForm& form = forms_.of(work);
    bool anew = false;
    SMT_TRY(form.prepare_run(work, quotas, &anew));
    if (anew) SMT_TRY(get_ready());
    SMT_TRY(form.run(work, blocks));
    SMT_TRY(mark(&Markers::mark_by_write));
    work.issued = dispatcher_.now();
    preemptor_.take(Event::kRun, work.issued);
    settle_account();
    if (looks_on()) waiters_.wake();  // the waiting thread polls from now on
    return CUDA_SUCCESS;
}

CUresult ManagedStream::halt() {
    std::lock_guard lock(mutex_);
    return halt_run();
}

CUresult ManagedStream::halt_run() {
    if (!preemptor_.takes(Event::kHalt)) return CUDA_SUCCESS;
    const Work& work = queue_.waiting().front();
    const bool inside = forms_.of(work).ends_blocks(work);
    preemptor_.begin_stop({dispatcher_.now_ns(), learner_.last().name, false, inside});
    preemptor_.take(Event::kHalt, preemptor_.since());  // tickets are refused: no further run or workers
    return forms_.of(work).stop(inside);
}

bool ManagedStream::stop_what_runs() {
    if (preemptor_.in(State::kPassThrough)) return !queue_.in_flight().empty() && stop_in_flight();
    return preemptor_.in(State::kRunning) && markers_.reached() >= preemptor_.ready() &&
           halt_run() == CUDA_SUCCESS;
}

CUresult ManagedStream::settle() {
    const uint64_t over = dispatcher_.now_ns();
    const bool stopped = preemptor_.stops(), halted = preemptor_.in(State::kHalted),
               quotas = preemptor_.in_quota_mode();
    const bool by_itself = quotas && dispatcher_.company().by_itself(tenant_->received.part,
                                                                     preemptor_.since(), dispatcher_.now());
    const auto account = [&](Work& work, const auto& settle) {
        const uint64_t before = work.done;
        settle(work);
        learner_.ran(work, before, by_itself);
        account_.over(work, work.done - before, !stopped && !quotas, work.left() == 0);
    };
    if (preemptor_.in_quota_mode()) {
        LaunchQueue::Works& waiting = queue_.waiting();
        LaunchForm& form = forms_.of(waiting.front());
        SMT_TRY(form.collect(waiting.front()));
        account(waiting.front(), [&](Work& work) { form.settle_run(work, halted); });
        if (waiting.front().left() == 0) waiting.pop_front();
    } else if (!queue_.in_flight().empty()) {
        LaunchForm& form = forms_.of(queue_.in_flight().front());
        SMT_TRY(form.collect(queue_.in_flight().front()));
        for (Work& each : queue_.in_flight()) account(each, [&](Work& work) { form.settle(work); });
    }
    queue_.put_back();
    if (gone()) queue_.waiting().clear();
    const Preemptor::Stop& stop = preemptor_.stop();
    learner_.take(forms_.persistent().control(), stopped ? over - stop.said_ns : 0, queue_.first());
    learner_.placement().end();
    const uint64_t lost = forms_.persistent().take_lost();
    if (stopped) learner_.stopped(stop, over, lost);
    const CUresult status = come_to_rest();
    tell_changed();
    return status;
}

// The GPU has no work of this stream.
CUresult ManagedStream::come_to_rest() {
    preemptor_.take(preemptor_.in(State::kPassThrough) ? Event::kRest : Event::kOver, dispatcher_.now());
    samples_.forget();
    settle_account();
    bool anew = false;
    SMT_TRY(forms_.persistent().rest(&anew));
    return anew ? get_ready() : CUDA_SUCCESS;
}

// ---- The dispatcher: the run of quota mode

bool ManagedStream::runs_with_quotas() const {
    return preemptor_.in(State::kRunning) && !queue_.waiting().empty() &&
           queue_.waiting().front().function->abilities().quota;
}

CUresult ManagedStream::change(const QuotaTable& quotas) {
    std::lock_guard lock(mutex_);
    return runs_with_quotas() ? forms_.persistent().change(quotas) : CUDA_SUCCESS;
}

CUresult ManagedStream::grow(uint32_t workers) {
    std::lock_guard lock(mutex_);
    return runs_with_quotas() ? forms_.persistent().send(queue_.waiting().front(), workers) : CUDA_SUCCESS;
}

// As many workers as the device has room for. Fewer might all arrive where other workers have left, and not
// where their places are.
CUresult ManagedStream::fill_up() {
    std::lock_guard lock(mutex_);
    if (!runs_with_quotas()) return CUDA_SUCCESS;
    Work& work = queue_.waiting().front();
    const uint32_t workers = std::max<uint32_t>(1, work.fits) * multiprocessors_of(*tenant_, dispatcher_);
    return forms_.persistent().send(work, workers);
}

uint64_t ManagedStream::residents() {
    std::lock_guard lock(mutex_);
    uint64_t workers = 0;
    if (!runs_with_quotas() || markers_.reached() < preemptor_.ready()) return 0;
    const CUresult status =
        forms_.persistent().control().read_residents(dispatcher_.device().errands(), &workers);
    return status == CUDA_SUCCESS ? workers : 0;
}

// ---- What is learnt

bool ManagedStream::learning() {
    std::lock_guard lock(mutex_);
    return learner_.learning();
}

void ManagedStream::read_mappings() {
    std::lock_guard lock(mutex_);
    learn_now();
}

// Not while a stop is under way, which reading would delay; all is read at its end. Nor in a quota-mode run:
// a worker may have its entry and not have filled it yet, and the run's end is soon enough.
void ManagedStream::learn_now() {
    if (!preemptor_.takes(Event::kOver)) learner_.take(forms_.persistent().control(), 0, queue_.first());
}

Placement::Sums ManagedStream::placement() {
    std::lock_guard lock(mutex_);
    return learner_.placement().sums();
}

void ManagedStream::forget_code() {
    const Lock lock = spin_lock(mutex_);
    learn_now();  // the last chance
    learner_.forget_code();
    account_.forget_code();
}

}  // namespace smt::runtime::dispatch
