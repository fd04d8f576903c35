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
)");
    CHECK(KernelTable().empty());
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
