#include "tools/smt/calls_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/smt/command.h"

namespace smt::tools {

namespace {

using CallsJson = nlohmann::ordered_json;

uint64_t less(uint64_t whole, uint64_t part) { return whole > part ? whole - part : 0; }

void read_lane(const CallsJson& json, CallsReport& report) {
    LaneSums lane;
    lane.pid = json.at("pid");
    lane.tenant = json.at("tenant");
    lane.lane = json.at("lane");
    lane.client = json.at("client");
    lane.wall = json.at("wall");
    lane.busy = json.at("busy");
    lane.polling = json.at("polling");
    lane.asleep = json.at("asleep");
    lane.sleeps = json.at("sleeps");
    lane.records = json.at("records");
    for (const CallsJson& each : json.at("calls")) {
        CallSums& sum = report.calls[each.at("name")];
        const auto add = [&](const char* name, uint64_t& to) { to += each.at(name).get<uint64_t>(); };
        add("calls", sum.calls);
        add("total", sum.total);
        add("reply", sum.reply);
        add("word", sum.word);
        add("room", sum.room);
        add("records", sum.records);
        add("awaited", sum.awaited);
        add("ring", sum.ring);
        add("thread", sum.thread);
        add("driver", sum.driver);
        add("waits", sum.waits);
        add("answered", sum.answered);
        sum.most = std::max(sum.most, each.at("most").get<uint64_t>());
        add("total", lane.calls);
        for (const char* wait : {"reply", "word", "room"}) add(wait, lane.waiting);
    }
    for (const CallsJson& each : json.at("driver")) {
        FunctionSums& sum = report.driver[each.at("name")];
        sum.calls += each.at("calls").get<uint64_t>();
        sum.total += each.at("total").get<uint64_t>();
    }
    report.lanes.push_back(std::move(lane));
}

// Sorted by what they cost.
template <typename Sums, typename Cost>
std::vector<std::pair<std::string, Sums>> sorted(const std::map<std::string, Sums>& sums, const Cost& cost) {
    std::vector<std::pair<std::string, Sums>> rows(sums.begin(), sums.end());
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const auto& a, const auto& b) { return cost(a.second) > cost(b.second); });
    return rows;
}

uint64_t cost_of(const CallSums& sums) {
    return std::max(sums.total, sums.thread + sums.driver + sums.waits);
}

// Microseconds for each of `count`.
std::string mean(uint64_t sum, uint64_t count) {
    return count ? fmt::format("{:.2f}", static_cast<double>(sum) / static_cast<double>(count) / 1000) : "-";
}

double percent_of(uint64_t part, uint64_t whole) {
    return whole ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

size_t shown_rows(size_t rows, size_t most) { return most == 0 ? rows : std::min(rows, most); }

std::string calls_table(const CallsReport& report, size_t most) {
    const auto rows = sorted(report.calls, cost_of);
    const size_t shown = shown_rows(rows.size(), most);
    std::string text = fmt::format(
        "microseconds a call:    in the program                        |    on its way through the server\n"
        "{:<28} {:>8} {:>8} {:>7} {:>7} {:>7} {:>7} | {:>7} {:>7} {:>7} {:>7} {:>7} {:>8}\n",
        "call", "calls", "total", "client", "reply", "word", "room", "ring", "thread", "held", "driver",
        "back", "most");
    for (size_t i = 0; i < shown; ++i) {
        const auto& [name, sum] = rows[i];
        const uint64_t calls = sum.calls ? sum.calls : sum.records;
        text += fmt::format(
            "{:<28} {:>8} {:>8} {:>7} {:>7} {:>7} {:>7} | {:>7} {:>7} {:>7} {:>7} {:>7} {:>8}\n", name, calls,
            mean(sum.total, calls), mean(sum.client(), calls), mean(sum.reply, calls), mean(sum.word, calls),
            mean(sum.room, calls), mean(sum.ring, calls), mean(sum.thread, calls), mean(sum.waits, calls),
            mean(sum.driver, calls), mean(sum.back(), calls), mean(sum.most, 1));
    }
    if (shown < rows.size()) text += fmt::format("and {} more\n", rows.size() - shown);
    return text;
}

std::string driver_table(const CallsReport& report, size_t most) {
    const auto rows = sorted(report.driver, [](const FunctionSums& sums) { return sums.total; });
    const size_t shown = shown_rows(rows.size(), most);
    std::string text = fmt::format("{:<40}{:>10}{:>10}{:>12}\n", "driver function", "calls", "us each", "ms");
    for (size_t i = 0; i < shown; ++i)
        text += fmt::format("{:<40}{:>10}{:>10}{:>12.2f}\n", rows[i].first, rows[i].second.calls,
                            mean(rows[i].second.total, rows[i].second.calls),
                            static_cast<double>(rows[i].second.total) / 1e6);
    if (shown < rows.size()) text += fmt::format("and {} more\n", rows.size() - shown);
    return text;
}

// What limits a pair of threads that exchange records: the one that is never without work.
const char* limit_of(const LaneSums& lane) {
    constexpr double kBusy = 85;  // percent
    if (percent_of(less(lane.client, lane.waiting), lane.client) >= kBusy) return "the program's thread";
    if (percent_of(lane.busy, lane.client) >= kBusy) return "the server's thread";
    return "waits";
}

std::string lanes_table(const CallsReport& report, size_t most) {
    std::vector<LaneSums> lanes = report.lanes;
    std::stable_sort(lanes.begin(), lanes.end(),
                     [](const LaneSums& a, const LaneSums& b) { return a.records > b.records; });
    const size_t shown = shown_rows(lanes.size(), most);
    std::string text =
        fmt::format("{:<20}{:>10}{:>9}{:>9}{:>9} |{:>9}{:>9}{:>9}{:>8}  {}\n", "thread", "ms", "outside",
                    "in smt", "waiting", "busy", "polling", "asleep", "sleeps", "limited by");
    for (size_t i = 0; i < shown; ++i) {
        const LaneSums& lane = lanes[i];
        text += fmt::format(
            "{:<20}{:>10.1f}{:>8.1f}%{:>8.1f}%{:>8.1f}% |{:>8.1f}%{:>8.1f}%{:>8.1f}%{:>8}  {}\n",
            fmt::format("{}/{}", lane.pid, lane.lane), static_cast<double>(lane.client) / 1e6,
            percent_of(less(lane.client, lane.calls), lane.client),
            percent_of(less(lane.calls, lane.waiting), lane.client), percent_of(lane.waiting, lane.client),
            percent_of(lane.busy, lane.wall), percent_of(lane.polling, lane.wall),
            percent_of(lane.asleep, lane.wall), lane.sleeps, limit_of(lane));
    }
    if (shown < lanes.size()) text += fmt::format("and {} more\n", lanes.size() - shown);
    return text;
}

}  // namespace

uint64_t CallSums::client() const { return less(total, reply + word + room); }
uint64_t CallSums::back() const { return less(reply, answered); }

CallsReport read_calls(std::string_view text) {
    CallsReport report;
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty()) continue;
        try {
            read_lane(CallsJson::parse(line), report);
        } catch (const nlohmann::json::exception& error) {
            throw Failure(std::string("the server's file of times is damaged: ") + error.what());
        }
    }
    return report;
}

std::string calls_text(const CallsReport& report, const CallsWall& wall, size_t most) {
    std::string text = calls_table(report, most) + "\n" + driver_table(report, most) + "\n" +
                       lanes_table(report, most) + fmt::format("\nunder smt {:.3f} s", wall.under_smt);
    if (wall.native > 0)
        text +=
            fmt::format(", native {:.3f} s, native/smt {:.3f}", wall.native, wall.native / wall.under_smt);
    return text + "\n";
}

std::string calls_json(const CallsReport& report, const CallsWall& wall) {
    CallsJson json = {{"wall_s", wall.under_smt}};
    if (wall.native > 0) json["native_wall_s"] = wall.native;
    for (const char* table : {"calls", "driver", "threads"}) json[table] = CallsJson::array();
    for (const auto& [name, sum] : sorted(report.calls, cost_of))
        json["calls"].push_back({{"name", name},
                                 {"calls", sum.calls},
                                 {"total_ns", sum.total},
                                 {"client_ns", sum.client()},
                                 {"reply_ns", sum.reply},
                                 {"word_ns", sum.word},
                                 {"room_ns", sum.room},
                                 {"records", sum.records},
                                 {"awaited", sum.awaited},
                                 {"ring_ns", sum.ring},
                                 {"thread_ns", sum.thread},
                                 {"held_ns", sum.waits},
                                 {"driver_ns", sum.driver},
                                 {"answered_ns", sum.answered},
                                 {"back_ns", sum.back()},
                                 {"most_ns", sum.most}});
    for (const auto& [name, sum] : report.driver)
        json["driver"].push_back({{"name", name}, {"calls", sum.calls}, {"total_ns", sum.total}});
    for (const LaneSums& lane : report.lanes)
        json["threads"].push_back({{"pid", lane.pid},
                                   {"tenant", lane.tenant},
                                   {"lane", lane.lane},
                                   {"client_ns", lane.client},
                                   {"in_calls_ns", lane.calls},
                                   {"waiting_ns", lane.waiting},
                                   {"server_ns", lane.wall},
                                   {"busy_ns", lane.busy},
                                   {"polling_ns", lane.polling},
                                   {"asleep_ns", lane.asleep},
                                   {"sleeps", lane.sleeps},
                                   {"records", lane.records},
                                   {"limited_by", limit_of(lane)}});
    return json.dump(1) + "\n";
}

}  // namespace smt::tools
