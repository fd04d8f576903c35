#include "runtime/dispatch/managed_stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include "profiler/models/preemption.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

namespace {

using namespace std::chrono_literals;

// Minimum number of tickets per worker, so that the end of a launch is not ragged.
constexpr uint64_t kTicketsEach = 16;
constexpr uint64_t kLongTicketsEach = 64;
constexpr uint32_t kWaves = 4;
constexpr uint64_t kWorthALook = 50'000;  // ns of a ticket, a hundred times what a look costs
// After so many quota-mode runs in which no worker found a place, quotas are ignored.
constexpr uint32_t kMostFruitless = 2;

uint64_t next_id() {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1) + 1;
}

// An uneven table is represented by its largest number.
profiler::Placement placement_of(const QuotaTable& quotas, uint32_t fits) {
    profiler::Placement placement;
    for (const uint8_t each : quotas) {
        placement.sms += each != 0;
        placement.ctas_per_sm = std::max<int64_t>(placement.ctas_per_sm, std::min<uint32_t>(each, fits));
    }
    return placement;
}

}  // namespace

ManagedStream::ManagedStream(Dispatcher& dispatcher, std::shared_ptr<Tenant> tenant, CUstream stream)
    : dispatcher_(dispatcher),
      tenant_(std::move(tenant)),
      stream_(stream),
      id_(next_id()),
      control_(dispatcher.control_memory()),
      doors_(dispatcher.door_memory()),
      launch_ahead_(dispatcher.ahead()),
      side_stream_(dispatcher.driver(), dispatcher.sm_sets()) {}

ManagedStream::~ManagedStream() {
    dispatcher_.leave(*this);
    for (const Unmanaged& each : unmanaged_) {
        if (each.number) tenant_->window.give(each.number, {});
    }
    const DriverApi& driver = dispatcher_.driver();
    for (const Growth& each : growths_) {
        if (each.stream) driver.cuStreamDestroy_v2(each.stream);
    }
    if (begun_) driver.cuEventDestroy_v2(begun_);
    if (words_) dispatcher_.words().give(words_);
}

CUresult ManagedStream::open() {
    if (!dispatcher_.words().take(&words_, &word_address_)) return CUDA_ERROR_OUT_OF_MEMORY;
    SMT_TRY(control_.open(dispatcher_.control()));
    words_->reached.store(0);
    for (std::atomic<uint64_t>& each : words_->grown) each.store(0);
    words_->sampled.store(0);
    words_->waits_over.store(0);
    if (tenant_->tried()) state_ = State::kStopped;
    dispatcher_.join(*this);
    return CUDA_SUCCESS;
}

schedule::TimePoint ManagedStream::now() const { return dispatcher_.now(); }

// ---- Launching; with mutex_ held

CUresult ManagedStream::fitting(const Work& work, uint32_t* ctas) {
    *ctas = work.function->fitting(work.threads(), work.shared_bytes);
    if (*ctas) return CUDA_SUCCESS;
    int fits = 0;
    CUresult status = dispatcher_.driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &fits, work.function->function, static_cast<int>(work.threads()), work.shared_bytes);
    // The managed form needs too much shared memory, or the program requests too much. The kernel's own form
    // will show which.
    if (status == CUDA_ERROR_INVALID_VALUE || (status == CUDA_SUCCESS && fits <= 0))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (status != CUDA_SUCCESS) return status;
    *ctas = static_cast<uint32_t>(fits);
    work.function->set_fitting(work.threads(), work.shared_bytes, *ctas);
    return CUDA_SUCCESS;
}

// Describes a launch of the next `blocks` (0: all that are left), with tickets from 0.
CUresult ManagedStream::prepare(Work& work, uint64_t blocks, smt::Launch* launch, uint32_t* workers) {
    uint32_t fits = 0;
    SMT_TRY(fitting(work, &fits));
    const SaturatingCtas::Try ctas = ctas_for(work, fits);
    const uint64_t places = uint64_t{fits} * multiprocessors(),
                   capacity = uint64_t{ctas.ctas} * multiprocessors();
    work.covered = static_cast<uint32_t>(std::min({work.left(), kMostBlocks, blocks ? blocks : kMostBlocks}));
    const bool never = work.function->reuse == Reuse::kNever;
    work.chunk = never ? 1 : ticket_blocks(work, work.covered / capacity);
    work.tickets = (work.covered + work.chunk - 1) / work.chunk;
    const bool single = never || work.tickets <= places;
    *workers = static_cast<uint32_t>(single ? work.tickets : capacity);
    *launch = {};
    launch->control = control_.address();
    const uint64_t row = work.done / work.grid[0];
    launch->origin[0] = static_cast<unsigned>(work.done % work.grid[0]);
    launch->origin[1] = static_cast<unsigned>(row % work.grid[1]);
    launch->origin[2] = static_cast<unsigned>(row / work.grid[1]);
    launch->total = work.covered;
    std::copy_n(work.grid, 3, launch->grid);
    work.ctas = single ? fits : ctas.asks ? 0 : ctas.ctas;
    const bool learns = (work.function->block_ns.load() == 0 || ctas.asks) && !single;
    if (learns && !std::exchange(learning_, true)) partial_reads_ = 0;
    // All have begun at once, where the hardware puts them.
    const bool placed = work.chunk == 1 && work.tickets <= places;
    launch->flags = (single ? smt::kSingle : 0u) | (placed ? smt::kPlaced : 0u) |
                    (dispatcher_.maps() || learns ? smt::kMapped : 0u);
    work.launch = launches_++;
    launch->id = work.launch % kLaunchIds;
    launched_[launch->id % launched_.size()] = {launch->id,
                                                work.entry.name,
                                                work.function,
                                                work.chunk,
                                                work.shape(),
                                                {multiprocessors(), ctas.ctas},
                                                ctas.asks && !single ? fits : 0,
                                                work.covered,
                                                dispatcher_.alone()};
    launch->chunk = work.chunk;
    launch->tickets = work.tickets;
    return CUDA_SUCCESS;
}

// Blocks per ticket. One, while the block time is not known. `each`: blocks per worker. The last tickets do
// not all end at once.
uint32_t ManagedStream::ticket_blocks(const Work& work, uint64_t each) const {
    const uint64_t block_ns = each < 2 * kTicketsEach ? 0 : expected_block_ns(work);
    if (block_ns == 0) return 1;
    const bool preemptible = tenant_->preemptible.load(std::memory_order_relaxed);
    const uint32_t blocks = preemptible ? profiler::models::preemptible_ticket_blocks(block_ns)
                                        : profiler::models::ticket_blocks(block_ns);
    const uint32_t twice = profiler::models::long_ticket_blocks(block_ns);
    if (!preemptible && each >= uint64_t{twice} * kLongTicketsEach) return twice;
    return static_cast<uint32_t>(std::clamp<uint64_t>(each / kTicketsEach, 1, blocks));
}

// Times alone are of the whole device, even if the tenant has a part of it.
uint64_t ManagedStream::expected_block_ns(const Work& work) const {
    return work.function->expected_block_ns(
        work.shape(),
        uint64_t{work.fits} * static_cast<uint32_t>(dispatcher_.device().properties().multiprocessors));
}

// Quota-mode runs have CTAs of their own. Until it is known how many blocks a ticket should stand for,
// throughput is no measure.
SaturatingCtas::Try ManagedStream::ctas_for(const Work& work, uint32_t fits) {
    const bool passes_through = state_ == State::kPassThrough && work.function->reuse != Reuse::kNever &&
                                work.function->block_ns.load() != 0;
    const bool quick = tenant_->preemptible.load(std::memory_order_relaxed) && dispatcher_.short_stops();
    if (!passes_through || !quick || tenant_->measured()) return {fits, false};
    return work.function->enough.next(fits);
}

uint32_t ManagedStream::multiprocessors() const {
    return tenant_->places ? tenant_->places->count()
                           : static_cast<uint32_t>(dispatcher_.device().properties().multiprocessors);
}

CUresult ManagedStream::launch_workers(Work& work, CUstream stream, const smt::Launch& launch,
                                       uint32_t workers) {
    work.parameters.resize(work.function->launch_offset + sizeof launch);
    std::memcpy(work.parameters.data() + work.function->launch_offset, &launch, sizeof launch);
    size_t bytes = work.parameters.size();
    void* whole[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, work.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    dispatcher_.device().announce(work.entry);
    used_ = true;
    return dispatcher_.driver().cuLaunchKernel(work.function->function, workers, 1, 1, work.block[0],
                                               work.block[1], work.block[2], work.shared_bytes, stream,
                                               nullptr, whole);
}

// ---- The dispatcher

bool ManagedStream::ready() {
    std::lock_guard lock(mutex_);
    return reached() >= ready_;
}

bool ManagedStream::passes_through() {
    std::lock_guard lock(mutex_);
    return state_ == State::kPassThrough;
}

void ManagedStream::confine(const schedule::Confinement& confinement) {
    std::lock_guard lock(mutex_);
    confined_to_ = confinement.multiprocessors;
    confines_longer_ = confinement.longer_than;
}

void ManagedStream::mark_what_is_there() {
    std::lock_guard lock(mutex_);
    if (state_ == State::kPassThrough && unmarked_) mark();
}

bool ManagedStream::stop() {
    std::lock_guard lock(mutex_);
    prune();
    if (state_ != State::kPassThrough) return true;
    if (entering_) return false;
    if (!under_way()) return come_to_rest() == CUDA_SUCCESS;
    if (in_flight_.empty()) {  // unmanaged work only, with a marker behind the last
        begin_stop(unmanaged_.back().name, dispatcher_.now_ns());
        stop_unmanaged_ = true;
        return true;
    }
    const auto unguarded = std::find_if(in_flight_.rbegin(), in_flight_.rend(),
                                        [&](const Work& each) { return each.number <= unguarded_; });
    if (unguarded != in_flight_.rend()) {
        if (!unguarded->marker && mark() != CUDA_SUCCESS) return false;
        unpreemptible_ = unguarded->marker;
    }
    return reached() >= unpreemptible_ && stop_in_flight();
}

// mutex_ is held, in pass-through mode with launches in flight. False: not possible now.
bool ManagedStream::stop_in_flight() {
    if (reached() < ready_) return false;
    const uint64_t said = dispatcher_.now_ns();
    const bool doors = in_flight_with_door();
    const CUstream control = dispatcher_.control();
    if ((doors ? stop_doors() : control_.stop(control)) != CUDA_SUCCESS) return false;
    // Enqueued behind the last launch: when the marker is reached, all workers have left. Without a report it
    // is unknown what has run; the context is lost then.
    const CUresult reported = doors ? report_doors() : control_.report(stream_, &words_->left);
    if (reported != CUDA_SUCCESS || mark() != CUDA_SUCCESS) gone_ = true;
    begin_stop(last_launched(), said);
    return true;
}

void ManagedStream::begin_stop(uint32_t name, uint64_t said_ns) {
    stop_name_ = name;
    stop_said_ = said_ns;
    stop_unmanaged_ = false;
    state_ = State::kStopping;
    since_ = dispatcher_.now();
}

// Null: forgotten, because too many launches have followed.
ManagedStream::Launched* ManagedStream::launched_as(uint32_t launch) {
    Launched& found = launched_[launch % launched_.size()];
    return found.id == launch % kLaunchIds ? &found : nullptr;
}

// How many tickets were run, once the workers have left. The latest of the reports counts: tickets and
// refusals only grow.
CUresult ManagedStream::tickets_run(uint32_t* run) {
    uint32_t taken = words_->left.taken, refused = words_->left.refused;
    bool up_to_date = control_.up_to_date(words_->left);
    for (const ControlBlock::State& each : words_->left_grown) {
        taken = std::max(taken, each.taken), refused = std::max(refused, each.refused);
        up_to_date |= control_.up_to_date(each);
    }
    *run = taken - refused;
    if (up_to_date) return CUDA_SUCCESS;
    return dispatcher_.driver().cuStreamSynchronize(dispatcher_.control());
}

CUresult ManagedStream::settle() {
    const uint64_t over = dispatcher_.now_ns();
    const bool stopped = state_ == State::kStopping || halted_;
    const bool doors =
        state_ == State::kRunning ? waiting_.front().function->has_door() : in_flight_with_door();
    uint32_t run = 0;
    SMT_TRY(doors ? settle_graph() : tickets_run(&run));
    if (state_ == State::kRunning) settle_run(run);
    settle_in_flight(run);
    launch_ahead_.forget();
    if (gone_) waiting_.clear();
    take_mappings(stopped ? over - stop_said_ : 0);
    placement_.end();
    if (stopped) note_stop(over);
    const CUresult status = come_to_rest();
    tell_changed();
    return status;
}

void ManagedStream::settle_run(uint32_t run) {
    Work& work = waiting_.front();
    if (std::exchange(fruitless_of_, work.number) != work.number) fruitless_ = 0;
    fruitless_ = run == 0 && !halted_ && work.function->persistent() ? fruitless_ + 1 : 0;
    const uint64_t before = work.done;
    settle(work, run, work.run);
    launched_[(launches_ - 1) % launched_.size()].blocks = work.done - before;
    if (work.left() == 0) waiting_.pop_front();
}

void ManagedStream::settle_in_flight(uint32_t run) {
    const uint64_t first = in_flight_.empty() ? 0 : in_flight_.front().run;
    for (auto work = in_flight_.begin(); work != in_flight_.end(); ++work) {
        const uint64_t before = work->done;
        settle(*work, run, first);
        if (Launched* const launched = launched_as(work->launch)) {
            launched->blocks = work->done - before;
            launched->stopped = work->left() != 0;
        }
    }
    std::erase_if(in_flight_, [](const Work& work) { return work.left() == 0; });
    waiting_.insert(waiting_.begin(), std::make_move_iterator(in_flight_.begin()),
                    std::make_move_iterator(in_flight_.end()));
    in_flight_.clear();
}

// The stop time is attributed to the last launch in flight, which mostly causes it. An average over the last
// few stops.
void ManagedStream::note_stop(uint64_t over_ns) {
    dispatcher_.report_stop(*tenant_, stop_name_, stop_said_, over_ns, std::exchange(longest_, {}));
    ManagedFunction* const function =
        launches_ && !stop_unmanaged_ ? launched_[(launches_ - 1) % launched_.size()].function : nullptr;
    if (!function) return;
    const uint64_t took = over_ns - stop_said_, before = function->stop_ns.load(std::memory_order_relaxed);
    function->stop_ns.store(before ? (3 * before + took) / 4 : took, std::memory_order_relaxed);
    if (function->known) function->known->stopped(launched_[(launches_ - 1) % launched_.size()].shape, took);
}

// The GPU has no work of this stream. The next launch counts its tickets from 0.
CUresult ManagedStream::come_to_rest() {
    state_ = State::kStopped;
    since_ = dispatcher_.now();
    next_ticket_ = 0;
    forget_sample();
    words_->left = {};
    for (ControlBlock::State& each : words_->left_grown) each = {};
    if (!std::exchange(used_, false)) return CUDA_SUCCESS;
    CUresult status = control_.reset(stream_);
    return status == CUDA_SUCCESS ? get_ready() : status;
}

// What was written in the stream's order to the control block, or to the door's stop word, must not arrive
// after later writes on the control stream.
CUresult ManagedStream::get_ready() {
    CUresult status = mark();
    ready_ = marked_;
    return status;
}

CUresult ManagedStream::run(const QuotaTable& quotas, uint64_t blocks) {
    std::lock_guard lock(mutex_);
    if (state_ != State::kStopped || waiting_.empty()) return CUDA_SUCCESS;
    Work& work = waiting_.front();
    if (work.function->has_door()) return run_door(work, blocks);
    smt::Launch launch;
    SMT_TRY(prepare(work, blocks, &launch, &run_workers_));
    uint32_t fits = 0;
    SMT_TRY(fitting(work, &fits));
    const uint32_t capacity = fits * multiprocessors();
    const DriverApi& driver = dispatcher_.driver();
    launch.flags = (launch.flags & ~smt::kPlaced) | smt::kHeld | (tenant_->sweeps ? smt::kMapped : 0u);
    // One ticket per worker serves the count of tickets between launches in pass-through mode. Here it would
    // leave places empty.
    if (work.function->reuse != Reuse::kNever) launch.flags &= ~smt::kSingle;
    if (expected_block_ns(work) * work.chunk >= kWorthALook) launch.flags |= smt::kLooks;
    // Workers that find no place leave at once, and each loses a ticket that it could have taken, so more
    // than a few waves of them would be wasted. What is left over runs next time. Fewer workers than fill the
    // device might all arrive where there is no place, and again the next time.
    run_workers_ = std::clamp<uint32_t>(run_workers_, capacity, kWaves * capacity);
    work.ticket = 0;
    if (!begun_) SMT_TRY(driver.cuEventCreate(&begun_, CU_EVENT_DISABLE_TIMING));
    // A launch that found no place twice runs anywhere: its own places may be taken by work that cannot be
    // stopped.
    const bool anywhere = fruitless_ >= kMostFruitless && work.number == fruitless_of_;
    const QuotaTable everywhere(anywhere ? quotas.size() : 0, smt::kNoQuota);
    SMT_TRY(control_.set_quotas(stream_, anywhere ? everywhere : quotas));
    SMT_TRY(get_ready());
    SMT_TRY(driver.cuEventRecord(begun_, stream_));
    SMT_TRY(launch_workers(work, stream_, launch, run_workers_));
    SMT_TRY(control_.report(stream_, &words_->left));
    SMT_TRY(mark());
    launched_[launch.id % launched_.size()].placement = placement_of(anywhere ? everywhere : quotas, fits);
    state_ = State::kRunning;
    halted_ = false;
    since_ = dispatcher_.now();
    if (looks_on()) wake();  // the waiting thread polls from now on
    if (dispatcher_.maps()) placement_.begin(launch.id, anywhere ? everywhere : quotas);
    return CUDA_SUCCESS;
}

CUresult ManagedStream::change(const QuotaTable& quotas) {
    std::lock_guard lock(mutex_);
    if (!runs_with_quotas()) return CUDA_SUCCESS;
    placement_.change();
    return control_.change_quotas(dispatcher_.control(), quotas);
}

CUresult ManagedStream::halt() {
    std::lock_guard lock(mutex_);
    return halt_run();
}

CUresult ManagedStream::halt_run() {
    if (state_ != State::kRunning || halted_) return CUDA_SUCCESS;
    stop_said_ = dispatcher_.now_ns();
    stop_name_ = last_launched();
    stop_unmanaged_ = false;
    halted_ = true;  // tickets are refused from now on: no further run or workers
    return waiting_.front().function->has_door() ? stop_doors() : control_.stop(dispatcher_.control());
}

// As many workers as the device has room for. Fewer might all arrive where other workers have left, and not
// where their places are.
CUresult ManagedStream::fill_up() {
    std::lock_guard lock(mutex_);
    if (!runs_with_quotas()) return CUDA_SUCCESS;
    return send(std::max<uint32_t>(1, waiting_.front().fits) * multiprocessors());
}

CUresult ManagedStream::grow(uint32_t workers) {
    std::lock_guard lock(mutex_);
    if (!runs_with_quotas()) return CUDA_SUCCESS;
    return send(workers);
}

// A growth stream is busy as long as one of its workers is at work, which may be as long as the launch.
CUresult ManagedStream::send(uint32_t workers) {
    const DriverApi& driver = dispatcher_.driver();
    size_t i = 0;
    while (i < growths_.size() && !has_grown(i)) ++i;
    if (i == growths_.size()) i = ++crowded_ % growths_.size();  // behind the workers already there
    Growth& growth = growths_[i];
    if (!growth.stream) {
        const int priority = dispatcher_.stream_priority(*tenant_, 0);
        SMT_TRY(dispatcher_.sm_sets().make_stream(tenant_->places.get(), priority, &growth.stream));
        dispatcher_.device().made_for(tenant_->session, growth.stream);
    }
    Work& work = waiting_.front();
    smt::Launch launch;
    std::memcpy(&launch, work.parameters.data() + work.function->launch_offset, sizeof launch);
    SMT_TRY(driver.cuStreamWaitEvent(growth.stream, begun_, 0));
    SMT_TRY(launch_workers(work, growth.stream, launch, workers));
    SMT_TRY(control_.report(growth.stream, &words_->left_grown[i]));
    return driver.cuStreamWriteValue64_v2(growth.stream, address_of(&words_->grown[i]), ++growth.marker, 0);
}

}  // namespace smt::runtime::dispatch
