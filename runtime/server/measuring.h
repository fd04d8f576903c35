// Measurements of kernels while the server runs them, selected by SMT_PROFILE. `smt profile` starts such
// servers.
//
//   times      start and end of each launch: CUPTI's activity records; on a simulated device the journal
//   counters   the GPU's counters for the first launches of each kernel, block shape and grid class. Kernels
//              run in their original form and one at a time: CUPTI replays each several times, so a kernel
//              must not poll memory that the host writes meanwhile
//   sweep      managed launches under quotas of every kind (dispatch/experiments.h)
//   halves     no measurement here: managed launches are limited to half of the CTAs that fit
//              (dispatch/experiments.h), so that programs can be timed in pairs
//   pairs      managed launches of two programs side by side, with each full combination of CTAs
//              (dispatch/pairing.h)
//
// A measurement that is impossible on this machine is reported once, in the journal, and left out. Results go
// to the kernels of the profile cache (profiles/profile_cache.h). Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "profiler/collect/counters.h"
#include "profiler/collect/times.h"
#include "runtime/device/device.h"
#include "runtime/profiles/known_kernel.h"

namespace smt::runtime::server {

class Measuring {
public:
    enum class What { kTimes, kCounters, kSweep, kHalves, kPairs };
    using Note = std::function<void(const std::string& line)>;

    // By SMT_PROFILE. Null: it is unset, or its value is unknown, which is noted.
    static std::unique_ptr<Measuring> wanted(device::Device& device, const std::string& journal, Note note);

    Measuring(device::Device& device, What what, const std::string& journal, Note note);
    ~Measuring();  // collects; the journal must still exist
    Measuring(const Measuring&) = delete;
    Measuring& operator=(const Measuring&) = delete;

    What what() const { return what_; }

    struct Launch {
        std::shared_ptr<profiles::KnownKernel> known;
        profiles::Shape shape;
        profiler::Resources resources;  // of the managed form if it exists
        bool managed = false;           // the managed form exists
        int ctas_per_sm = 0;            // occupancy of the form that runs
        uint64_t input_bytes = 0;
    };
    // Its lifetime encloses a launch, on the launching thread, whether or not the launch succeeds.
    class Around {
    public:
        Around(Measuring* measuring, const Launch& launch);  // null: no effect
        ~Around();
        Around(const Around&) = delete;
        Around& operator=(const Around&) = delete;
        uint64_t number() const { return number_; }
        void launched() { launched_ = true; }

    private:
        void count();

        Measuring* const measuring_;
        const Launch launch_;
        uint64_t number_ = 0;
        std::unique_lock<std::mutex> turn_;
        bool counts_ = false;
        bool launched_ = false;
    };

    void collect();  // reports the launches that have ended

private:
    void open_times(const std::string& journal);
    void open_counters();
    void describe(const Launch& launch);

    device::Device& device_;
    const What what_;
    const Note note_;
    std::unique_ptr<profiler::collect::Times> times_;
    std::unique_ptr<profiler::collect::LaunchCounters> counters_;
    std::mutex turn_;                // kCounters: serialises launches
    bool opened_ = false;            // guarded by turn_: open_counters() was called
    std::atomic<uint64_t> last_{0};  // the last launch number

    std::mutex collecting_;                         // one collect() at a time; taken before mutex_
    std::mutex mutex_;                              // guards the members below
    std::unordered_map<uint64_t, Launch> running_;  // by number
    std::set<std::pair<const profiles::KnownKernel*, std::pair<std::array<uint32_t, 3>, int>>> described_;
};

}  // namespace smt::runtime::server
