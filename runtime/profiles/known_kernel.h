// One kernel, shared by all sessions of a server: its profiles for the policies, and new measurements that
// are not yet in the store.
//
// Thread-safe. find(), predict(), ran() and stopped() are called while a launch is under way; the lock that
// they take is never held for long.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profiler/store/profile.h"
#include "runtime/profiles/device_facts.h"
#include "runtime/schedule/profile.h"

namespace smt::runtime::profiles {

// The properties that distinguish launches in profiles.
struct Shape {
    std::array<uint32_t, 3> block{1, 1, 1};
    uint64_t blocks = 0;  // of the whole grid
};

class KnownKernel {
public:
    KnownKernel(std::string symbol, std::string image, const DeviceFacts& facts)
        : symbol_(std::move(symbol)), image_(std::move(image)), facts_(facts) {}
    KnownKernel(const KnownKernel&) = delete;
    KnownKernel& operator=(const KnownKernel&) = delete;

    const std::string& symbol() const { return symbol_; }
    const std::string& image() const { return image_; }

    // The profile of this block shape and the nearest class of grids, at most one away. Null: none is known.
    std::shared_ptr<const schedule::Profile> find(const Shape& shape) const;
    // The same for a policy that explores: where none is known, one that has no more than its identity.
    std::shared_ptr<const schedule::Profile> find_or_begin(const Shape& shape);
    // Predicted ns of the whole launch, alone; nothing: not known. Uses the same profile as find().
    std::optional<double> predict(const Shape& shape) const;

    // These record a measurement. ran(): `blocks` blocks ran in `ns`, alone; `input_bytes` bytes are
    // reachable from the launch's parameters (0: not known).
    void ran(const Shape& shape, const profiler::Placement& placement, uint64_t blocks, uint64_t ns,
             uint64_t input_bytes = 0);
    // ran_beside(): with `company`'s CTAs beside another kernel, `blocks` blocks ran in the `ns` in which
    // both ran.
    void ran_beside(const Shape& shape, const profiler::Beside& company, uint64_t blocks, uint64_t ns);
    // learnt(), learnt_beside(): the same, by a launch or window that a policy tried. What was measured
    // counts first. Policies see it at once.
    void learnt(const Shape& shape, const profiler::Placement& placement, uint64_t blocks, uint64_t ns);
    void learnt_beside(const Shape& shape, const profiler::Beside& company, uint64_t blocks, uint64_t ns);
    void stopped(const Shape& shape, uint64_t ns);
    void sliced(const Shape& shape, uint64_t ns);  // a slice took so much beyond its part of the launch
    void counted(const Shape& shape, const profiler::models::Counters& counters,
                 const std::map<std::string, double>& facts);
    void takes(const Shape& shape, const profiler::Resources& resources, bool managed);

    // For measuring code: the number of samples, including those in the store.
    int64_t samples(const Shape& shape, const profiler::Placement& placement) const;
    int64_t windows(const Shape& shape, const profiler::Beside& company) const;
    // Also those that were learnt.
    bool has_time(const Shape& shape, const profiler::Placement& placement) const;
    bool has_rate(const Shape& shape, const profiler::Beside& company) const;
    int64_t counted_blocks(const Shape& shape) const;
    int64_t slices(const Shape& shape) const;
    profiler::Key key(const Shape& shape) const;  // of the profile of exactly this class of grids

    // For the profile cache: know() replaces the stored profiles, take_news() takes the unstored
    // measurements.
    void know(std::vector<profiler::Profile> profiles);
    std::vector<profiler::Profile> take_news();

private:
    using Row = std::pair<std::array<int64_t, 3>, int64_t>;  // block shape, class of grids
    struct Known {
        std::shared_ptr<const schedule::Profile> profile;
        std::optional<double> block_ns;
        profiler::Profile measured;  // as it is in the store
        bool learnt = false;         // some of it while programs ran
    };
    static Row row_of(const Shape& shape);
    const Known* nearest(const Shape& shape) const;  // requires mutex_, as those below
    void publish(const Row& row);                    // what is new, for policies
    profiler::Profile& news_of(const Shape& shape);
    template <class Of>
    int64_t sum(const Shape& shape, const Of& of) const;  // of(profile), over stored and new measurements

    const std::string symbol_, image_;
    const DeviceFacts facts_;
    mutable std::mutex mutex_;
    std::map<Row, Known> known_;
    std::map<Row, profiler::Profile> news_;
    std::map<Row, std::shared_ptr<const schedule::Profile>> begun_;  // rows of which nothing is known
};

}  // namespace smt::runtime::profiles
