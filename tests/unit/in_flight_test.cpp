// What is under way on a stream when a fault comes, and what the report makes of it.
#include "runtime/server/in_flight.h"

#include <atomic>
#include <catch2/catch.hpp>

#include "runtime/server/fault_report.h"

using namespace smt::runtime::server;

TEST_CASE("in flight: launches from before the driver's call until a synchronisation", "[in_flight]") {
    InFlight stream;
    CHECK(stream.under_way(0).operations == 0);
    stream.name(stream.begin(), 7);
    stream.begin();  // a copy
    stream.name(stream.begin(), 9);
    UnderWay all = stream.under_way(0);
    CHECK((all.operations == 3 && all.launches == 2 && all.kernels == std::set<uint32_t>{7, 9} && !all.more));
    CHECK(stream.under_way(1).kernels == std::set<uint32_t>{9});
    CHECK_FALSE(stream.under_way(3).suspect());
    stream.begin();
    CHECK((stream.under_way(3).operations == 1 && !stream.under_way(3).suspect()));  // a copy is no kernel
}

TEST_CASE("in flight: records that had no effect are not under way", "[in_flight]") {
    InFlight stream;
    stream.name(stream.begin(), 5);  // complete
    const uint64_t failed = stream.begin();
    stream.name(failed, 6);
    CHECK(stream.under_way(1).suspect());
    stream.withdraw(failed);
    CHECK(stream.under_way(1).operations == 0);
    CHECK(!stream.under_way(1).suspect());
    // What was enqueued before is under way all the same.
    CHECK(stream.under_way(0).operations == 1);
    CHECK(stream.under_way(0).kernels == std::set<uint32_t>{5});
    stream.name(stream.begin(), 7);
    stream.withdraw_last();
    CHECK(!stream.under_way(1).suspect());
}

TEST_CASE("in flight: the kernels of the newest records are known", "[in_flight]") {
    InFlight stream;
    stream.name(stream.begin(), 1);
    for (uint64_t i = 0; i < InFlight::kNamed; ++i) stream.name(stream.begin(), 2);
    CHECK((stream.under_way(0).more && stream.under_way(0).kernels == std::set<uint32_t>{2}));
    CHECK_FALSE(stream.under_way(1).more);
    for (uint64_t i = 0; i < InFlight::kNamed; ++i) stream.begin();
    CHECK((stream.under_way(0).suspect() && stream.under_way(0).launches == 0));  // earlier ones may be
}

TEST_CASE("in flight: launches that have not begun do not count", "[in_flight]") {
    InFlight stream;
    stream.name(stream.begin(), 5);
    stream.name(stream.begin(), 6);
    stream.name(stream.begin(), 6);
    CHECK(stream.under_way(0, {6}).launches == 2);  // one of two
    CHECK(stream.under_way(0, {6, 6}).kernels == std::set<uint32_t>{5});
    CHECK_FALSE(stream.under_way(0, {5, 6, 6}).suspect());
    CHECK(stream.under_way(0, {5, 6, 6}).operations == 0);
    // More than have names: they are the newest, and earlier ones may be under way.
    InFlight many;
    many.name(many.begin(), 5);
    for (uint64_t i = 0; i < 2 * InFlight::kNamed; ++i) many.name(many.begin(), 6);
    const std::vector<uint32_t> held(2 * InFlight::kNamed, 6);
    CHECK(many.under_way(0, held).more);
    CHECK_FALSE(many.under_way(1, held).suspect());
}

TEST_CASE("in flight: a completion word says what is over", "[in_flight]") {
    InFlight stream;
    std::atomic<uint64_t> word{4};
    stream.name(stream.begin(), 1);
    stream.begin();
    stream.ends_at(word, 5, 2);
    CHECK(stream.under_way(0).suspect());
    word = 5;
    CHECK(stream.under_way(0).operations == 0);
    stream.name(stream.begin(), 3);
    CHECK((stream.under_way(0).operations == 1 && stream.under_way(0).kernels == std::set<uint32_t>{3}));
    stream.ends_at(word, 6, 3);  // the word of the last operation counts
    CHECK(stream.under_way(0).operations == 3);
}

TEST_CASE("fault report: what is certain is said, and no more", "[fault_report]") {
    const std::string error = "CUDA_ERROR_ILLEGAL_ADDRESS (700)";
    const auto report = [&](std::vector<Suspect> suspects) {
        return report_fault(error, "no dump", suspects);
    };
    const Suspect idle{"tenant idle (i, pid 1)", 0, 0, {}, false},
        copies{"tenant copies (c, pid 2)", 3, 0, {}};
    const Suspect one{"tenant one (o, pid 3)", 1, 1, {"add"}, false};
    const Suspect row{"tenant row (r, pid 4)", 9, 8, {"add"}, false};
    const Suspect many{"tenant many (m, pid 5)", 40, 3, {"a", "b"}, true};
    CHECK(report({idle, one, copies}) ==
          error + " in kernel add of tenant one (o, pid 3): the only launch under way");
    CHECK(report({row}) == error + " in kernel add of tenant row (r, pid 4): no other kernel was under way");
    CHECK(report({idle, many}) == error +
                                      " in a kernel of tenant many (m, pid 5): kernels a, b and earlier "
                                      "ones (which one is not known: no dump)");
    CHECK(report({one, row, idle}) ==
          error +
              "; of which kernel is not known (no dump). Under way was work of tenant one (o, pid 3): "
              "kernel add; tenant row (r, pid 4): kernel add");
    CHECK(report({idle}) ==
          error + "; of which kernel is not known (no dump), and no tenant has a launch under way");
    CHECK(report_cleared({idle, one, copies}) ==
          "It was no kernel of tenant idle (i, pid 1), tenant copies (c, pid 2)");
    CHECK(report_cleared({one}).empty());
    CHECK(report_cleared(std::vector<Suspect>(6, idle)).find("and 2 more") != std::string::npos);
}
