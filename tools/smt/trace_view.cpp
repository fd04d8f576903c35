// See trace_view.h.
#include "tools/smt/trace_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tools/smt/json.h"
#include "tools/smt/log_view.h"
#include "tools/smt/usage.h"

namespace smt::tools {

using runtime::journal::Entry;
using runtime::journal::Kind;
using runtime::journal::Reader;

namespace {

// Groups of tracks, as processes, in this order from the top.
enum Group : int { kMultiprocessors = 1, kTenants = 2, kDecisions = 3, kServer = 4 };
constexpr const char* kGroupNames[] = {"", "multiprocessors", "tenants", "decisions", "server"};
constexpr int kOfTrack = 10'000;       // thread numbers of a track and of those that take its overlaps
constexpr int kOfGroup = 100'000'000;  // and of a group: some viewers want them to differ across processes

class Trace {
public:
    Trace(const Reader& journal, uint64_t last_ns, const std::function<void(std::string_view)>& write)
        : journal_(journal), write_(write) {
        journal.read(0, [&](const Entry& entry) { entries_.push_back(entry); });
        virtual_ = std::any_of(entries_.begin(), entries_.end(),
                               [](const Entry& entry) { return entry.virtual_time; });
        left_out_ = std::erase_if(entries_,
                                  [&](const Entry& entry) { return (entry.virtual_time != 0) != virtual_; });
        find_tenants();
        shift_ = timer_shift(entries_);
        keep_last(last_ns);
        // Whatever is laid on a track comes in the order in which it began.
        std::stable_sort(entries_.begin(), entries_.end(),
                         [&](const Entry& a, const Entry& b) { return span(a).start < span(b).start; });
    }

    uint64_t write() {
        write_(fmt::format(R"({{"displayTimeUnit":"ns","otherData":{{"clock":"{}","origin_ns":{},)"
                           R"("entries_of_another_clock":{}}},)"
                           "\n\"traceEvents\":[\n",
                           virtual_ ? "virtual" : "monotonic", origin_, left_out_));
        for (const Entry& entry : entries_) show(entry);
        name_tracks();
        write_("\n]}\n");
        return events_;
    }

private:
    void find_tenants() {
        for (const Entry& entry : entries_) {
            const bool named = entry.kind == Kind::kSessionOpened || entry.kind == Kind::kSessionClosed ||
                               entry.kind == Kind::kDecision || entry.kind == Kind::kMapping ||
                               entry.kind == Kind::kStopped;
            if (named) tenants_[entry.session] = text(entry.name);
        }
    }

    void keep_last(uint64_t last_ns) {
        uint64_t newest = 0;
        for (const Entry& entry : entries_) newest = std::max(newest, span(entry).end);
        std::erase_if(entries_, [&](const Entry& entry) { return newest - span(entry).end > last_ns; });
        origin_ = std::numeric_limits<uint64_t>::max();
        for (const Entry& entry : entries_) origin_ = std::min({origin_, span(entry).start, entry.time_ns});
        if (entries_.empty()) origin_ = 0;
    }

    // Where an entry stands on the journal's clock: a moment, if its start is its end.
    Span span(const Entry& entry) const {
        if ((entry.kind == Kind::kMapping || entry.kind == Kind::kLaunch) && timed(entry))
            return ran(entry, shift_);
        // How long a stop took is real time, which does not go with a virtual clock.
        if (entry.kind == Kind::kStopped && !virtual_)
            return {entry.time_ns - std::min(entry.value, entry.time_ns), entry.time_ns};
        return {entry.time_ns, entry.time_ns};
    }

    void show(const Entry& entry) {
        const std::string whose = tenant(entry.session);
        switch (entry.kind) {
            case Kind::kLaunch:
                return show_launch(entry, whose);
            case Kind::kMapping:
                return show_mapping(entry, whose);
            case Kind::kDecision:
                return event(kDecisions, track(kDecisions, "decisions"), span(entry), text(entry.text),
                             fmt::format(R"("tenant":{},"session":{})", json_string(whose), entry.session));
            case Kind::kStopped:
                return event(kDecisions, track(kDecisions, "stops"), span(entry),
                             fmt::format("{}: {} stops", whose, kernel(entry.text)),
                             fmt::format(R"("tenant":{},"session":{},"stop_ns":{})", json_string(whose),
                                         entry.session, entry.value));
            case Kind::kIntoGraph:
                return event(kServer, track(kServer, "notes"), span(entry),
                             fmt::format("{} becomes part of a graph", kernel(entry.name)),
                             fmt::format(R"("tenant":{},"session":{})", json_string(whose), entry.session));
            case Kind::kSessionOpened:
            case Kind::kSessionClosed:
                return event(
                    kServer, track(kServer, "sessions"), span(entry),
                    fmt::format("{} {}: {}", whose, entry.kind == Kind::kSessionOpened ? "opened" : "closed",
                                text(entry.text)),
                    fmt::format(R"("tenant":{},"session":{},"process":{})", json_string(whose), entry.session,
                                entry.value));
            case Kind::kUnsupported:
                return event(kServer, track(kServer, "notes"), span(entry),
                             fmt::format("{} called {}, which is not supported", whose, text(entry.name)),
                             fmt::format(R"("tenant":{},"session":{})", json_string(whose), entry.session));
            case Kind::kGpuTime:
                return;
            case Kind::kNote:
                break;
        }
        event(kServer, track(kServer, "notes"), span(entry), text(entry.text),
              fmt::format(R"("session":{})", entry.session));
    }

    void show_launch(const Entry& entry, const std::string& whose) {
        const std::string facts = fmt::format(
            R"("tenant":{},"session":{},"stream":{},"grid":[{}],"block":[{}],)"
            R"("registers":{},"shared_bytes":{},"submitted_us":{})",
            json_string(whose), entry.session, entry.stream, fmt::join(entry.grid, ","),
            fmt::join(entry.block, ","), entry.registers, entry.shared_bytes, microseconds(entry.time_ns));
        event(kTenants, track(kTenants, whose), span(entry), kernel(entry.name), facts);
        // Only a simulated device knows where a launch ran; elsewhere they are the SMs that it was confined
        // to.
        if (entry.virtual_time && timed(entry)) show_places(entry, whose, kernel(entry.name), facts);
    }

    void show_mapping(const Entry& entry, const std::string& whose) {
        if (!timed(entry) || virtual_) return;  // there its launch has said so
        show_places(entry, whose, kernel(entry.text),
                    fmt::format(R"("tenant":{},"session":{},"blocks":{},"workers":{})", json_string(whose),
                                entry.session, entry.value, entry.blocks_together));
    }

    void show_places(const Entry& entry, const std::string& whose, const std::string& name,
                     const std::string& facts) {
        for (const int sm : placed_on(entry))
            event(kMultiprocessors, sm, span(entry), whose + ": " + name, facts);
    }

    void event(Group group, int track, Span at, const std::string& name, const std::string& facts) {
        const bool moment = at.start == at.end;
        const int thread = moment ? base(group, track) : lane(group, track, at);
        used_[group][track] = std::max(used_[group][track], thread - base(group, track));
        emit(fmt::format(
            R"({{"ph":"{}","pid":{},"tid":{},"ts":{},{}"name":{},"args":{{{}}}}})", moment ? "i" : "X",
            static_cast<int>(group), thread, microseconds(at.start),
            moment ? R"("s":"t",)" : fmt::format(R"("dur":{},)", in_microseconds(at.end - at.start)),
            json_string(name), facts));
        ++events_;
    }

    // Spans of one track must not overlap: viewers drop them, or nest them wrongly.
    int lane(Group group, int track, Span at) {
        std::vector<uint64_t>& ends = ends_[{group, track}];
        size_t i = 0;
        while (i < ends.size() && ends[i] > at.start) ++i;
        if (i == ends.size() && i + 1 < kOfTrack) ends.push_back(0);
        i = std::min(i, ends.size() - 1);
        ends[i] = std::max(ends[i], at.end);
        return base(group, track) + static_cast<int>(i);
    }

    void name_tracks() {
        for (const auto& [group, tracks] : used_) {
            emit(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}})", group,
                             kGroupNames[group]));
            emit(fmt::format(
                R"({{"ph":"M","pid":{0},"name":"process_sort_index","args":{{"sort_index":{0}}}}})", group));
            for (const auto& [track, more] : tracks) {
                const std::string name =
                    group == kMultiprocessors ? fmt::format("SM {}", track) : track_names_[{group, track}];
                for (int i = 0; i <= more; ++i)
                    name_track(group, base(group, track) + i, i ? fmt::format("{} ({})", name, i + 1) : name);
            }
        }
    }

    void name_track(int group, int thread, const std::string& name) {
        emit(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", group,
                         thread, json_string(name)));
        emit(fmt::format(
            R"({{"ph":"M","pid":{0},"tid":{1},"name":"thread_sort_index","args":{{"sort_index":{1}}}}})",
            group, thread));
    }

    int track(Group group, const std::string& name) {
        auto [found, fresh] = tracks_.try_emplace({group, name}, static_cast<int>(tracks_.size()));
        if (fresh) track_names_[{group, found->second}] = name;
        return found->second;
    }

    void emit(const std::string& object) {
        if (begun_) write_(",\n");
        begun_ = true;
        write_(object);
    }

    static int base(int group, int track) { return group * kOfGroup + track * kOfTrack; }
    static std::string in_microseconds(uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
    std::string microseconds(uint64_t at) const { return in_microseconds(at - std::min(at, origin_)); }
    std::string text(uint32_t index) const { return std::string(journal_.name(index)); }
    std::string tenant(uint32_t session) const {
        auto found = tenants_.find(session);
        return found == tenants_.end() ? fmt::format("session {}", session) : found->second;
    }
    const std::string& kernel(uint32_t index) {
        auto [found, fresh] = kernels_.try_emplace(index);
        if (fresh) found->second = demangle(text(index));
        return found->second;
    }

    const Reader& journal_;
    const std::function<void(std::string_view)>& write_;
    std::vector<Entry> entries_;
    bool virtual_ = false;
    size_t left_out_ = 0;
    int64_t shift_ = 0;    // from the GPU's timer to the journal's clock
    uint64_t origin_ = 0;  // of the times in the trace
    bool begun_ = false;
    uint64_t events_ = 0;
    std::map<uint32_t, std::string> tenants_;  // by session
    std::map<uint32_t, std::string> kernels_;  // demangled, by name index
    std::map<std::pair<int, std::string>, int> tracks_;
    std::map<std::pair<int, int>, std::string> track_names_;
    std::map<std::pair<int, int>, std::vector<uint64_t>>
        ends_;                                // by group and track: until when each lane is taken
    std::map<int, std::map<int, int>> used_;  // by group and track: lanes but the first
};

}  // namespace

uint64_t write_trace(const Reader& journal, uint64_t last_ns,
                     const std::function<void(std::string_view)>& write) {
    return Trace(journal, last_ns, write).write();
}

}  // namespace smt::tools
