#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tools/smt/profile_rows.h"

using namespace smt::tools;
using smt::profiler::Profile;

namespace {

Profile swept() {
    Profile one;
    one.key = {"_Z5scalePfi", "image", {256, 1, 1}, 10, "a device"};
    one.resources = {32, 0, 1024, 0, 4};
    one.coefficients = {{"device.multiprocessors", 10}, {"managed", 1}};
    one.times[{10, 1}] = {3, 3000, 0, 6'000'000};
    one.times[{10, 4}] = {10, 10'240, 0, 5'120'000};
    one.times[{1, 1}] = {3, 24, 0, 480'000};
    one.times[{1, 4}] = {3, 96, 0, 480'000};
    one.preemption = {50, 500'000};
    return one;
}

Profile counted() {
    Profile one = swept();
    one.counters = {1024, 512'000, 10'240'000, 1'024'000, 0, 40'000, 20'000};
    one.coefficients.insert({{"counted.hertz", 1e9},
                             {"counted.ipc", 20},
                             {"counted.issue_slot_utilization", 0.5},
                             {"counted.occupancy", 0.9},
                             {"counted.ctas_per_sm", 4},
                             {"peak.instructions_per_cycle", 40},
                             {"peak.requests_per_cycle", 20}});
    return one;
}

// Two kernels of which each has run beside the other, and one beside itself.
std::vector<Profile> beside_each_other() {
    Profile first = counted(), second = swept();
    second.key.kernel = "_Z5otherv";
    first.beside[{second.key, 1, 3}] = {2, 1000, 1'000'000};  // half of its rate alone
    second.beside[{first.key, 3, 1}] = {2, 1500, 1'000'000};  // three quarters
    first.beside[{second.key, 3, 1}] = {2, 1200, 1'000'000};
    second.beside[{first.key, 1, 3}] = {2, 1200, 1'000'000};
    first.beside[{second.key, 2, 2}] = {2, 1900, 1'000'000};  // of the other one nothing is known there
    first.beside[{first.key, 2, 2}] = {2, 900, 1'000'000};
    return {first, second};
}

size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

}  // namespace

TEST_CASE("names of kernels are short", "[rows]") {
    CHECK(short_name("_Z5scalePfi") == "scale");
    CHECK(short_name("plain_c") == "plain_c");
    CHECK(short_name("_ZN2ns6kernelIfLi4EEEvPT_i") == "ns::kernel<float, 4>");
    CHECK(short_name("_ZN12_GLOBAL__N_15innerEPf") == "(anonymous namespace)::inner");
}

TEST_CASE("a row has what was measured, and nothing else", "[rows]") {
    const std::vector<Profile> profiles = {swept()};
    const ProfileRow row = rows_of(profiles).at(0);
    CHECK((row.name == "scale" && row.managed && row.multiprocessors == 10));
    CHECK(*row.launch_ns == Approx(512'000));
    CHECK(*row.block_ns == Approx(500));
    CHECK(*row.stop_ns == Approx(10'000));
    CHECK_FALSE((row.utilization || row.issue_slots || row.ipc || row.predicted_ipc));
    CHECK(row.by_ctas.points == std::vector<std::pair<int, double>>{{1, 2000}, {4, 500}});
    CHECK(row.by_sms.points == std::vector<std::pair<int, double>>{{1, 5000}, {10, 500}});
    REQUIRE(row.saturation);
    CHECK((row.saturation->sms == 10 && row.saturation->ctas_per_sm == 4));
}

TEST_CASE("a row of counters has PUR, MUR and what the Markov model says of them", "[rows]") {
    const std::vector<Profile> profiles = {counted()};
    const ProfileRow row = rows_of(profiles).at(0);
    REQUIRE(row.utilization);
    CHECK(row.utilization->pur == Approx(10'240'000 / (512'000 * 40.0)));
    CHECK(row.utilization->mur == Approx(60'000 / (512'000 * 20.0)));
    CHECK(row.memory_ratio == Approx(0.1));
    CHECK(*row.ipc == Approx(2));
    REQUIRE(row.predicted_ipc);
    CHECK((*row.predicted_ipc > 0 && *row.predicted_ipc <= 4));
}

TEST_CASE("a device of one warp scheduler issues one instruction a cycle", "[rows]") {
    Profile wide = counted();
    wide.counters.memory_instructions = 10'240;  // few: it computes
    Profile narrow = wide;
    narrow.coefficients["peak.instructions_per_cycle"] = 10;  // of ten multiprocessors
    const std::vector<Profile> two = {wide, narrow};
    const std::vector<ProfileRow> rows = rows_of(two);
    REQUIRE((rows[0].predicted_ipc && rows[1].predicted_ipc));
    CHECK(*rows[0].predicted_ipc > 1);
    CHECK(*rows[1].predicted_ipc <= 1);
}

TEST_CASE("the table leaves out what no kernel has", "[rows]") {
    const std::vector<Profile> one = {swept()}, two = {swept(), counted()};
    const std::string table = table_of(rows_of(one));
    CHECK(table.find("PUR") == std::string::npos);
    CHECK(table.find("saturates") != std::string::npos);
    CHECK(count(table, "\n") == 2);
    CHECK(table_of(rows_of(two)).find("PUR") != std::string::npos);
}

TEST_CASE("JSON for scripts", "[rows]") {
    const std::vector<Profile> profiles = {counted()};
    const nlohmann::json all = nlohmann::json::parse(json_of(rows_of(profiles)));
    REQUIRE(all.size() == 1);
    CHECK(all[0]["kernel"] == "scale");
    CHECK(all[0]["pur"].get<double>() == Approx(0.5));
    CHECK(all[0]["block_ns_by_ctas"] == nlohmann::json::parse("[[1, 2000.0], [4, 500.0]]"));
    CHECK(all[0]["saturation"]["sms"] == 10);
    CHECK_FALSE(all[0].contains("duration_error"));
}

TEST_CASE("pairs that were measured have a row for each combination, and the best one among the models'",
          "[rows]") {
    const std::vector<Profile> profiles = beside_each_other();
    const std::vector<ProfileRow> rows = rows_of(profiles);
    const std::vector<MeasuredRow> measured = measured_of(rows);
    REQUIRE(measured.size() == 3);
    CHECK((measured[0].first == &rows[0] && measured[0].second == &rows[0] &&
           measured[0].measured.profit == Approx(1 - 1 / 0.9)));
    CHECK((measured[0].paper && measured[0].told));  // it was counted
    CHECK(measured[1].measured.blocks == smt::profiler::models::Blocks{1, 3});
    CHECK(measured[1].measured.together[0] == Approx(0.5));
    CHECK(measured[1].measured.together[1] == Approx(0.75));
    CHECK(measured[1].measured.profit == Approx(0.2));
    CHECK_FALSE((measured[1].paper || measured[1].told));
    const std::string table = table_of(measured);
    CHECK(table.find("scale                        other                          1   3   0.500   0.750     "
                     "20.0%       -       -\n") != std::string::npos);
    CHECK(count(table, "\n") == 5);

    const std::vector<PairRow> pairs = pairs_of(rows);
    REQUIRE(pairs.size() == 2);
    CHECK((pairs[0].told && pairs[0].measured));
    CHECK((!pairs[1].told && pairs[1].measured->profit == Approx(0.2)));
    CHECK(table_of(pairs).find("1 3: 20.0%\n") != std::string::npos);
    CHECK(table_of(pairs).find("--pair") == std::string::npos);
    const nlohmann::json json = nlohmann::json::parse(json_of(pairs));
    CHECK((json[0].contains("told") && !json[1].contains("told") && !json[1].contains("blocks")));
    CHECK(json[1]["measured"]["blocks"] == nlohmann::json::parse("[1, 3]"));
    CHECK(json[1]["measured"]["profit"].get<double>() == Approx(0.2));

    const nlohmann::json all = nlohmann::json::parse(json_of(measured));
    REQUIRE(all.size() == 3);
    CHECK((all[1]["first"]["symbol"] == profiles[0].key.kernel &&
           all[1]["second"]["grid_class"] == profiles[1].key.grid_class));
    CHECK((all[1]["rates"][0].get<double>() == Approx(0.5) && !all[1].contains("refused")));

    std::vector<Profile> elsewhere = profiles;
    elsewhere[1].key.device = "another device";
    CHECK(measured_of(rows_of(elsewhere)).size() == 1);
    const std::vector<Profile> alone = {counted()};
    CHECK_FALSE(pairs_of(rows_of(alone)).at(0).measured);
    CHECK(table_of(pairs_of(rows_of(alone))).find("smt profile --pair") != std::string::npos);
}

TEST_CASE("rates that keep a pipe busier than it can be are refused, with the reason", "[rows]") {
    Profile first = counted(), second = counted();  // PUR is 0.5
    second.key.kernel = "_Z5otherv";
    first.beside = {{{second.key, 1, 3}, {2, 2400, 1'000'000}},
                    {{second.key, 2, 2}, {2, 1000, 1'000'000}}};  // 1.2 and 0.5 of its rate alone
    second.beside = {{{first.key, 3, 1}, {2, 2200, 1'000'000}}, {{first.key, 2, 2}, {2, 1600, 1'000'000}}};
    const std::vector<Profile> profiles = {first, second};
    const std::vector<ProfileRow> rows = rows_of(profiles);
    const std::vector<MeasuredRow> measured = measured_of(rows);
    REQUIRE(measured.size() == 2);
    REQUIRE(measured[0].refused);
    CHECK(measured[0].refused->busy == Approx(0.5 * 1.2 + 0.5 * 1.1));
    CHECK_FALSE(measured[1].refused);
    CHECK(table_of(measured).find("refused: that would take 115 % of the issue slots\n") !=
          std::string::npos);
    CHECK(nlohmann::json::parse(json_of(measured))[0]["refused"]["pipe"] == "issue slots");
    CHECK(pairs_of(rows).at(1).measured->blocks ==
          smt::profiler::models::Blocks{2, 2});  // the best of those that can be
}

TEST_CASE("curves are drawn of what was swept", "[rows]") {
    Profile plain = swept();
    plain.times.erase({10, 1});
    plain.times.erase({1, 1});
    plain.times.erase({1, 4});
    const std::vector<Profile> none = {plain}, two = {swept(), plain, counted()};
    CHECK(plot_of(rows_of(none)).empty());
    const std::string svg = plot_of(rows_of(two));
    CHECK(svg.starts_with("<svg"));
    CHECK(count(svg, "<polyline") == 4);  // two kernels, two charts
    Profile odd = swept();
    odd.key.kernel = "_ZN2ns6kernelIfLi4EEEvPT_i";
    const std::vector<Profile> one = {odd};
    CHECK(plot_of(rows_of(one)).find("kernel&lt;float, 4&gt;") != std::string::npos);
}

TEST_CASE("durations are fitted over classes of grids", "[rows]") {
    std::vector<Profile> profiles;
    for (int64_t grids = 10; grids < 14; ++grids) {
        Profile one = swept();
        one.key.grid_class = grids;
        const int64_t blocks = int64_t{1} << grids;
        one.times = {{{10, 4}, {2, 2 * blocks, 2 * blocks * 1024, 2 * (5'000 + blocks * 10)}}};
        profiles.push_back(one);
    }
    const std::vector<Profile> fitted = fitted_durations(profiles);
    REQUIRE(fitted.size() == 4);
    CHECK(fitted[0].coefficients.at("duration.sizes") == 4);
    CHECK(fitted[0].coefficients.at("duration.held_out_error") < 0.1);         // a line it is
    CHECK(fitted[0].coefficients.count("duration.held_out_error_long") == 0);  // none takes 100 us
    CHECK(fitted[0].key.grid_class == 10);
    CHECK(fitted[0].times.empty());  // what is recorded is added
    CHECK(fitted_durations({profiles[0]}).empty());
}

TEST_CASE("how far off durations are is told of long launches by themselves", "[rows]") {
    std::vector<Profile> profiles;
    for (int64_t grids : {4, 14, 15, 16}) {
        Profile one = swept();
        one.key.grid_class = grids;
        const int64_t blocks = int64_t{1} << grids;
        one.times = {
            {{10, 4},
             {1, blocks, 0, blocks * 100 + (grids == 14 ? 40'000 : 0)}}};  // the shortest takes 1.6 us
        profiles.push_back(one);
    }
    const auto coefficients = fitted_durations(profiles).at(0).coefficients;
    CHECK(coefficients.at("duration.held_out_error") > 1);
    CHECK(coefficients.at("duration.held_out_error_long") < 0.1);
}
