// Which kernel has how many CTAs on which SM: the bin packing of compact.cpp, which says by what rules.
//
// SMs next to each other on which everybody has the same are one zone, and what is decided is decided for a zone: sixteen
// kernels on 132 SMs have some twenty of them. A zone is split where a kernel's CTAs end in its middle; zones that have become
// alike because somebody left are one again.
#pragma once

#include <vector>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/policies/idle_grace.h"
#include "runtime/schedule/policies/lookup.h"

namespace smt::runtime::schedule {

struct Placed {
    const Kernel* kernel = nullptr;  // of this snapshot; null: it has nothing to do just now
    uint64_t id = 0;
    bool was_here = false;
    TimePoint gone{};                // since then
    std::shared_ptr<const Profile> profile;
    Resources cta;   // as the kernel says it
    std::vector<uint32_t> runs;   // what it has: so many CTAs on each of so many SMs, one run behind the other
    static constexpr uint32_t run_of(uint32_t ctas, uint32_t sms) { return ctas << 24 | sms; }
    static constexpr uint32_t ctas_of(uint32_t run) { return run >> 24; }
    static constexpr uint32_t sms_of(uint32_t run) { return run & 0xffffff; }
    bool said = false;      // to be set by who says what it has; false again when that is something else
    int sms = 0;     // on which it has any
    int total = 0;   // CTAs
    bool placed = false;   // it has been looked for room
    static constexpr int kNotMeasured = -1;
    int fits = kNotMeasured;   // on an SM, as the kernel says it when these were reckoned:
    Resources each;            // of a CTA
    int most = 1;              // CTAs on an SM
    static constexpr size_t kNone = SIZE_MAX;
    size_t column = kNone;     // in which it stands; kNone: it keeps no place
    int kept = 0;              // CTAs of the place that it keeps
    bool moved = false;        // it has something else than that
    bool grown = false;        // and room that nobody wanted
};

class Placement {
public:
    explicit Placement(Duration idle_grace) : idle_grace_(idle_grace) {}

    // A snapshot's kernels: begin, each of them once, end. end() says whether any came, went or is another
    // one than before. One that is not there keeps its place for a gap (idle_grace.h), unless somebody has none; then it is forgotten.
    void begin();
    const Placed& note(const Kernel& kernel);
    bool end(TimePoint now);
    // When the next one is forgotten, if nothing else happens; nothing: all are there.
    std::optional<Duration> forgets_after(TimePoint now) const;

    // Everybody is placed anew, this one first.
    void replace(const Device& device, uint64_t first);
    // Who has a place keeps it, but for the room that nobody wanted.
    void place(const Device& device, uint64_t first);

    std::vector<Placed>& rows() { return rows_; }  // by arrival
    // By SM; good until the next call.
    const Quota& table(const Placed& row);

private:
    struct Zone {
        int sms;
        Resources free;
        bool used = false;
        bool full = false;   // for everybody
    };
    void measure(const Resources& limits);
    void reserve(int sms);
    void forget_places();
    void place_all(size_t sms, uint64_t first);
    bool leaves_too_little() const;
    void begin_zones(size_t sms);
    void assign_columns();
    void widen();
    void take_kept(size_t zone);
    void keep();
    void split(size_t zone, int first);   // the first so many SMs of it, and the others
    void put(Placed& row, size_t zone, int ctas);
    void place_known(Placed& row);
    void place_part(Placed& row);
    void share_rest(uint64_t first);
    void grow(const Device& device);
    void note_runs(Placed& row);
    uint8_t& has(size_t zone, const Placed& row) { return has_[zone * columns_ + row.column]; }

    std::vector<Placed> rows_;
    IdleGrace<uint64_t> idle_grace_;       // by stream
    bool changed_ = false;
    size_t next_ = 0;           // behind the row that was noted last
    Resources limits_;
    Resources smallest_;        // of each kind, that any CTA takes
    bool resized_ = false;      // a multiprocessor, or somebody's CTA, is not what it was
    size_t sms_ = 0;            // that the zones are of
    std::vector<Zone> zones_;
    size_t columns_ = 0;
    std::vector<uint8_t> has_;  // CTAs on each SM, by zone, and in it by column
    size_t open_ = 0;           // zones that are not full
    // What everybody keeps, the next time: as it was before the room was given out that nobody wanted.
    struct Kept {
        std::vector<Zone> zones;
        std::vector<uint8_t> has;
    } kept_;
    int reserved_ = 0;          // SMs that are left to those without a footprint
    int opened_ = 0;            // that were free, and are used
    std::vector<std::pair<double, Placed*>> order_;  // of growing
    std::vector<uint8_t> stays_;                     // by column: somebody keeps a place in it
    std::vector<size_t> left_;                       // columns in which nobody does
    std::vector<uint32_t> runs_;
    Quota table_;
};

}  // namespace smt::runtime::schedule
