#include "runtime/server/call_trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "coverage.gen.h"
#include "runtime/journal/journal.h"
#include "runtime/server/log.h"
#include "runtime/settings/read.h"

namespace smt::runtime::server {

using protocol::CallTimes;
using protocol::LaneTimes;
using protocol::RecordStamp;
using protocol::ticks;

namespace {

constexpr uint64_t kNanoseconds = 1'000'000'000;
static_assert(std::size(kCoverage) < protocol::kTimedCalls);

// A tenant's name is whatever bytes the program chose.
std::string quoted(const std::string& text) {
    std::string plain;
    for (const char each : text)
        plain += each < ' ' || each > '~' || each == '"' || each == '\\' ? '?' : each;
    return '"' + plain + '"';
}

// What a time stamp of another processor's counter, or of a client that lies, is behind.
uint64_t since(uint64_t begun, uint64_t now) { return now > begun ? now - begun : 0; }

}  // namespace

std::unique_ptr<CallTrace> CallTrace::wanted() {
    const std::string path(settings::text_of(settings::Id::kCalls));
    if (path.empty()) return nullptr;
    return std::make_unique<CallTrace>(path, settings::number_of(settings::Id::kCallsAfter) * kNanoseconds);
}

CallTrace::CallTrace(std::string path, uint64_t after)
    : path_(std::move(path)), after_(after), ticks_(ticks()), nanoseconds_(journal::now_ns()) {}

double CallTrace::nanoseconds_per_tick() const {
    return static_cast<double>(journal::now_ns() - nanoseconds_) /
           static_cast<double>(std::max<uint64_t>(ticks() - ticks_, 1));
}

void CallTrace::write(const std::string& line) const {
    const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const bool written =
        file >= 0 && ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    if (file >= 0) ::close(file);
    if (!written) log_line(fmt::format("{}: the times of calls cannot be written", path_));
}

LaneTrace::LaneTrace(const CallTrace& trace, const protocol::LaneTimes* client)
    : trace_(trace), client_(client), served_(protocol::kTimedCalls) {}

void LaneTrace::begin() {
    device::call_clock = &clock_;
    begun_ = ticks();
    if (trace_.after()) ignored_until_ = journal::now_ns() + trace_.after();
}

void LaneTrace::count_from_now() {
    ignored_until_ = 0;
    served_.assign(served_.size(), {});
    clock_ = {};
    polling_ = asleep_ = sleeps_ = busy_ = 0;
    before_ = std::make_unique<LaneTimes>(client_ ? *client_ : LaneTimes{});
    begun_ = ticks();
}

CallTimes LaneTrace::client_times(uint32_t call) const {
    CallTimes times = client_ ? client_->calls[call] : CallTimes{};
    if (!before_) return times;
    const CallTimes& before = before_->calls[call];
    for (uint64_t CallTimes::* each :
         {&CallTimes::calls, &CallTimes::total, &CallTimes::reply, &CallTimes::word, &CallTimes::room})
        times.*each = since(before.*each, times.*each);
    return times;
}

void LaneTrace::taken(const RecordStamp& stamp, bool awaited) {
    if (ignored_until_ && journal::now_ns() >= ignored_until_) count_from_now();
    stamp_ = stamp;
    if (stamp_.call >= protocol::kTimedCalls) stamp_.call = 0;
    awaited_ = awaited;
    under_way_ = true;
    driver_ = clock_.driver;
    waits_ = clock_.waits;
    taken_ = ticks();
}

void LaneTrace::done() {
    if (!under_way_) return;
    under_way_ = false;
    const uint64_t lasted = ticks() - taken_;
    const uint64_t ring = stamp_.published ? since(stamp_.published, taken_) : 0;
    const uint64_t driver = clock_.driver - driver_, waits = clock_.waits - waits_;
    Served& sum = served_[stamp_.call];
    ++sum.records;
    sum.ring += ring;
    sum.driver += driver;
    sum.waits += waits;
    sum.thread += since(driver + waits, lasted);
    sum.most = std::max(sum.most, lasted);
    busy_ += lasted;
    if (!awaited_) return;
    ++sum.awaited;
    sum.answered += ring + lasted;
}

void LaneTrace::end(const About& about) {
    device::call_clock = nullptr;
    if (ignored_until_) return;
    trace_.write(line(about, ticks(), trace_.nanoseconds_per_tick()));
}

std::string LaneTrace::line(const About& about, uint64_t now, double nanoseconds_per_tick) const {
    const auto ns = [&](uint64_t span) {
        return static_cast<uint64_t>(static_cast<double>(span) * nanoseconds_per_tick);
    };
    uint64_t records = 0;
    std::string calls, driver;
    for (uint32_t i = 0; i <= std::size(kCoverage); ++i) {
        const CallTimes client = client_times(i);
        const Served& served = served_[i];
        if (client.calls == 0 && served.records == 0) continue;
        records += served.records;
        calls += fmt::format(
            R"({}{{"name":"{}","calls":{},"total":{},"reply":{},"word":{},"room":{},"records":{},)"
            R"("awaited":{},"ring":{},"thread":{},"driver":{},"waits":{},"most":{},"answered":{}}})",
            calls.empty() ? "" : ",", i == 0 ? "other" : kCoverage[i - 1].symbol, client.calls,
            ns(client.total), ns(client.reply), ns(client.word), ns(client.room), served.records,
            served.awaited, ns(served.ring), ns(served.thread), ns(served.driver), ns(served.waits),
            ns(served.most), ns(served.answered));
    }
    for (uint32_t i = 0; i < device::kDriverFunctions; ++i) {
        const device::CallClock::Function& each = clock_.functions[i];
        if (each.calls == 0) continue;
        driver += fmt::format(R"({}{{"name":"{}","calls":{},"total":{}}})", driver.empty() ? "" : ",",
                              kDriverApiNames[i].symbol, each.calls, ns(each.ticks));
    }
    const uint64_t first = client_ ? before_ ? std::max(client_->first, begun_) : client_->first : 0;
    const uint64_t client = client_ ? since(first, client_->last) : 0;
    return fmt::format(
        R"({{"pid":{},"tenant":{},"lane":{},"wall":{},"client":{},"records":{},"polling":{},"asleep":{},)"
        R"("sleeps":{},"busy":{},"calls":[{}],"driver":[{}]}})"
        "\n",
        about.pid, quoted(about.tenant), about.lane, ns(since(begun_, now)), ns(client), records,
        ns(polling_), ns(asleep_), sleeps_, ns(busy_), calls, driver);
}

}  // namespace smt::runtime::server
