// One kernel, as all sessions of a server know it: what policies are told, and what was learnt since it was last written down.
//
// Any thread. What is called while a launch is under way takes a lock that nobody holds for long: find(), predict(), ran(), stopped().
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

// A launch, as far as profiles tell launches apart.
struct Shape {
    std::array<uint32_t, 3> block{1, 1, 1};
    uint64_t blocks = 0;   // of the whole grid
};

class KnownKernel {
public:
    KnownKernel(std::string symbol, std::string image, const DeviceFacts& facts)
        : symbol_(std::move(symbol)), image_(std::move(image)), facts_(facts) {}
    KnownKernel(const KnownKernel&) = delete;
    KnownKernel& operator=(const KnownKernel&) = delete;

    const std::string& symbol() const { return symbol_; }
    const std::string& image() const { return image_; }

    // The profile of that block shape and of the nearest class of grids, at most one away. Null: nothing is known.
    std::shared_ptr<const schedule::Profile> find(const Shape& shape) const;
    // ns, alone, of the whole launch; nothing: not known. As find().
    std::optional<double> predict(const Shape& shape) const;

    // What was seen. `blocks` of it ran, alone; of the launch's parameters so many bytes can be reached (0: not known).
    void ran(const Shape& shape, const profiler::Placement& placement, uint64_t blocks, uint64_t ns, uint64_t input_bytes = 0);
    // With so many CTAs beside another kernel's: `blocks` of it in `ns` in which both were at work.
    void ran_beside(const Shape& shape, const profiler::Beside& company, uint64_t blocks, uint64_t ns);
    void stopped(const Shape& shape, uint64_t ns);
    void counted(const Shape& shape, const profiler::models::Counters& counters, const std::map<std::string, double>& facts);
    void takes(const Shape& shape, const profiler::Resources& resources, bool managed);

    // For who measures: samples of it, those in the store included.
    int64_t samples(const Shape& shape, const profiler::Placement& placement) const;
    int64_t windows(const Shape& shape, const profiler::Beside& company) const;
    int64_t counted_blocks(const Shape& shape) const;
    profiler::Key key(const Shape& shape) const;   // of the profile of exactly this class of grids

    // For the book: what the store has now; what it has not yet.
    void know(std::vector<profiler::Profile> profiles);
    std::vector<profiler::Profile> take_news();

private:
    using Row = std::pair<std::array<int64_t, 3>, int64_t>;   // block shape, class of grids
    struct Known {
        std::shared_ptr<const schedule::Profile> profile;
        std::optional<double> block_ns;
        profiler::Profile measured;
    };
    static Row row_of(const Shape& shape);
    const Known* nearest(const Shape& shape) const;   // mutex_ is held
    profiler::Profile& news_of(const Shape& shape);   // likewise
    template <class Of>
    int64_t sum(const Shape& shape, const Of& of) const;   // of(profile), of what is stored and of what is new

    const std::string symbol_, image_;
    const DeviceFacts facts_;
    mutable std::mutex mutex_;
    std::map<Row, Known> known_;
    std::map<Row, profiler::Profile> news_;
};

}  // namespace smt::runtime::profiles
