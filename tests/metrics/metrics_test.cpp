// Figures for Prometheus: the text, and what is added up.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "tests/unit/temporary_folder.h"
#include "tools/http/endpoint.h"
#include "tools/metrics/collector.h"
#include "tools/smt/command.h"
#include "tools/smt/places.h"

namespace smt::tools::metrics {
namespace {

using runtime::journal::Entry;
using runtime::journal::Kind;

TEST_CASE("text: families, samples, escapes", "[metrics]") {
    Exposition out;
    out.family("smt_tenant_launches", Type::kCounter, "Launches.");
    out.sample("_total", {{"tenant", "a \"b\"\\\n"}, {"form", "x"}}, 12);
    out.family("smt_up", Type::kGauge, "Up.");
    out.sample("", {}, 0.25);
    CHECK(out.text() ==
          "# TYPE smt_tenant_launches counter\n"
          "# HELP smt_tenant_launches Launches.\n"
          "smt_tenant_launches_total{tenant=\"a \\\"b\\\"\\\\\\n\",form=\"x\"} 12\n"
          "# TYPE smt_up gauge\n"
          "# HELP smt_up Up.\n"
          "smt_up{} 0.25\n"
          "# EOF\n");
}

TEST_CASE("text: buckets count what is below", "[metrics]") {
    Histogram stops;
    for (const double each : {1e-5, 1.1e-5, 0.9, 5.0}) stops.add(each);
    Exposition out;
    out.family("s", Type::kHistogram, "S.");
    out.histogram({{"tenant", "a"}}, stops);
    const std::string text = out.text();
    const auto has = [&](const char* line) { return text.find(line) != std::string::npos; };
    CHECK(has("s_bucket{tenant=\"a\",le=\"1e-05\"} 1\n"));
    CHECK(has("s_bucket{tenant=\"a\",le=\"2.5e-05\"} 2\n"));
    CHECK(has("s_bucket{tenant=\"a\",le=\"0.5\"} 2\n"));
    CHECK(has("s_bucket{tenant=\"a\",le=\"1\"} 3\n"));
    CHECK(has("s_bucket{tenant=\"a\",le=\"+Inf\"} 4\n"));
    CHECK(has("s_count{tenant=\"a\"} 4\n"));
    CHECK(has("s_sum{tenant=\"a\"} 5.9"));
}

TEST_CASE("text: buckets that were counted elsewhere", "[metrics]") {
    Histogram waits({0.001, 0.1});
    waits.add(0, 3);
    waits.add(2, 1);
    waits.add_sum(7.5);
    CHECK(waits.count() == 4);
    Exposition out;
    out.family("w", Type::kHistogram, "W.");
    out.histogram({}, waits);
    const std::string text = out.text();
    for (const char* line : {"w_bucket{le=\"0.001\"} 3\n", "w_bucket{le=\"0.1\"} 3\n",
                             "w_bucket{le=\"+Inf\"} 4\n", "w_count{} 4\n", "w_sum{} 7.5\n"})
        CHECK(text.find(line) != std::string::npos);
}

TEST_CASE("time of multiprocessors counts each moment once", "[metrics]") {
    SmTime time;
    const uint64_t both[runtime::journal::kPlaceWords] = {1, 0, 0, 1}, one[] = {1, 0, 0, 0};
    time.add(both, 100, 200);
    CHECK(time.ns() == 200);
    time.add(one, 150, 250);  // half of it is new
    CHECK(time.ns() == 250);
    time.add(one, 400, 500);
    time.add(one, 50, 450);  // began before all others, and ends late
    CHECK(time.ns() == 100 + 450);
    time.add(one, 300, 300);
    CHECK(time.ns() == 550);
    time.restart();  // the clock of another server
    time.add(one, 100, 110);
    CHECK(time.ns() == 560);
    for (uint64_t i = 1; i < 1000; ++i) time.add(one, 100 + 20 * i, 110 + 20 * i);
    CHECK(time.ns() == 560 + 9990);
}

TEST_CASE("sessions of several servers add up", "[metrics]") {
    BySession calls;
    calls.set(1, 10);
    calls.set(1, 12);
    calls.set(2, 5);
    CHECK(calls.sum() == 17);
    calls.restart();
    calls.set(1, 3);  // another session
    CHECK(calls.sum() == 20);
}

TEST_CASE("a journal's entries are counted by tenant, and those that are lost", "[metrics]") {
    const tests::TemporaryFolder folder;
    const std::string path = folder.file("journal");
    runtime::journal::Writer writer(path);
    const auto write = [&](Kind kind, uint32_t session, uint32_t name, uint64_t value = 0) {
        Entry entry;
        entry.kind = kind;
        entry.session = session;
        entry.name = name;
        entry.value = value;
        writer.write(entry);
    };
    write(Kind::kNote, 0, 0);
    write(Kind::kSessionOpened, 1, writer.name("alice"));
    write(Kind::kLaunch, 1, writer.name("kernel"), writer.name("unmanaged: it holds machine code only"));
    write(Kind::kLaunch, 1, writer.name("kernel"), writer.name("managed by PTX"));
    write(Kind::kUnsupported, 1, writer.name("cuNever"), 1);
    write(Kind::kUnsupported, 1, writer.name("cuNever"), 4);
    write(Kind::kStopped, 1, writer.name("alice"), 20'000);
    Entry ran;
    ran.kind = Kind::kMapping;
    ran.session = 1;
    ran.start_ns = 1000, ran.end_ns = 1700;
    ran.multiprocessors[0] = 0b110;
    writer.write(ran);
    ran.kind = Kind::kLaunch;  // where it may have run: that is no use of it
    writer.write(ran);
    Entry closed;
    closed.kind = Kind::kSessionClosed;
    closed.session = 1;
    closed.grid[2] = 700;
    writer.write(closed);
    write(Kind::kDecision, 2, 0);  // whose beginning is not there any more
    const runtime::journal::Reader reader(path);
    JournalCount count;
    reader.read(0, [&](const Entry& entry) { count.add(reader, entry); });
    REQUIRE(count.tenants().size() == 2);
    const Tally& alice = count.tenants().at("alice");
    CHECK(alice.sessions == 1);
    CHECK(alice.launches.at("unmanaged") == 1);
    CHECK(alice.launches.at("managed by PTX") == 1);
    CHECK(alice.unsupported.at("cuNever").sum() == 4);
    CHECK(alice.stops.count() == 1);
    CHECK(alice.stops.sum() == Approx(2e-5));
    CHECK(alice.sm_time.ns() == 1400);
    CHECK(alice.faults == std::map<uint32_t, uint64_t>{{700, 1}});
    CHECK(count.tenants().at("unknown").decisions == 1);
    CHECK(count.lost() == 0);

    count.restart();  // another server writes the file
    reader.read(0, [&](const Entry& entry) {
        if (entry.kind != Kind::kNote && entry.kind != Kind::kLaunch) count.add(reader, entry);
    });
    CHECK(alice.sessions == 2);
    CHECK(alice.unsupported.at("cuNever").sum() == 8);
    CHECK(count.lost() == 3);
}

TEST_CASE("the end of a journal counts that another server's has replaced", "[metrics]") {
    const tests::TemporaryFolder folder;
    setenv("SMT_RUNTIME_DIR", folder.file("").c_str(), 1);
    const std::string path = path_of("one", ".journal");
    const auto open = [](runtime::journal::Writer& writer, uint32_t session) {
        Entry entry;
        entry.kind = Kind::kSessionOpened;
        entry.session = session;
        entry.name = writer.name("alice");
        writer.write(entry);
    };
    const auto sessions = [](Collector& collector, int count) {
        const std::string line = "smt_tenant_sessions_total{server=\"one\",tenant=\"alice\"} ";
        const std::string text = collector.collect();
        INFO(text);
        CHECK(text.find(line + std::to_string(count) + "\n") != std::string::npos);
    };
    Collector collector;
    runtime::journal::Writer first(path);
    open(first, 1);
    sessions(collector, 1);
    open(first, 2);  // and then the server ends
    std::filesystem::rename(path, folder.file("before"));
    runtime::journal::Writer second(path);
    open(second, 1);
    sessions(collector, 3);
    unsetenv("SMT_RUNTIME_DIR");
}

TEST_CASE("addresses to listen on", "[metrics]") {
    using http::parse_where, http::Where;
    CHECK(parse_where("9469").port == 9469);
    CHECK(parse_where("127.0.0.1:0").port == 0);
    CHECK(parse_where("[::1]:80").kind == Where::Kind::kIpv6);
    CHECK(parse_where("unix:/run/smt.sock").path == "/run/smt.sock");
    for (const char* wrong : {"", "0.0.0.0:9469", "localhost:9469", "65536", "-1", "9469x", "1K", ":9469"})
        CHECK_THROWS_AS(parse_where(wrong), Misuse);
}

}  // namespace
}  // namespace smt::tools::metrics
