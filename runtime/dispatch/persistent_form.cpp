#include "runtime/dispatch/persistent_form.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "profiler/models/preemption.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

namespace {

// Limit of a stream's ticket count. A launch has at most kMostBlocks tickets, and the word's high half is
// used otherwise. Beyond the limit the count begins again.
constexpr uint32_t kMostTickets = (1u << 31) - kMostBlocks - (1u << 20);
// Minimum number of tickets per worker, so that the end of a launch is not ragged.
constexpr uint64_t kTicketsEach = 16;
constexpr uint64_t kLongTicketsEach = 64;
constexpr uint32_t kWaves = 4;
constexpr uint64_t kWorthALook = 50'000;  // ns of a ticket, a hundred times what a look costs
// After so many stops in a row that ended blocks of a launch and left none over, the next one waits for
// their end: a launch that is stopped again and again comes to its end, too.
constexpr uint32_t kMostBegunAnew = 8;
// After so many quota-mode runs in which no worker found a place, quotas are ignored.
constexpr uint32_t kMostFruitless = 2;

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

CUresult fitting(const DriverApi& driver, const Work& work, uint32_t* ctas) {
    *ctas = work.function->fitting(work.threads(), work.shared_bytes);
    if (*ctas) return CUDA_SUCCESS;
    int fits = 0;
    CUresult status = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
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

PersistentForm::PersistentForm(const Parts& parts)
    : LaunchForm(parts), control_(parts.dispatcher.supplies().control_memory()) {}

PersistentForm::~PersistentForm() {
    const DriverApi& driver = parts_.dispatcher.driver();
    for (const Growth& each : growths_) {
        if (each.stream) driver.cuStreamDestroy_v2(each.stream);
    }
    if (begun_) driver.cuEventDestroy_v2(begun_);
}

CUstream PersistentForm::control_stream() const { return parts_.dispatcher.supplies().control(); }

bool PersistentForm::tickets_used_up() const { return next_ticket_ >= kMostTickets; }

// ---- What a launch is

// Describes a launch of the next `blocks` (0: all that are left), with tickets from 0.
void PersistentForm::describe(Work& work, uint64_t blocks, bool passes_through, smt::Launch* launch,
                              uint32_t* workers) {
    const uint32_t fits = work.fits;
    const uint32_t multiprocessors = multiprocessors_of(parts_.tenant, parts_.dispatcher);
    const SaturatingCtas::Try ctas = passes_through ? ctas_for(work, fits) : SaturatingCtas::Try{fits, false};
    const uint64_t places = uint64_t{fits} * multiprocessors,
                   capacity = uint64_t{ctas.ctas} * multiprocessors;
    work.covered = static_cast<uint32_t>(std::min({work.left(), kMostBlocks, blocks ? blocks : kMostBlocks}));
    const bool never = work.function->reuse == Reuse::kNever;
    const uint32_t chunk = never ? 1 : ticket_blocks(work, work.covered / capacity);
    work.tickets = {0, (work.covered + chunk - 1) / chunk, chunk};
    const bool single = never || work.tickets.count <= places;
    *workers = static_cast<uint32_t>(single ? work.tickets.count : capacity);
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
    if (learns) parts_.learner.begin_learning();
    // All have begun at once, where the hardware puts them.
    const bool placed = chunk == 1 && work.tickets.count <= places;
    launch->flags = (single ? smt::kSingle : 0u) | (placed ? smt::kPlaced : 0u) |
                    (parts_.dispatcher.maps() || learns ? smt::kMapped : 0u);
    Learner::Launched& launched = parts_.learner.begin(work);
    launched.placement = {multiprocessors, ctas.ctas};
    launched.fits = ctas.asks && !single ? fits : 0;
    launched.alone = parts_.dispatcher.alone();
    launch->id = launched.id;
    launch->chunk = chunk;
    launch->tickets = work.tickets.count;
}

// Blocks per ticket. One, while the block time is not known. `each`: blocks per worker. The last tickets do
// not all end at once.
uint32_t PersistentForm::ticket_blocks(const Work& work, uint64_t each) const {
    const uint64_t block_ns = each < 2 * kTicketsEach ? 0 : expected_block_ns(work);
    if (block_ns == 0) return 1;
    const bool preemptible = parts_.tenant.preemptible.load(std::memory_order_relaxed);
    const uint32_t blocks = preemptible ? profiler::models::preemptible_ticket_blocks(block_ns)
                                        : profiler::models::ticket_blocks(block_ns);
    const uint32_t twice = profiler::models::long_ticket_blocks(block_ns);
    if (!preemptible && each >= uint64_t{twice} * kLongTicketsEach) return twice;
    return static_cast<uint32_t>(std::clamp<uint64_t>(each / kTicketsEach, 1, blocks));
}

// Times alone are of the whole device, even if the tenant has a part of it.
uint64_t PersistentForm::expected_block_ns(const Work& work) const {
    return work.function->expected_block_ns(
        work.shape(),
        uint64_t{work.fits} * static_cast<uint32_t>(parts_.dispatcher.device().properties().multiprocessors));
}

// In pass-through mode; quota-mode runs have CTAs of their own. Until it is known how many blocks a ticket
// should stand for, throughput is no measure.
SaturatingCtas::Try PersistentForm::ctas_for(const Work& work, uint32_t fits) const {
    const bool known = work.function->reuse != Reuse::kNever && work.function->block_ns.load() != 0;
    const bool quick =
        parts_.tenant.preemptible.load(std::memory_order_relaxed) && parts_.dispatcher.policy().short_stops;
    if (!known || !quick || parts_.tenant.trial.sets_quotas()) return {fits, false};
    return work.function->enough.next(fits);
}

CUresult PersistentForm::launch_workers(Work& work, CUstream stream, const smt::Launch& launch,
                                        uint32_t workers) {
    work.parameters.resize(work.function->launch_offset + sizeof launch);
    std::memcpy(work.parameters.data() + work.function->launch_offset, &launch, sizeof launch);
    size_t bytes = work.parameters.size();
    void* whole[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, work.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    parts_.dispatcher.device().announce(work.entry);
    used_ = true;
    const device::LaunchesOf watched(launch_of(work));
    return parts_.dispatcher.driver().cuLaunchKernel(work.function->function, workers, 1, 1, work.block[0],
                                                     work.block[1], work.block[2], work.shared_bytes, stream,
                                                     nullptr, whole);
}

// ---- Pass-through mode

CUresult PersistentForm::prepare(const Work&, bool idle, bool* anew) {
    *anew = idle && tickets_used_up();
    if (!*anew) return CUDA_SUCCESS;
    next_ticket_ = 0;
    return control_.reset(parts_.detour.where());
}

CUresult PersistentForm::launch(Work& work) {
    smt::Launch launch;
    uint32_t workers = 0;
    describe(work, 0, true, &launch, &workers);
    if (work.done > 0) parts_.learner.last().alone = 0;
    work.tickets.first = launch.start = next_ticket_;
    const CUresult status = parts_.detour.launch(work.function->function, true, [&](CUstream where) {
        return launch_workers(work, where, launch, workers);
    });
    if (status != CUDA_SUCCESS) return status;
    next_ticket_ += work.tickets.count + (launch.flags & smt::kSingle ? 0 : workers);
    return CUDA_SUCCESS;
}

// Chimera (Park et al., ASPLOS 2015) flushes a block where its end would be waited for too long. How far a
// block is is not known here, so the time of a whole one counts, or that of stops that waited for the blocks'
// end.
bool PersistentForm::ends_blocks(const Work& work) const {
    if (!work.function->checked || !work.repeats || work.begun_anew >= kMostBegunAnew) return false;
    const uint64_t waited = work.function->waited_ns.load(std::memory_order_relaxed);
    return parts_.tenant.trial.stress ||
           std::max(waited, expected_block_ns(work)) >= profiler::models::kLongBlockNs;
}

CUresult PersistentForm::report(const Work&, const Work&) {
    return control_.report(parts_.detour.where(), &parts_.markers.words().left);
}

// How many tickets were run, once the workers have left. The latest of the reports counts: tickets and
// refusals only grow.
CUresult PersistentForm::collect(const Work&) {
    const StreamWords& words = parts_.markers.words();
    uint32_t taken = words.left.taken, refused = words.left.refused;
    bool up_to_date = control_.up_to_date(words.left);
    for (const ControlBlock::State& each : words.left_grown) {
        taken = std::max(taken, each.taken), refused = std::max(refused, each.refused);
        up_to_date |= control_.up_to_date(each);
    }
    if (!up_to_date) SMT_TRY(parts_.dispatcher.driver().cuStreamSynchronize(control_stream()));
    uint32_t abandoned = 0;
    SMT_TRY(control_.read_abandoned(control_stream(), &abandoned));
    taken_ = taken - refused;
    run_ = std::min(taken_, abandoned);
    return CUDA_SUCCESS;
}

void PersistentForm::settle(Work& work) {
    const uint64_t over = work.over_at(run_), lost = work.over_at(taken_) - over;
    if (lost) parts_.learner.begun_anew(work);
    work.begun_anew = over ? 0 : work.begun_anew + (lost != 0);
    lost_ += lost;
    work.settle(run_);
}

CUresult PersistentForm::rest(bool* anew) {
    StreamWords& words = parts_.markers.words();
    next_ticket_ = 0;
    words.left = {};
    for (ControlBlock::State& each : words.left_grown) each = {};
    *anew = std::exchange(used_, false);
    return *anew ? control_.reset(parts_.detour.where()) : CUDA_SUCCESS;
}

// ---- Quota mode

CUresult PersistentForm::prepare_run(const Work& work, const QuotaTable& quotas, bool* anew) {
    // A launch that found no place twice runs anywhere: its own places may be taken by work that cannot be
    // stopped.
    const bool anywhere = fruitless_ >= kMostFruitless && work.number == fruitless_of_;
    quotas_ = anywhere ? QuotaTable(quotas.size(), smt::kNoQuota) : quotas;
    if (!begun_) SMT_TRY(parts_.dispatcher.driver().cuEventCreate(&begun_, CU_EVENT_DISABLE_TIMING));
    *anew = true;
    SMT_TRY(parts_.detour.go_home());
    return control_.set_quotas(parts_.stream, quotas_);
}

CUresult PersistentForm::run(Work& work, uint64_t blocks) {
    smt::Launch launch;
    uint32_t workers = 0;
    describe(work, blocks, false, &launch, &workers);
    const uint32_t capacity = work.fits * multiprocessors_of(parts_.tenant, parts_.dispatcher);
    const profiler::Placement placement = placement_of(quotas_, work.fits);
    const bool watched = blocks != 0 && parts_.learner.watches_slice(work, placement);
    launch.flags = (launch.flags & ~smt::kPlaced) | smt::kHeld |
                   (parts_.tenant.trial.sweeps() || watched ? smt::kMapped : 0u);
    if (watched) parts_.learner.begin_learning();
    // One ticket per worker serves the count of tickets between launches in pass-through mode. Here it would
    // leave places empty.
    if (work.function->reuse != Reuse::kNever) launch.flags &= ~smt::kSingle;
    if (expected_block_ns(work) * work.tickets.chunk >= kWorthALook) launch.flags |= smt::kLooks;
    // Workers that find no place leave at once, and each loses a ticket that it could have taken, so more
    // than a few waves of them would be wasted. What is left over runs next time. Fewer workers than fill the
    // device might all arrive where there is no place, and again the next time.
    workers = std::clamp<uint32_t>(workers, capacity, kWaves * capacity);
    SMT_TRY(parts_.dispatcher.driver().cuEventRecord(begun_, parts_.stream));
    SMT_TRY(launch_workers(work, parts_.stream, launch, workers));
    SMT_TRY(report(work, work));
    Learner::Launched& launched = parts_.learner.last();
    launched.placement = placement;
    launched.even = std::ranges::all_of(
        quotas_, [&](uint8_t each) { return each == 0 || each == placement.ctas_per_sm; });
    launched.slice_of = watched ? work.number + 1 : 0;  // 0 is no launch's
    if (parts_.dispatcher.maps()) parts_.learner.placement().begin(launch.id, quotas_);
    return CUDA_SUCCESS;
}

void PersistentForm::settle_run(Work& work, bool halted) {
    if (std::exchange(fruitless_of_, work.number) != work.number) fruitless_ = 0;
    fruitless_ = run_ == 0 && !halted ? fruitless_ + 1 : 0;
    settle(work);
}

CUresult PersistentForm::change(const QuotaTable& quotas) {
    parts_.learner.placement().change();
    return control_.change_quotas(control_stream(), quotas);
}

bool PersistentForm::has_grown(size_t i) const {
    return parts_.markers.words().grown[i].load(std::memory_order_acquire) >= growths_[i].marker;
}

bool PersistentForm::has_grown() const {
    for (size_t i = 0; i < growths_.size(); ++i) {
        if (!has_grown(i)) return false;
    }
    return true;
}

// A growth stream is busy as long as one of its workers is at work, which may be as long as the launch.
CUresult PersistentForm::send(Work& work, uint32_t workers) {
    Dispatcher& dispatcher = parts_.dispatcher;
    StreamWords& words = parts_.markers.words();
    size_t i = 0;
    while (i < growths_.size() && !has_grown(i)) ++i;
    if (i == growths_.size()) i = ++crowded_ % growths_.size();  // behind the workers already there
    Growth& growth = growths_[i];
    if (!growth.stream) {
        const int priority = dispatcher.supplies().stream_priority(parts_.tenant, 0);
        SMT_TRY(dispatcher.supplies().sm_sets().make_stream(parts_.tenant.places.get(), priority,
                                                            &growth.stream));
        dispatcher.device().made_for(parts_.tenant.session, growth.stream);
    }
    smt::Launch launch;
    std::memcpy(&launch, work.parameters.data() + work.function->launch_offset, sizeof launch);
    SMT_TRY(dispatcher.driver().cuStreamWaitEvent(growth.stream, begun_, 0));
    SMT_TRY(launch_workers(work, growth.stream, launch, workers));
    SMT_TRY(control_.report(growth.stream, &words.left_grown[i]));
    return parts_.markers.write(growth.stream, &words.grown[i], ++growth.marker);
}

}  // namespace smt::runtime::dispatch
