// What a server measures of the kernels that it runs, when SMT_PROFILE asks for it; `smt profile` starts such servers.
//
//   times      when each launch ran: CUPTI's activity records; on a simulated device the journal says it
//   counters   what the first launches of each kernel, block shape and class of grids did, by the GPU's counters. Kernels run in
//              their own form and one after the other: CUPTI runs each several times, and must not meet one that
//              looks at something the host writes meanwhile
//   sweep      managed launches under quotas of every kind (dispatch/sweep.h)
//   halves     nothing by itself: managed launches keep to half of the CTAs that fit (dispatch/half_ctas.h), so that the programs can be timed
//              two at a time
//   pairs      managed launches of two programs side by side, with each full combination of CTAs (dispatch/pairing.h)
//
// What cannot be measured here is said once, in the journal, and left out. Results go to the kernels of the book (profiles/profile_cache.h).
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

    // SMT_PROFILE. Null: nothing is asked for, or nothing that is known, which a note says.
    static std::unique_ptr<Measuring> wanted(device::Device& device, const std::string& journal, Note note);

    Measuring(device::Device& device, What what, const std::string& journal, Note note);
    ~Measuring();   // what has ended is told; the journal is still there
    Measuring(const Measuring&) = delete;
    Measuring& operator=(const Measuring&) = delete;

    What what() const { return what_; }

    struct Launch {
        std::shared_ptr<profiles::KnownKernel> known;
        profiles::Shape shape;
        profiler::Resources resources;   // of the managed form, if there is one
        bool managed = false;            // there is
        int ctas_per_sm = 0;             // that fit, of the form that runs
        uint64_t input_bytes = 0;
    };
    // Around a launch, on the thread that makes it, whether or not it succeeds.
    class Around {
    public:
        Around(Measuring* measuring, const Launch& launch);   // null: does nothing
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

    void collect();   // what has ended

private:
    void open_times(const std::string& journal);
    void open_counters();
    void describe(const Launch& launch);

    device::Device& device_;
    const What what_;
    const Note note_;
    std::unique_ptr<profiler::collect::Times> times_;
    std::unique_ptr<profiler::collect::LaunchCounters> counters_;
    std::mutex turn_;              // of who launches, while somebody may count
    bool opened_ = false;          // turn_: counters were asked for
    std::atomic<uint64_t> last_{0};

    std::mutex collecting_;
    std::mutex mutex_;             // the rest
    std::unordered_map<uint64_t, Launch> running_;   // by number
    std::set<std::pair<const profiles::KnownKernel*, std::pair<std::array<uint32_t, 3>, int>>> described_;
};

}  // namespace smt::runtime::server
