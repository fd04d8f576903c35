// The table of what ran, and how.
#include "tools/smt/kernels_view.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

namespace smt::tools {
namespace {

using Json = nlohmann::json;

const KernelTable::Key kScan{"alice", "scan(float*)", "managed by PTX"};
const KernelTable::Key kSgemm{"alice", "sgemm", "unmanaged: it holds machine code only"};

KernelTable table() {
    KernelTable made;
    for (int i = 0; i < 3; ++i) made.add_launch(kScan, "_Z4scanPf");
    made.add_launch(kSgemm, "sgemm");
    made.add_into_graph(kSgemm, "sgemm");
    made.add_launch({"bob", "scan(float*)", "unmanaged: it runs as a part of a graph: twice"}, "_Z4scanPf");
    return made;
}

TEST_CASE("what a launch was run as, in two parts", "[command]") {
    CHECK(treatment_of("managed by PTX").how == "managed by PTX");
    CHECK(treatment_of("managed by PTX").reason.empty());
    CHECK(treatment_of("unmanaged: calls f: no text").how == "unmanaged");
    CHECK(treatment_of("unmanaged: calls f: no text").reason == "calls f: no text");
    CHECK(treatment_of("").how == "not known");
}

TEST_CASE("the table of kernels", "[command]") {
    CHECK(table().text() == R"(tenant            launches to graphs  how                kernel
alice                    3         0  managed by PTX     scan(float*)
alice                    1         1  unmanaged          sgemm
                                      it holds machine code only
bob                      1         0  unmanaged          scan(float*)
                                      it runs as a part of a graph: twice

launches: 3 managed by PTX, 2 unmanaged
GPU time by kernel: not known; the server estimates it with gpu_time in SMT_JOURNAL
)");
    CHECK(KernelTable().empty());
}

const KernelTable::Key kGemm{"alice", "gemm", "has a door: it holds machine code only"};

KernelTable timed_table() {
    KernelTable made = table();
    made.add_launch(kGemm, "gemm");
    made.set_time(kScan, "_Z4scanPf", 1, {1'000'000, 0, 1});
    made.set_time(kScan, "_Z4scanPf", 1, {3'000'000, 1'000'000, 2});  // so far: in place of the earlier one
    made.set_time(kScan, "_Z4scanPf", 2, {1'000'000, 0, 1});
    made.set_time(kSgemm, "sgemm", 1, {1'000'000, 1'000'000, 1});
    made.set_time(kGemm, "gemm", 1, {5'000'000, 4'000'000, 1});
    return made;
}

TEST_CASE("the table of kernels with GPU times: what part of it can be stopped", "[command]") {
    CHECK(timed_table().text() ==
          R"(tenant            launches to graphs      GPU ms   share  how                kernel
alice                    1         0       5.000  50.0 %  has a door         gemm
                                                          it holds machine code only
alice                    3         0       4.000  40.0 %  managed by PTX     scan(float*)
alice                    1         1       1.000  10.0 %  unmanaged          sgemm
                                                          it holds machine code only
bob                      1         0       0.000   0.0 %  unmanaged          scan(float*)
                                                          it runs as a part of a graph: twice

launches: 1 has a door, 3 managed by PTX, 2 unmanaged

GPU time, estimated from when the server saw launches end: 10.000 ms
   40.0 %  in launches that can be stopped between two blocks
   50.0 %  in such launches whose blocks all run at once: a stop takes no effect before their end
   10.0 %  in launches that cannot be stopped
   10.0 %    it holds machine code only
)");
}

TEST_CASE("the table of kernels with GPU times for programs", "[command]") {
    std::istringstream lines(timed_table().json());
    std::vector<Json> rows;
    for (std::string line; std::getline(lines, line);) rows.push_back(Json::parse(line));
    REQUIRE(rows.size() == 4);
    CHECK(rows[0]["kernel"] == "gemm");
    CHECK(rows[0]["gpu_ns"] == 5'000'000);
    CHECK(rows[0]["gpu_ns_one_wave"] == 4'000'000);
    CHECK(rows[0]["gpu_share"] == 0.5);
    CHECK(rows[0]["stoppable"] == true);
    CHECK(rows[1]["gpu_ns"] == 4'000'000);
    CHECK(rows[1]["gpu_launches"] == 3);
    CHECK(rows[2]["stoppable"] == false);
}

TEST_CASE("the table of kernels for programs", "[command]") {
    std::istringstream lines(table().json());
    std::vector<Json> rows;
    for (std::string line; std::getline(lines, line);) rows.push_back(Json::parse(line));
    REQUIRE(rows.size() == 3);
    CHECK(rows[0] == Json{{"tenant", "alice"},
                          {"kernel", "scan(float*)"},
                          {"symbol", "_Z4scanPf"},
                          {"how", "managed by PTX"},
                          {"reason", ""},
                          {"launches", 3},
                          {"into_graphs", 0}});
    CHECK(rows[1]["reason"] == "it holds machine code only");
    CHECK(rows[1]["into_graphs"] == 1);
    CHECK(rows[2]["tenant"] == "bob");
}

}  // namespace
}  // namespace smt::tools
