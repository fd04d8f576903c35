#include "runtime/profiles/translate.h"

#include <catch2/catch.hpp>

#include "runtime/profiles/waits.h"

using namespace smt::runtime;
using namespace smt::runtime::profiles;
namespace models = smt::profiler::models;
using smt::profiler::Profile;

namespace {

DeviceFacts translated_device() {
    return {"a device", 10, {1e9, 40, 20}, {4, {.latency = 700, .requests_per_cycle = 0.5}}};
}

Profile profile(int64_t grid_class) {
    Profile one;
    one.key = {"kernel", "image", {256, 1, 1}, grid_class, "a device"};
    return one;
}

}  // namespace

TEST_CASE("nothing measured, nothing made up", "[translate]") {
    const schedule::Profile known = translate(profile(6), {}, translated_device());
    CHECK(known.blocks == 64);
    CHECK(known.configurations.empty());
    CHECK_FALSE((known.preemption || known.mix || known.footprint || known.slice_overhead));
    CHECK_FALSE(block_ns(profile(6), 10));
}

TEST_CASE("the curve: time of a launch by CTAs on all multiprocessors, pruned", "[translate]") {
    Profile measured = profile(6);
    measured.times[{10, 1}] = {2, 100, 0, 100'000};  // 1000 ns a block
    measured.times[{10, 2}] = {1, 100, 0, 50'000};
    measured.times[{10, 3}] = {1, 100, 0, 60'000};  // no faster than two: pruned
    measured.times[{10, 4}] = {4, 400, 0, 160'000};
    measured.times[{5, 4}] = {1, 100, 0, 1};  // of half the device
    const schedule::Profile known = translate(measured, {}, translated_device());
    CHECK(known.configurations == std::vector<models::Configuration>{{1, 64'000}, {2, 32'000}, {4, 25'600}});
    CHECK(known.by_ctas ==
          std::vector<models::Configuration>{{1, 64'000}, {2, 32'000}, {3, 38'400}, {4, 25'600}});
    CHECK(*block_ns(measured, 10) == Approx(400));
}

TEST_CASE("one point is no curve", "[translate]") {
    Profile measured = profile(6);
    measured.times[{10, 8}] = {1, 100, 0, 100'000};
    CHECK(translate(measured, {}, translated_device()).configurations.empty());
    CHECK(*block_ns(measured, 10) == Approx(1000));
}

TEST_CASE("saturation: from one multiprocessor and all of them", "[translate]") {
    Profile measured = profile(6);
    measured.times[{1, 1}] = {1, 10, 0, 10'000};      // 1 block a us
    measured.times[{10, 1}] = {1, 600, 0, 100'000};   // 6
    measured.times[{1, 2}] = {1, 20, 0, 10'000};      // 2
    measured.times[{10, 2}] = {1, 1000, 0, 100'000};  // 10
    measured.times[{10, 3}] = {1, 1000, 0, 100'000};  // not measured on one
    const schedule::Profile known = translate(measured, {}, translated_device());
    REQUIRE(known.footprint);
    CHECK((known.footprint->sms == 5 && known.footprint->ctas_per_sm == 2));  // 5 * 2 reaches 0.95 of 10
}

TEST_CASE("rates beside others: of what it gets done alone with all CTAs that fit", "[translate]") {
    Profile measured = profile(6);
    const smt::profiler::Key other{"other", "image", {64, 1, 1}, 12, "a device"};
    measured.beside[{other, 3, 5}] = {2, 100, 60'000};
    measured.beside[{other, 1, 7}] = {1, 0, 60'000};  // nothing was done
    measured.beside[{measured.key, 2, 2}] = {1, 50, 40'000};
    const auto rates = [&] {
        std::map<uint64_t, std::pair<double, int>> found;
        for (const schedule::Beside& each : translate(measured, {}, translated_device()).beside)
            found[each.other] = {each.rate, 10 * each.ctas_per_sm + each.other_ctas_per_sm};
        return found;
    };
    CHECK(rates().empty());  // alone it was not measured
    measured.times[{10, 2}] = {1, 100, 0, 45'000};
    measured.times[{10, 4}] = {1, 100, 0, 30'000};  // 300 ns a block
    measured.times[{5, 8}] = {1, 100, 0, 1};
    REQUIRE(rates().size() == 2);
    CHECK(rates().at(identity_of(other)).first == Approx(0.5));
    CHECK(rates().at(identity_of(other)).second == 35);
    CHECK(rates().at(identity_of(measured.key)).first == Approx(0.375));
    measured.resources = {{32, 0, 0, 0, 4}};
    CHECK(rates().at(identity_of(other)).first == Approx(0.5));
    measured.resources = {{32, 0, 0, 0, 8}};  // four are not all
    CHECK(rates().empty());
}

TEST_CASE("an identity is that of kernel, image, block and class of grids, in every process", "[translate]") {
    const smt::profiler::Key key{"kernel", "image", {256, 1, 1}, 6, "a device"};
    CHECK(identity_of(key) == 0x72040a5b2969b04b);
    CHECK(translate(profile(6), {}, translated_device()).identity == identity_of(key));
    smt::profiler::Key elsewhere = key;
    elsewhere.device = "another device";
    CHECK(identity_of(elsewhere) == identity_of(key));
    std::vector<smt::profiler::Key> others(6, key);
    others[0].kernel = "kernel2", others[1].image = "image2", others[2].block = {128, 1, 1},
    others[3].block = {256, 2, 1}, others[4].block = {256, 1, 2}, others[5].grid_class = 7;
    for (const smt::profiler::Key& other : others) CHECK(identity_of(other) != identity_of(key));
}

TEST_CASE("what a stop costs is a mean", "[translate]") {
    Profile measured = profile(6);
    measured.preemption = {4, 100'000};
    CHECK(translate(measured, {}, translated_device()).preemption == std::chrono::nanoseconds(25'000));
}

TEST_CASE("the mix of instructions, at the clock of the counting", "[translate]") {
    Profile counted = profile(6);
    counted.counters = {100, 1000, 20'000, 2'000, 500, 3'000, 1'000};
    counted.coefficients["counted.hertz"] = 2e9;
    const schedule::Profile known = translate(counted, {}, translated_device());
    REQUIRE(known.mix);
    // 2000 cycles of 40 instructions; the memory's 20 sectors a cycle of 1 GHz are 10 of 2 GHz.
    CHECK(known.mix->utilization.pur == Approx(20'000 / (2'000 * 40.0)));
    CHECK(known.mix->utilization.mur == Approx(4'000 / (2'000 * 10.0)));
    CHECK(known.mix->memory_ratio == Approx(0.1));
    CHECK(known.mix->uncoalesced_ratio == Approx(0.25));
    CHECK(known.mix->instructions_per_block == Approx(200));
}

TEST_CASE("waits, with the device as it was when they were counted", "[translate]") {
    Profile counted = profile(6);
    counted.counters = {
        100, 1000,  20'000, 2'000,
        500, 3'000, 1'000};  // R_m 0.1; two sectors of 32 bytes for each memory instruction: half a request
    CHECK_FALSE(translate(counted, {}, translated_device()).mix->waits);  // by an older server
    counted.coefficients = {{"device.multiprocessors", 10},
                            {"counted.hertz", 1e9},
                            {"peak.requests_per_cycle", 16},
                            {"counted.occupancy", 0.5},
                            {"counted.issue_slot_utilization", 0.5},
                            {"counted.waits.issue", 2},
                            {"counted.waits.pipe", 0.5},
                            {"counted.waits.mio", 0.5},
                            {"counted.waits.memory", 7},
                            {"counted.waits.queue", 2},
                            {"counted.pipes.fma", 0.25}};
    const schedule::Profile known = translate(profile(6), {counted}, translated_device());
    REQUIRE((known.mix && known.mix->waits));
    const models::Waits& waits = *known.mix->waits;
    CHECK(waits.interval == Approx(16 - 3 - 9));  // eight warps, half an instruction a cycle
    CHECK(waits.requests == Approx(0.5));
    CHECK(waits.pipes[1] == Approx(0.5));
    CHECK(waits.latency ==
          Approx(90 * (1 - 0.5 * 0.1 * 0.5 / 0.1)));  // a scheduler's part of memory serves 0.1 requests a
                                                      // cycle, of which it had a quarter
    for (const char* missing : {"peak.requests_per_cycle", "counted.issue_slot_utilization",
                                "counted.occupancy", "device.multiprocessors"}) {
        Profile other = counted;
        other.coefficients.erase(missing);
        CHECK_FALSE(waits_of(other));
    }
}

TEST_CASE("a mix of another class of grids is as good as one's own", "[translate]") {
    Profile counted = profile(9);
    counted.counters = {100, 1000, 20'000, 2'000, 500, 3'000, 1'000};
    const schedule::Profile known = translate(profile(6), {profile(7), counted}, translated_device());
    REQUIRE(known.mix);
    CHECK(known.mix->instructions_per_block == Approx(200));
    CHECK_FALSE(translate(profile(6), {profile(7)}, translated_device()).mix);
}
