// What a stream's launches teach, from the mappings that their workers write about where they ran and how
// long they took: how many blocks a ticket should stand for, the saturating CTA count, the times of launches
// alone and of stops. Mappings also go to the journal.
//
// Not thread-safe: guarded by its stream's lock.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "runtime/dispatch/control_block.h"
#include "runtime/dispatch/placement.h"
#include "runtime/dispatch/preemptor.h"
#include "runtime/dispatch/slice_cost.h"
#include "runtime/dispatch/work.h"

namespace smt::runtime::dispatch {

class Dispatcher;
struct Tenant;

class Learner {
public:
    struct Launched {
        uint32_t id = ~0u;  // smt::Launch::id
        uint32_t name = 0;
        ManagedFunction* function = nullptr;
        uint32_t chunk = 1;
        profiles::Shape shape;
        profiler::Placement placement;
        // CTAs that fit on an SM. Not 0: SaturatingCtas tries those in `placement`.
        uint32_t fits = 0;
        uint64_t blocks = 0;  // that it runs
        // Dispatcher::alone() when it began; 0: it ran in part before, and no duration is learnt from it.
        uint64_t alone = 0;
        bool stopped = false;
        bool begun_anew = false;  // blocks of it were ended before their end: nothing is learnt from it
        uint64_t slice_of =
            0;              // in quota mode: of this launch it is a slice, which is watched; 0: it is none
        bool even = false;  // the same number of CTAs on each SM of `placement`
        bool by_itself = false;  // no other stream was at work meanwhile
        // From the mappings read so far:
        uint64_t seen = 0;     // blocks
        uint64_t at_work = 0;  // ns of all workers
        uint64_t workers = 0;  // that ran any block
        uint64_t began = ~0ull, ended = 0;
    };

    Learner(Dispatcher& dispatcher, const Tenant& tenant) : dispatcher_(dispatcher), tenant_(tenant) {}

    uint32_t launches() const { return launches_; }  // begun so far
    // A launch with the driver gets its number, and its entry, which is valid until the next one begins.
    Launched& begin(Work& work);
    Launched& last() { return launched_[(launches_ - 1) % launched_.size()]; }
    // It has ended or was stopped; blocks done `before`.
    void ran(const Work& work, uint64_t before, bool by_itself);
    void begun_anew(const Work& work);           // ahead of ran()
    bool learning() const { return learning_; }  // launches in flight show how long a block takes
    void begin_learning();
    // Before a slice of `work` begins. True: its workers are to write mappings, as it is watched.
    bool watches_slice(const Work& work, const profiler::Placement& placement) const;
    // Reads the mappings written so far. `stop_ns` not 0: duration of the stop that has ended. `goes_on`:
    // launches are unfinished.
    void take(ControlBlock& control, uint64_t stop_ns, bool goes_on);
    // A stop has ended. `lost`: blocks that are begun anew.
    void stopped(const Preemptor::Stop& stop, uint64_t over_ns, uint64_t lost);
    void forget_code();
    Placement& placement() { return placement_; }  // of quota-mode runs, where workers write mappings

private:
    Launched* find(uint32_t launch);  // by its id, or the count that the id is made of; null: forgotten
    void learn(Launched& launched, const std::vector<smt::Mapping>& workers);
    void learn_slice(const Launched& launched);
    void learn_time(const Launched& launched);
    void learn_saturating(const Launched& launched, const std::vector<smt::Mapping>& workers);
    void note_longest(const std::vector<smt::Mapping>& workers, uint64_t took_ns);

    static constexpr uint32_t kLaunchIds = 1u << 30;  // smt::Launch::id

    Dispatcher& dispatcher_;
    const Tenant& tenant_;
    uint32_t launches_ = 0;
    std::array<Launched, 1024> launched_;  // the last ones, for their mappings
    // By id: workers of launches that SaturatingCtas tries, while some mappings are missing.
    std::map<uint32_t, std::vector<smt::Mapping>> told_;
    bool learning_ = false;
    uint32_t partial_reads_ = 0;  // in which mappings of some workers were missing
    LongestTicket longest_;       // that the last stop waited for
    Placement placement_;
    SliceCost slice_cost_;
};

// SMs that the tenant's streams may use.
uint32_t multiprocessors_of(const Tenant& tenant, Dispatcher& dispatcher);

}  // namespace smt::runtime::dispatch
