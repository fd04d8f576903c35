#include "runtime/server/measuring.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "runtime/profiles/journal_times.h"
#include "runtime/settings/read.h"

namespace smt::runtime::server {

namespace {

constexpr int64_t kCountedLaunches = 2;         // per kernel, block shape and grid class
constexpr uint64_t kBetweenCollections = 4096;  // launches; bounds the memory of uncollected records

}  // namespace

std::unique_ptr<Measuring> Measuring::wanted(device::Device& device, const std::string& journal, Note note) {
    using settings::Id;
    const char* text = settings::c_text_of(Id::kProfile);
    if (!text) return nullptr;
    for (const auto& [name, what] : {std::pair{"times", What::kTimes},
                                     {"counters", What::kCounters},
                                     {"sweep", What::kSweep},
                                     {"halves", What::kHalves},
                                     {"pairs", What::kPairs}}) {
        if (std::strcmp(text, name) == 0)
            return std::make_unique<Measuring>(device, what, journal, std::move(note));
    }
    note(fmt::format("{}={}: it is times, counters, sweep, halves or pairs; nothing is measured",
                     settings::variable_of(Id::kProfile), text));
    return nullptr;
}

Measuring::Measuring(device::Device& device, What what, const std::string& journal, Note note)
    : device_(device), what_(what), note_(std::move(note)) {
    if (what_ == What::kTimes) open_times(journal);
}

Measuring::~Measuring() { collect(); }

void Measuring::open_times(const std::string& journal) {
    if (device_.properties().keeps_sessions_apart) {
        times_ = std::make_unique<profiles::JournalTimes>(journal);
        return note_("kernel times: by the simulated device's clock");
    }
    std::string problem;
    times_ = profiler::collect::open_cupti_times(&problem);
    note_(times_ ? "kernel times: by CUPTI"
                 : "kernel times: of managed kernels alone, by their workers. " + problem);
}

// Called at the first launch, because the context is current then.
void Measuring::open_counters() {
    if (std::exchange(opened_, true)) return;
    if (device_.properties().keeps_sessions_apart) return note_("counters: a simulated device has none");
    std::string problem;
    counters_ = profiler::collect::open_cupti_counters(device_.context(), device_.device(), &problem);
    note_(counters_ ? "counters: by CUPTI" : "counters: none. " + problem);
}

void Measuring::describe(const Launch& launch) {
    {
        std::lock_guard lock(mutex_);
        if (!described_
                 .insert(
                     {launch.known.get(), {launch.shape.block, profiler::grid_class(launch.shape.blocks)}})
                 .second)
            return;
    }
    launch.known->takes(launch.shape, launch.resources, launch.managed);
}

Measuring::Around::Around(Measuring* measuring, const Launch& launch)
    : measuring_(measuring), launch_(launch) {
    if (!measuring_) return;
    if (launch_.known) measuring_->describe(launch_);
    if (measuring_->what_ == What::kCounters) {
        turn_ = std::unique_lock(measuring_->turn_);
        measuring_->open_counters();
        if (!launch_.known || !measuring_->counters_ || measuring_->counters_->final()) return;
        if (launch_.known->counted_blocks(launch_.shape) >=
            kCountedLaunches * static_cast<int64_t>(launch_.shape.blocks))
            return;
        counts_ = measuring_->counters_->before();
        if (!counts_) measuring_->note_("counters: " + measuring_->counters_->problem());
    } else if (measuring_->times_ && launch_.known) {
        number_ = measuring_->last_.fetch_add(1) + 1;
        {
            std::lock_guard lock(measuring_->mutex_);
            measuring_->running_.emplace(number_, launch_);
        }
        measuring_->times_->before(number_);
    }
}

Measuring::Around::~Around() {
    if (counts_) count();
    if (!number_) return;
    measuring_->times_->after();
    if (!launched_) {
        std::lock_guard lock(measuring_->mutex_);
        measuring_->running_.erase(number_);
    }
    if (number_ % kBetweenCollections == 0) measuring_->collect();
}

void Measuring::Around::count() {
    const std::optional<profiler::collect::Sample> sample = measuring_->counters_->after();
    const auto blocks = static_cast<int64_t>(launch_.shape.blocks);
    if (sample && launched_) {
        std::map<std::string, double> facts = profiler::collect::facts_of(*sample, blocks);
        facts["counted.ctas_per_sm"] = launch_.ctas_per_sm;
        launch_.known->counted(launch_.shape, profiler::collect::counters_of(*sample, blocks), facts);
    }
    if (!sample)
        measuring_->note_(fmt::format("counters: none of a launch of {}: {}", launch_.known->symbol(),
                                      measuring_->counters_->problem()));
}

void Measuring::collect() {
    if (!times_) return;
    std::lock_guard one(collecting_);
    times_->collect([this](const profiler::collect::KernelTime& time) {
        Launch launch;
        {
            std::lock_guard lock(mutex_);
            auto found = running_.find(time.launch);
            if (found == running_.end()) return;
            launch = std::move(found->second);
            running_.erase(found);
        }
        const profiler::Placement placement{device_.properties().multiprocessors, launch.ctas_per_sm};
        launch.known->ran(launch.shape, placement, launch.shape.blocks, time.ended_ns - time.began_ns,
                          launch.input_bytes);
    });
}

}  // namespace smt::runtime::server
