// Kernel times and counters as CUPTI tells them: its buffers replayed, its refusals in words.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <thread>
#include <utility>

#include "profiler/collect/cupti/activity.h"
#include "profiler/collect/cupti/range.h"
#include "tests/profiler/recorded_cupti.h"

using namespace smt::profiler;
using namespace smt::profiler::collect;

namespace {

using Told = std::vector<std::pair<uint64_t, uint64_t>>;  // number, ns

Told told(Times& times) {
    Told all;
    times.collect(
        [&](const KernelTime& time) { all.emplace_back(time.launch, time.ended_ns - time.began_ns); });
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace

TEST_CASE("kernel times are told by the launch's number") {
    RecordedCupti cupti;
    ActivityTimes times(cupti.table);
    REQUIRE(times.open().empty());
    times.before(100);
    cupti.launch(7);
    cupti.launch(7, CUPTI_API_EXIT);
    times.after();
    cupti.launch(8);  // its time is not asked for
    times.before(101);
    cupti.launch(9);
    times.after();
    times.before(102);
    cupti.launch(10);
    times.after();
    std::vector<uint8_t> first, second;
    RecordedCupti::append(first, RecordedCupti::kernel(7, 1000, 1500));
    RecordedCupti::append(first, RecordedCupti::kernel(8, 2000, 2700));
    RecordedCupti::append(second, RecordedCupti::kernel(9, 3000, 3100));
    cupti.buffers = {first, second, {}};
    CHECK(told(times) == Told{{100, 500}, {101, 100}});
    CHECK(told(times).empty());
    std::vector<uint8_t> third;  // it had not ended then
    RecordedCupti::append(third, RecordedCupti::kernel(10, 4000, 4001));
    cupti.buffers = {third};
    CHECK(told(times) == Told{{102, 1}});
}

TEST_CASE("kernel times leave out what CUPTI could not time") {
    RecordedCupti cupti;
    ActivityTimes times(cupti.table);
    REQUIRE(times.open().empty());
    times.before(100);
    cupti.launch(7);
    cupti.launch(8);  // two kernels by one number
    times.after();
    std::vector<uint8_t> buffer;
    RecordedCupti::append(buffer, RecordedCupti::kernel(7, 0, 0));
    RecordedCupti::append(buffer, RecordedCupti::kernel(8, 5, 6));
    cupti.buffers = {buffer};
    CHECK(told(times) == Told{{100, 1}});
}

TEST_CASE("kernel times: what another thread launches is not this one's") {
    RecordedCupti cupti;
    ActivityTimes times(cupti.table);
    REQUIRE(times.open().empty());
    times.before(100);
    std::thread([&] { cupti.launch(7); }).join();
    times.after();
    std::vector<uint8_t> buffer;
    RecordedCupti::append(buffer, RecordedCupti::kernel(7, 5, 6));
    cupti.buffers = {buffer};
    CHECK(told(times).empty());
}

TEST_CASE("kernel times: one collector at a time, and a refusal in words") {
    RecordedCupti cupti;
    {
        ActivityTimes times(cupti.table);
        REQUIRE(times.open().empty());
        ActivityTimes other(cupti.table);
        CHECK(other.open() == "kernel times are being collected already");
    }
    CHECK(std::count(cupti.calls.begin(), cupti.calls.end(), "unsubscribe") == 1);
    cupti.fails["subscribe"] = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    ActivityTimes next(cupti.table);
    CHECK(next.open() == "cuptiSubscribe: said so (39): another profiler has it");
}

// What CUPTI 13.0 handed out on an H200 for five launches of tools/bench/probes/cupti.cpp, byte for byte.
TEST_CASE("kernel times from a recorded buffer") {
    std::ifstream file(SMT_RECORDED_ACTIVITY, std::ios::binary);
    uint64_t bytes = 0;
    REQUIRE(file.read(reinterpret_cast<char*>(&bytes), sizeof bytes));
    std::vector<uint8_t> buffer(bytes);
    REQUIRE(file.read(reinterpret_cast<char*>(buffer.data()), static_cast<std::streamsize>(bytes)));
    RecordedCupti cupti;
    ActivityTimes times(cupti.table);
    REQUIRE(times.open().empty());
    const auto* records = reinterpret_cast<const CUpti_ActivityKernel10*>(buffer.data());
    REQUIRE(bytes == 5 * sizeof *records);
    for (uint64_t i = 0; i < 5; ++i) {
        times.before(101 + i);
        cupti.launch(records[i].correlationId);
        times.after();
    }
    cupti.buffers = {buffer};
    const Told all = told(times);
    REQUIRE(all.size() == 5);
    for (uint64_t i = 0; i < 5; ++i) CHECK(all[i].first == 101 + i);
    // 64 rounds of a loop in the first launch, 64 more in each one after it.
    for (uint64_t i = 1; i < 5; ++i) CHECK(all[i].second > all[i - 1].second);
    CHECK((all[0].second > 50'000 && all[4].second < 1'000'000));
}

TEST_CASE("counters: a session around each launch") {
    RecordedCupti cupti;
    cupti.sample[kTime] = 1234;
    cupti.sample[kExecuted] = 5678;
    {
        RangeCounters counters(cupti.table, nullptr, 0);
        REQUIRE(counters.open());
        CHECK(counters.passes() == 3);
        cupti.calls.clear();
        REQUIRE(counters.before());
        CHECK(cupti.calls == std::vector<std::string>{"clear", "set", "start"});
        const std::optional<Sample> sample = counters.after();
        REQUIRE(sample);
        CHECK(((*sample)[kTime] == 1234 && (*sample)[kExecuted] == 5678));
        CHECK(cupti.calls == std::vector<std::string>{"clear", "set", "start", "stop", "decode", "evaluate"});
    }
    CHECK((cupti.calls.end()[-2] == "disable" && cupti.calls.back() == "end host"));
}

TEST_CASE("counters: what forbids them is said, with the setting, and they are not tried again") {
    for (const char* call : {"initialize", "availability", "enable"}) {
        RecordedCupti cupti;
        cupti.fails[call] = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
        RangeCounters counters(cupti.table, nullptr, 0);
        CHECK_FALSE(counters.open());
        CHECK(counters.problem().find("NVreg_RestrictProfilingToAdminUsers=0") != std::string::npos);
        CHECK((counters.final() && !counters.before()));
    }
    RecordedCupti cupti;
    RangeCounters counters(cupti.table, nullptr, 0);
    REQUIRE(counters.open());
    cupti.fails["start"] = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;  // some drivers say so only here
    CHECK_FALSE(counters.before());
    CHECK(counters.final());
}

TEST_CASE("counters: one launch that could not be counted is no reason to give up") {
    RecordedCupti cupti;
    RangeCounters counters(cupti.table, nullptr, 0);
    REQUIRE(counters.open());
    cupti.fails["decode"] = CUPTI_ERROR_OUT_OF_MEMORY;
    REQUIRE(counters.before());
    CHECK_FALSE(counters.after());
    CHECK((counters.problem() == "cuptiRangeProfilerDecodeData: said so (8)" && !counters.final()));
    cupti.fails.clear();
    REQUIRE(counters.before());
    CHECK(counters.after());
}

TEST_CASE("metrics: what the models take") {
    Sample sample{};
    sample[kTime] = 10'000;
    sample[kCycles] = 15'000;
    sample[kExecuted] = 3'000'000;
    sample[kIssued] = 3'300'000;
    sample[kGlobalLoads] = 100'000;
    sample[kGlobalStores] = 40'000;
    sample[kGlobalReductions] = 8'000;
    sample[kGlobalAtomics] = 2'000;
    sample[kLoadRequests] = 100'000;
    sample[kStoreRequests] = 40'000;
    sample[kLoadSectors] = 100'000 * 11.0;  // a quarter of the loads touch 32 sectors, the others 4
    sample[kStoreSectors] = 40'000 * 11.0;
    sample[kDramReads] = 600;
    sample[kDramWrites] = 400;
    sample[kL2Sectors] = 64;
    sample[kIssueSlots] = 55;
    sample[kOccupancy] = 75;
    sample[kWaitsForIssue] = 1.5;
    sample[kWaitsForQueue] = 0.25;
    sample[kActiveCycles] = 12'000;
    sample[kWaitsForMio] = 0.75;
    sample[kPipeAlu] = 40;
    sample[kPipeData] = 60;
    const models::Counters counters = counters_of(sample, 16);
    CHECK(counters == models::Counters{16, 10'000, 3'000'000, 150'000, 37'500, 600, 400});
    CHECK(models::memory_ratio(counters) == Approx(0.05));
    CHECK(models::uncoalesced_ratio(counters) == Approx(0.25));
    const auto facts = facts_of(sample, 16);
    CHECK(facts.at("counted.hertz") == Approx(1.5e9));
    CHECK(facts.at("counted.ipc") == Approx(200));
    CHECK(facts.at("counted.issued_per_executed") == Approx(1.1));
    CHECK(facts.at("counted.issue_slot_utilization") == Approx(0.55));
    CHECK(facts.at("counted.occupancy") == Approx(0.75));
    CHECK(facts.at("counted.l2_bytes_per_block") == Approx(128));
    CHECK(facts.at("counted.dram_bytes_per_block") == Approx(2000));
    CHECK(facts.at("counted.l1_bytes_per_block") == Approx(140'000 * 11.0 * 32 / 16));
    CHECK(facts.at("counted.active") == Approx(0.8));
    CHECK((facts.at("counted.waits.mio") == 0.75 && facts.at("counted.pipes.alu") == Approx(0.4)));
    CHECK(facts.at("counted.pipes.data") == Approx(0.75));  // of the active cycles
    CHECK((facts.at("counted.waits.issue") == 1.5 && facts.at("counted.waits.queue") == 0.25));
    // PUR and MUR of Kernelet's 4.3 with 2 instructions and 0.5 requests a cycle of 1.5 GHz.
    const auto use = models::utilization(counters, {facts.at("counted.hertz"), 400, 0.5});
    CHECK(use.pur == Approx(3'000'000 / (15'000.0 * 400)));
    CHECK(use.mur == Approx(1000 / (15'000 * 0.5)));
}

TEST_CASE("metrics: sectors within what the model knows, and nothing of nothing") {
    Sample sample{};
    sample[kGlobalLoads] = sample[kLoadRequests] = 1000;
    sample[kLoadSectors] = 1000;  // one sector each: all threads read one word
    CHECK(counters_of(sample, 1).uncoalesced_instructions == 0);
    sample[kLoadSectors] = 64'000;
    CHECK(counters_of(sample, 1).uncoalesced_instructions == 1000);
    CHECK(counters_of(Sample{}, 0) == models::Counters{});
    CHECK(facts_of(Sample{}, 0).at("counted.hertz") == 0);
}
