// Where the time of CUDA calls goes: what a lane sums, and what `smt bench calls` makes of it.
#include "runtime/server/call_trace.h"

#include <catch2/catch.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/smt/calls_view.h"
#include "tools/smt/command.h"

namespace smt::runtime::server {
namespace {

using nlohmann::json;

const LaneTrace::About kAbout{12, "alice", 3};
constexpr uint32_t kCall = 5;
constexpr uint32_t kFunction = 7;

json written(const LaneTrace& trace) { return json::parse(trace.line(kAbout, protocol::ticks(), 1)); }

// A record that calls the driver and waits, each twice.
void serve(LaneTrace& trace, const protocol::RecordStamp& stamp, bool awaited) {
    trace.taken(stamp, awaited);
    for (int i = 0; i < 2; ++i) {
        {
            const device::InDriver driver(kFunction);
            const device::InDriver nested(kFunction + 1);  // the driver's own
        }
        const device::InWait wait;
        const device::InDriver driver(kFunction);  // of the wait
    }
    trace.done();
    trace.done();  // has no effect
}

TEST_CASE("a lane sums what its records take, by call", "[call_trace]") {
    const CallTrace file("/nowhere/calls");
    auto client = std::make_unique<protocol::LaneTimes>();
    client->first = 1000;
    client->last = 5000;
    client->calls[kCall] = {3, 900, 200, 30, 4};
    client->calls[kCall + 1] = {2, 50, 0, 0, 0};  // calls without a record
    auto trace = std::make_unique<LaneTrace>(file, client.get());
    trace->begin();
    serve(*trace, {protocol::ticks(), kCall, 0}, true);
    serve(*trace, {protocol::ticks(), kCall, 0}, false);
    serve(*trace, {}, false);                                                  // without a stamp
    serve(*trace, {protocol::ticks() + 1'000'000'000'000, 70'000, 0}, false);  // a client that lies
    device::call_clock = nullptr;

    const json lane = written(*trace);
    CHECK(lane["pid"] == 12);
    CHECK(lane["tenant"] == "alice");
    CHECK(lane["lane"] == 3);
    CHECK(lane["client"] == 4000);
    CHECK(lane["records"] == 4);
    REQUIRE(lane["calls"].size() == 3);
    const json& other = lane["calls"][0];
    CHECK(other["name"] == "other");
    CHECK(other["records"] == 2);
    CHECK(other["calls"] == 0);
    CHECK(other["ring"] == 0);
    const json& call = lane["calls"][1];
    CHECK(call["calls"] == 3);
    CHECK(call["total"] == 900);
    CHECK(call["reply"] == 200);
    CHECK(call["word"] == 30);
    CHECK(call["room"] == 4);
    CHECK(call["records"] == 2);
    CHECK(call["awaited"] == 1);
    CHECK(lane["calls"][2]["calls"] == 2);
    CHECK(lane["calls"][2]["records"] == 0);
    REQUIRE(lane["driver"].size() == 1);  // neither what the driver calls nor what a wait calls
    CHECK(lane["driver"][0]["name"] == kDriverApiNames[kFunction].symbol);
    CHECK(lane["driver"][0]["calls"] == 8);
    uint64_t busy = 0, driver = 0;
    for (const json& each : lane["calls"]) {
        for (const char* part : {"thread", "driver", "waits"}) busy += each[part].get<uint64_t>();
        driver += each["driver"].get<uint64_t>();
    }
    CHECK(lane["busy"] == busy);
    CHECK(lane["driver"][0]["total"] == driver);
}

TEST_CASE("the phases of an awaited record add up to its answer", "[call_trace]") {
    const CallTrace file("/nowhere/calls");
    LaneTrace trace(file, nullptr);
    trace.begin();
    serve(trace, {protocol::ticks(), kCall, 0}, true);
    device::call_clock = nullptr;
    const json call = written(trace)["calls"][0];
    CHECK(call["answered"].get<uint64_t>() == call["ring"].get<uint64_t>() + call["thread"].get<uint64_t>() +
                                                  call["driver"].get<uint64_t>() +
                                                  call["waits"].get<uint64_t>());
    CHECK(call["driver"] > 0);
    CHECK(call["waits"] > 0);
}

TEST_CASE("what a lane does before the time that is ignored is over does not count", "[call_trace]") {
    auto client = std::make_unique<protocol::LaneTimes>();
    client->calls[kCall] = {3, 900, 200, 30, 4};
    const auto lane = [&](uint64_t after) {
        const CallTrace file("/nowhere/calls", after);
        LaneTrace trace(file, client.get());
        trace.begin();
        serve(trace, {protocol::ticks(), kCall, 0}, true);
        client->calls[kCall].calls += 2;
        client->calls[kCall].total += 50;
        serve(trace, {protocol::ticks(), kCall, 0}, true);
        device::call_clock = nullptr;
        return written(trace);
    };
    const json over = lane(1);  // at the first record
    CHECK(over["calls"][0]["calls"] == 2);
    CHECK(over["calls"][0]["total"] == 50);
    CHECK(over["calls"][0]["reply"] == 0);
    CHECK(over["calls"][0]["records"] == 2);
    CHECK(over["driver"][0]["calls"] == 4);
    CHECK(lane(0)["calls"][0]["calls"] == 7);
}

TEST_CASE("a tenant's name does not break the line", "[call_trace]") {
    const CallTrace file("/nowhere/calls");
    const LaneTrace trace(file, nullptr);
    const std::string line = trace.line({1, "a\"b\\\n\xff", 0}, 0, 1);
    CHECK(json::parse(line)["tenant"] == "a?b???");
    CHECK(line.find('\n') == line.size() - 1);
}

}  // namespace
}  // namespace smt::runtime::server

namespace smt::tools {
namespace {

std::string lane_line(int lane, uint64_t busy) {
    return R"({"pid":7,"tenant":"a","lane":)" + std::to_string(lane) +
           R"(,"wall":2000,"client":1000,"records":4,"polling":10,"asleep":5,"sleeps":1,"busy":)" +
           std::to_string(busy) +
           R"(,"calls":[{"name":"cuLaunchKernel","calls":10,"total":900,"reply":100,"word":20,)"
           R"("room":30,"records":10,"awaited":1,"ring":50,"thread":60,"driver":70,"waits":8,)"
           R"("most":40,"answered":90}],"driver":[{"name":"cuLaunchKernel","calls":10,"total":70}]})"
           "\n";
}

TEST_CASE("threads' times are summed by call", "[call_trace]") {
    const CallsReport report = read_calls(lane_line(0, 900) + lane_line(1, 100));
    REQUIRE(report.calls.size() == 1);
    const CallSums& sums = report.calls.at("cuLaunchKernel");
    CHECK(sums.calls == 20);
    CHECK(sums.total == 1800);
    CHECK(sums.client() == 1500);  // less 100 + 20 + 30, twice
    CHECK(sums.back() == 20);
    CHECK(sums.most == 40);
    CHECK(sums.waits == 16);
    CHECK(report.driver.at("cuLaunchKernel").total == 140);
    REQUIRE(report.lanes.size() == 2);
    CHECK(report.lanes[1].waiting == 150);
    CHECK(report.lanes[1].calls == 900);

    const nlohmann::json json = nlohmann::json::parse(calls_json(report, {1.5, 0}));
    CHECK(json["wall_s"] == 1.5);
    CHECK_FALSE(json.contains("native_wall_s"));
    CHECK(json["calls"][0]["client_ns"] == 1500);
    CHECK(json["threads"].size() == 2);
    CHECK(json["threads"][0]["limited_by"] == "the program's thread");
    const std::string text = calls_text(report, {1.5, 1.2}, 0);
    CHECK(text.find("cuLaunchKernel") != std::string::npos);
    CHECK(text.find("native/smt 0.800") != std::string::npos);
}

TEST_CASE("a thread is limited by the side that is never without work", "[call_trace]") {
    const auto limit = [](uint64_t waiting, uint64_t busy) {
        CallsReport report = read_calls(lane_line(0, busy));
        report.lanes[0].waiting = waiting;
        return nlohmann::json::parse(calls_json(report, {}))["threads"][0]["limited_by"].get<std::string>();
    };
    CHECK(limit(100, 900) == "the program's thread");
    CHECK(limit(400, 900) == "the server's thread");
    CHECK(limit(400, 300) == "waits");
}

TEST_CASE("rows beyond the most are counted", "[call_trace]") {
    CallsReport report = read_calls(lane_line(0, 1));
    report.calls["cuMemFree_v2"].calls = 1;
    CHECK(calls_text(report, {}, 1).find("and 1 more") != std::string::npos);
    CHECK(calls_text(report, {}, 0).find("more") == std::string::npos);
}

TEST_CASE("a damaged file of times is refused", "[call_trace]") {
    CHECK_THROWS_AS(read_calls("{\"pid\":"), Failure);
    CHECK_THROWS_AS(read_calls("{}\n"), Failure);
    CHECK(read_calls("").lanes.empty());
}

}  // namespace
}  // namespace smt::tools
