// What `smt status` makes of a journal.
#include "tools/smt/usage.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "tools/smt/status_view.h"

namespace smt::tools {
namespace {

using runtime::journal::Entry;
using runtime::journal::Kind;

Entry entry(Kind kind, uint32_t session, uint64_t time_ns, uint64_t start = 0, uint64_t end = 0,
            uint64_t sms = 0) {
    Entry made;
    made.kind = kind;
    made.session = session;
    made.time_ns = time_ns;
    made.start_ns = start;
    made.end_ns = end;
    made.multiprocessors[0] = sms;
    return made;
}

Entry on_clock(Entry entry) {
    entry.virtual_time = 1;
    return entry;
}

TEST_CASE("what is not known is not shown", "[usage]") {
    CHECK(recent_use({}, 5000, 9000, 8).seconds == 0);
    const RecentUse use =
        recent_use({entry(Kind::kSessionOpened, 1, 1000), entry(Kind::kLaunch, 1, 2000)}, 5000, 3000, 8);
    CHECK(use.seconds == Approx(2e-6));  // the journal is no older
    CHECK(use.by_session.at(1).launches_per_second == Approx(5e5));
    CHECK_FALSE(use.by_session.at(1).busy);
    CHECK_FALSE(use.by_session.at(1).multiprocessors);
}

TEST_CASE("timed launches: what overlaps counts once, what is outside not at all", "[usage]") {
    const std::vector<Entry> entries = {
        entry(Kind::kLaunch, 1, 1000, 1000, 2000), entry(Kind::kLaunch, 1, 5000, 5000, 7000),
        entry(Kind::kLaunch, 1, 6000, 6500, 7500), entry(Kind::kLaunch, 1, 9000, 9500, 12'000),
        entry(Kind::kLaunch, 2, 1000, 1000, 2000, 0b11)};  // confined: where it may have run
    const RecentUse use = recent_use(entries, 6000, 10'000, 2);
    CHECK(use.seconds == Approx(6e-6));
    CHECK(*use.by_session.at(1).busy == Approx(3000.0 / 6000));
    CHECK(use.by_session.at(1).launches_per_second == Approx(3 / 6e-6));
    CHECK_FALSE(use.by_session.at(1).multiprocessors);
    CHECK(*use.by_session.at(2).busy == 0);
    CHECK_FALSE(use.by_session.at(2).multiprocessors);
}

TEST_CASE("workers say on which multiprocessors, by the GPU's timer", "[usage]") {
    // The timer is 1000 ahead.
    const std::vector<Entry> entries = {entry(Kind::kNote, 0, 0, 0, 0),
                                        entry(Kind::kMapping, 1, 4000, 3000, 5000, 0b01),
                                        entry(Kind::kMapping, 1, 6000, 4000, 6000, 0b11)};
    const RecentUse use = recent_use(entries, 10'000, 10'000, 2);
    CHECK(*use.by_session.at(1).busy == Approx(0.3));  // 2000 to 5000
    CHECK(*use.by_session.at(1).multiprocessors == Approx((3000.0 + 2000) / 20'000));
    CHECK(use.by_session.at(1).launches_per_second == 0);
}

TEST_CASE("a simulated device's clock ends with its newest entry", "[usage]") {
    const std::vector<Entry> entries = {entry(Kind::kNote, 0, 77'777'777),
                                        on_clock(entry(Kind::kLaunch, 1, 0, 0, 400, 0b1111)),
                                        on_clock(entry(Kind::kLaunch, 2, 500, 500, 1000, 0b0011))};
    const RecentUse use = recent_use(entries, 1'000'000, 99'999'999, 4);
    CHECK(use.seconds == Approx(1e-6));
    CHECK(*use.by_session.at(1).multiprocessors == Approx(0.4));
    CHECK(*use.by_session.at(2).multiprocessors == Approx(0.25));
    CHECK(*use.by_session.at(2).busy == Approx(0.5));
}

TEST_CASE("a status as text", "[usage]") {
    ServerStatus status;
    status.key = "k";
    std::strcpy(status.server.device, "a GPU");
    std::strcpy(status.server.policy, "fifo");
    status.server.uptime_ms = 1500;
    status.tenants.resize(2);
    std::strcpy(status.tenants[0].tenant, "alice");
    status.tenants[0].session = 1;
    status.tenants[0].priority = -2;
    status.tenants[0].weight = 0.5;
    status.tenants[0].memory_limit = 4ull << 30;
    std::strcpy(status.tenants[1].tenant, "bob");
    status.tenants[1].session = 2;
    status.tenants[1].device_bytes = 3 << 19;
    status.tenants[1].host_bytes = 12 << 20;
    status.tenants[1].launches = 77;
    status.tenants[1].gone = 1;
    status.tenants[1].fenced = 1;
    status.tenants[0].waited_ms = 1234;
    std::strcpy(status.tenants[0].waits_for, "cuStreamWaitValue32 of bob");
    status.tenants[0].suspended = 1;
    status.tenants[0].away_bytes = 64 << 20;
    RecentUse use{2, {}};
    use.by_session[2] = {10, 0.5, 0.125};
    CHECK(status_text(status, use) ==
          "server k: a GPU, policy fifo, up 1.5 s, 2 sessions; busy and SMs in % of the last 2 s\n"
          "  tenant               session  process priority  weight       memory        limit         host   "
          "launches   a second   busy    SMs\n"
          "  alice                      1        0       -2     0.5      0.0 MiB   4096.0 MiB      0.0 MiB   "
          "       0        0.0      -      -\n"
          "  bob                        2     gone        0       1      1.5 MiB            -     12.0 MiB   "
          "      77       10.0   50.0   12.5\n"
          "  alice waits 1.2 s for cuStreamWaitValue32 of bob\n"
          "  alice is suspended, 64.0 MiB in host memory\n"
          "  bob is fenced: a fault of its kernels ends no other tenant\n"
          "  bob is gone: its program has ended, and its work on the GPU has not\n");
    status.tenants[0].file_bytes = 48 << 20;
    CHECK(status_text(status, use)
              .find("  alice is suspended, 16.0 MiB in host memory and 48.0 MiB in files\n") !=
          std::string::npos);
}

TEST_CASE("a status of a suspended tenant in JSON", "[usage]") {
    ServerStatus status;
    status.tenants.resize(1);
    CHECK(status_json(status, {}).find(R"("suspended":false,"out_of_turn":false,"away_bytes":0,)") !=
          std::string::npos);
    status.tenants[0].suspended = 1;
    status.tenants[0].away_bytes = 7;
    status.tenants[0].file_bytes = 5;
    CHECK(status_json(status, {})
              .find(R"("suspended":true,"out_of_turn":false,"away_bytes":7,"file_bytes":5,)") !=
          std::string::npos);
}

TEST_CASE("a status of targets", "[usage]") {
    ServerStatus status;
    status.key = "k";
    std::strcpy(status.server.policy, "slo");
    status.tenants.resize(1);
    protocol::TenantStatus& tenant = status.tenants[0];
    std::strcpy(tenant.tenant, "serve");
    const auto line = [&] {
        const std::string text = status_text(status, {});
        const size_t found = text.find("  serve: ");
        return found == std::string::npos ? "" : text.substr(found + 9);
    };
    CHECK(line().empty());
    CHECK(status_json(status, {}).find("\"target\":null") != std::string::npos);
    tenant.p99_us = 8000;
    CHECK(line() == "target 8 ms at the 99th percentile: no requests beside other tenants yet\n");
    tenant.target_state = protocol::TargetState::kLearning;
    CHECK(line() ==
          "target 8 ms at the 99th percentile: its requests are not known yet; others are stopped for its "
          "requests\n");
    tenant.target_state = protocol::TargetState::kKept;
    tenant.seen_p99_us = 6530;
    tenant.headroom_thousandths = 184;
    tenant.beside = 66;
    CHECK(line() ==
          "target 8 ms at the 99th percentile: 6.53 ms seen, 18 % headroom; others have 66 multiprocessors "
          "beside its requests\n");
    CHECK(status_json(status, {})
              .find(R"("target":{"p99_ms":8.0,"slowdown":null,"state":"kept","seen_p99_ms":6.53,)"
                    R"("headroom":0.184,"others_multiprocessors":66})") != std::string::npos);
    tenant.p99_us = 0;
    tenant.slowdown_thousandths = 1100;
    tenant.target_state = protocol::TargetState::kNotKept;
    tenant.headroom_thousandths = -230;
    tenant.beside = 0;
    CHECK(line() ==
          "target 1.1 times what it has by itself at the 99th percentile: 6.53 ms seen, -23 % headroom; it "
          "cannot be kept: others are stopped for its requests\n");
    std::strcpy(status.server.policy, "fair");
    tenant.target_state = protocol::TargetState::kNone;
    CHECK(line() ==
          "target 1.1 times what it has by itself at the 99th percentile: policy slo alone goes by it\n");
}

}  // namespace
}  // namespace smt::tools
