#include "tools/ui/timeline.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tools/smt/usage.h"

namespace smt::tools::ui {

using runtime::journal::Entry;
using runtime::journal::Kind;
using runtime::journal::Reader;

namespace {

constexpr size_t kMostUntimed = 1024, kMostSamples = 1000, kShownDecisions = 14;
constexpr uint64_t kUntimedFor = 10'000'000'000;

uint64_t end_of(const Decision& decision) { return decision.time_ns; }
template <typename Thing>
uint64_t end_of(const Thing& thing) {
    return thing.end;
}

// Entries come nearly in order.
template <typename Thing>
void insert(std::deque<Thing>& things, Thing thing) {
    auto at = things.end();
    while (at != things.begin() && end_of(*std::prev(at)) > end_of(thing)) --at;
    things.insert(at, std::move(thing));
}

template <typename Thing>
auto after(const std::deque<Thing>& things, uint64_t time) {
    return std::partition_point(things.begin(), things.end(),
                                [&](const Thing& each) { return end_of(each) <= time; });
}

template <typename Thing>
void forget_before(std::deque<Thing>& things, uint64_t time) {
    things.erase(things.begin(), after(things, time));
}

Quantiles quantiles(std::vector<uint64_t>& values) {
    if (values.empty()) return {};
    const auto at = [&](size_t i) {
        std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i), values.end());
        return values[i];
    };
    const size_t count = values.size();
    return {count, at((count - 1) / 2), at((count * 99 + 99) / 100 - 1)};
}

}  // namespace

// ---- What is taken from the journal

void Timeline::restart() {
    next_ = 0;
    virtual_ = placed_ = false;
    begin_.reset();
    end_ = longest_ = decided_ = 0;
    shift_.reset();
    by_session_.clear();
    untimed_.clear();
    ran_.clear();
    for (auto* each : {&launches_, &runs_, &latencies_, &stops_}) each->clear();
    decisions_.clear();
}

void Timeline::follow(const Reader& journal) {
    next_ = journal.read(next_, [&](const Entry& entry) { add(journal, entry); });
    look_again(journal);
    forget();
}

uint32_t Timeline::number_of(const std::string& tenant) {
    const auto [found, fresh] = numbers_.try_emplace(tenant, static_cast<uint32_t>(names_.size()));
    if (fresh) names_.push_back(tenant);
    return found->second;
}

uint32_t Timeline::tenant_of(uint32_t session) {
    const auto found = by_session_.find(session);
    if (found != by_session_.end()) return found->second;
    return by_session_[session] = number_of("session " + std::to_string(session));  // its opening is gone
}

void Timeline::take_sessions(const Reader& journal, const Entry& entry) {
    const bool named = entry.kind == Kind::kSessionOpened || entry.kind == Kind::kDecision ||
                       entry.kind == Kind::kMapping || entry.kind == Kind::kStopped;
    if (named && (entry.kind == Kind::kSessionOpened || !by_session_.count(entry.session)))
        by_session_[entry.session] = number_of(journal.name(entry.name));
}

void Timeline::see(uint64_t time) {
    begin_ = std::min(begin_.value_or(time), time);
    end_ = std::max(end_, time);
}

void Timeline::add(const Reader& journal, const Entry& entry) {
    take_sessions(journal, entry);
    if (entry.virtual_time && !virtual_) {  // what came before is of another clock
        const uint64_t next = next_;
        auto sessions = std::exchange(by_session_, {});
        restart();
        next_ = next;
        by_session_ = std::move(sessions);
        virtual_ = true;
    }
    if ((entry.virtual_time != 0) != virtual_) return;
    const uint64_t time = entry.time_ns ? entry.time_ns : entry.start_ns;
    switch (entry.kind) {
        case Kind::kLaunch:
            if (!timed(entry)) {
                see(time);
                insert(launches_[tenant_of(entry.session)], {time, 0});
                if (!virtual_) untimed_.push_back(entry.sequence);
                return;
            }
            insert(launches_[tenant_of(entry.session)], {entry.end_ns, 0});
            return take_launch(entry);
        case Kind::kMapping:
            if (!timed(entry) || virtual_) return;  // there its launch says where it ran
            shift_ = std::min(shift_.value_or(~0ull), entry.time_ns - entry.end_ns);
            return take_run(entry, *shift_);
        case Kind::kStopped:
            if (virtual_) return;  // how long it took is real time, which does not go with a virtual clock
            see(time);
            return insert(stops_[tenant_of(entry.session)], {time, entry.value});
        case Kind::kDecision:
            see(time);
            ++decided_;
            return insert(decisions_,
                          {time, entry.sequence, tenant_of(entry.session), journal.name(entry.text)});
        default:
            return;
    }
}

void Timeline::take_launch(const Entry& entry) {
    // A simulated device alone knows where a launch ran; elsewhere these are SMs that it was confined to.
    if (virtual_)
        take_run(entry, 0);
    else
        insert(runs_[tenant_of(entry.session)], {entry.end_ns, entry.end_ns - entry.start_ns});
    see(entry.end_ns);
    if (entry.time_ns && entry.time_ns <= entry.start_ns)
        insert(latencies_[tenant_of(entry.session)], {entry.end_ns, entry.end_ns - entry.time_ns});
}

void Timeline::take_run(const Entry& entry, uint64_t shift) {
    Placed placed{entry.end_ns + shift, entry.start_ns + shift, {}, tenant_of(entry.session)};
    for (int i = 0; i < runtime::journal::kPlaceWords; ++i) {
        placed.where[i] = entry.multiprocessors[i];
        if (placed.where[i])
            multiprocessors_ = std::max(multiprocessors_, 64 * i + 64 - std::countl_zero(placed.where[i]));
    }
    see(placed.start);
    see(placed.end);
    longest_ = std::max(longest_, placed.end - placed.start);
    insert(runs_[placed.tenant], {placed.end, placed.end - placed.start});
    placed_ = true;
    insert(ran_, placed);
}

// The times of a launch are added to its entry when it is over (SMT_JOURNAL=times).
void Timeline::look_again(const Reader& journal) {
    while (untimed_.size() > kMostUntimed) untimed_.pop_front();
    std::erase_if(untimed_, [&](uint64_t sequence) {
        Entry entry;
        if (!journal.read_one(sequence, &entry)) return true;
        if (timed(entry)) return take_launch(entry), true;
        return entry.time_ns + kUntimedFor < end_;
    });
}

void Timeline::forget() {
    if (keep_ns_ == 0 || end_ < keep_ns_) return;
    const uint64_t before = end_ - keep_ns_;
    forget_before(ran_, before);
    for (auto* all : {&launches_, &runs_, &latencies_, &stops_})
        for (auto& [tenant, each] : *all) forget_before(each, before);
    while (decisions_.size() > kShownDecisions && decisions_.front().time_ns < before) decisions_.pop_front();
}

// ---- Frames

// What ran on one multiprocessor at the same time counts once for each tenant.
std::vector<std::vector<Part>> Timeline::parts(const Window& window, size_t multiprocessors) const {
    std::vector<const Placed*> those;
    for (auto each = after(ran_, window.from); each != ran_.end() && each->end < window.to + longest_ + 1;
         ++each)
        if (each->start < window.to) those.push_back(&*each);
    std::sort(those.begin(), those.end(),
              [](const Placed* a, const Placed* b) { return a->start < b->start; });
    struct Busy {
        uint64_t until = 0, ns = 0;
    };
    std::vector<uint32_t> tenants;  // that ran something, ascending
    for (const Placed* each : those) tenants.push_back(each->tenant);
    std::sort(tenants.begin(), tenants.end());
    tenants.erase(std::unique(tenants.begin(), tenants.end()), tenants.end());
    std::vector<Busy> busy(kMostMultiprocessors * tenants.size());  // of each one all tenants in a row
    for (const Placed* each : those) {
        const uint64_t start = std::max(each->start, window.from), end = std::min(each->end, window.to);
        const auto which = static_cast<size_t>(
            std::lower_bound(tenants.begin(), tenants.end(), each->tenant) - tenants.begin());
        for (int word = 0; word < runtime::journal::kPlaceWords; ++word) {
            for (uint64_t left = each->where[word]; left; left &= left - 1) {
                const auto sm = static_cast<size_t>(64 * word + std::countr_zero(left));
                Busy& on = busy[sm * tenants.size() + which];
                if (end > on.until) on.ns += end - std::max(start, on.until);
                on.until = std::max(on.until, end);
            }
        }
    }
    const double length = static_cast<double>(std::max<uint64_t>(window.to - window.from, 1));
    std::vector<std::vector<Part>> all(multiprocessors);
    for (size_t sm = 0; sm < all.size(); ++sm)
        for (size_t i = 0; i < tenants.size(); ++i)
            if (const Busy& on = busy[sm * tenants.size() + i]; on.ns)
                all[sm].push_back({tenants[i], static_cast<double>(on.ns) / length});
    return all;
}

Frame Timeline::frame(const Window& window, int multiprocessors) const {
    Frame frame;
    frame.multiprocessors =
        parts(window, static_cast<size_t>(std::clamp(multiprocessors, 0, kMostMultiprocessors)));
    for (const auto& [tenant, all] : launches_)
        if (const auto count = after(all, window.to) - after(all, window.over); count > 0)
            frame.tenants[tenant].launches = static_cast<uint64_t>(count);
    const auto summarise = [&](const ByTenant& by_tenant, Quantiles Figures::* of) {
        for (const auto& [tenant, all] : by_tenant) {
            const auto end = after(all, window.to);
            const auto count = std::clamp<std::ptrdiff_t>(end - after(all, window.over), 0, kMostSamples);
            std::vector<uint64_t> seen;
            for (auto each = end - count; each != end; ++each) seen.push_back(each->ns);
            if (count) frame.tenants[tenant].*of = quantiles(seen);
        }
    };
    summarise(runs_, &Figures::run);
    summarise(latencies_, &Figures::latency);
    summarise(stops_, &Figures::stop);

    const auto end = after(decisions_, window.to);
    const auto shown = std::min<std::ptrdiff_t>(kShownDecisions, end - decisions_.begin());
    frame.decisions.assign(end - shown, end);
    return frame;
}

}  // namespace smt::tools::ui
