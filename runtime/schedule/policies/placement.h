// The bin packing of compact.cpp, which documents the rules: which kernel has how many CTAs on which SM.
//
// Adjacent SMs with the same CTAs of every kernel form a zone, and decisions are per zone: sixteen kernels on
// 132 SMs have some twenty zones. A zone is split where a kernel's CTAs end inside it. Adjacent zones that
// become equal because a kernel leaves are merged. Not thread-safe.
#pragma once

#include <vector>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/lookup.h"
#include "runtime/schedule/policies/idle_grace.h"

namespace smt::runtime::schedule {

struct Placed {
    const Kernel* kernel = nullptr;  // in this snapshot; null: idle
    uint64_t id = 0;
    bool was_here = false;
    TimePoint gone{};  // start of the idle time
    std::shared_ptr<const Profile> profile;
    Resources cta;               // as in the kernel
    std::vector<uint32_t> runs;  // the table, run-length encoded: CTAs on each of so many SMs
    static constexpr uint32_t run_of(uint32_t ctas, uint32_t sms) { return ctas << 24 | sms; }
    static constexpr uint32_t ctas_of(uint32_t run) { return run >> 24; }
    static constexpr uint32_t sms_of(uint32_t run) { return run & 0xffffff; }
    bool said = false;    // the table was published; set by the caller, reset on a change
    int sms = 0;          // on which it has any CTA
    int total = 0;        // CTAs on all SMs
    bool placed = false;  // the packing has run with this row
    static constexpr int kNotMeasured = -1;
    int fits = kNotMeasured;  // the kernel's ctas_per_sm for which these two were computed:
    Resources each;           // resources of a CTA
    int most = 1;             // CTAs on an SM
    static constexpr size_t kNone = SIZE_MAX;
    size_t column = kNone;  // of has_; kNone: it keeps no place
    int kept = 0;           // CTAs that keep their place
    bool moved = false;     // the table has changed
    bool grown = false;     // it has spare room, which is given back at the next placement
};

class Placement {
public:
    explicit Placement(Duration idle_grace) : idle_grace_(idle_grace) {}

    // Passes a snapshot's kernels: begin(), note() once for each kernel, end(). end() returns whether any
    // kernel came, went or was replaced. An idle kernel keeps its place for the idle grace period
    // (idle_grace.h), unless a kernel has no place; then the idle one is forgotten at once.
    void begin();
    const Placed& note(const Kernel& kernel);
    bool end(TimePoint now);
    // Time until the next idle kernel is forgotten if no event occurs; nothing: no kernel is idle.
    std::optional<Duration> forgets_after(TimePoint now) const;

    // Places the kernels without a place, `first` before the others. These keep theirs, except spare room, or
    // are placed anew, too.
    void place(const Device& device, uint64_t first, bool anew);

    std::vector<Placed>& rows() { return rows_; }  // by arrival
    static Quota table(const Placed& row);         // CTAs by SM

private:
    struct Zone {
        int sms;
        Resources free;
        bool used = false;
        bool full = false;  // no CTA of any kernel fits
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
    void split(size_t zone, int first);  // into the first so many SMs and the rest
    void put(Placed& row, size_t zone, int ctas);
    void place_known(Placed& row);
    void place_part(Placed& row);
    void share_rest(uint64_t first);
    void grow(const Device& device);
    void note_runs(Placed& row);
    uint8_t& has(size_t zone, const Placed& row) { return has_[zone * columns_ + row.column]; }

    std::vector<Placed> rows_;
    IdleGrace<uint64_t> idle_grace_;  // by stream
    bool changed_ = false;
    size_t next_ = 0;  // behind the row that was noted last
    Resources limits_;
    Resources smallest_;    // minimum of each resource over all CTAs
    bool resized_ = false;  // the SM, or the CTA of a placed kernel, has changed
    size_t sms_ = 0;        // covered by the zones
    std::vector<Zone> zones_;
    size_t columns_ = 0;
    std::vector<uint8_t> has_;  // CTAs on each SM, by zone, then by column
    size_t open_ = 0;           // zones that are not full
    // The state before the spare room was given out; the next placement starts from it.
    struct Kept {
        std::vector<Zone> zones;
        std::vector<uint8_t> has;
    } kept_;
    int reserved_ = 0;                               // SMs kept free for kernels without a footprint
    int opened_ = 0;                                 // SMs in use
    std::vector<std::pair<double, Placed*>> order_;  // of growing
    std::vector<uint8_t> stays_;                     // by column: a kernel keeps a place in it
    std::vector<size_t> left_;                       // columns in which no kernel does
};

}  // namespace smt::runtime::schedule
