// What is said of a service's target: by requests that slo sees live, with the clock of the test.
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/dispatch/two_tenants.h"

namespace smt::runtime::dispatch {

using namespace std::chrono_literals;
using tests::comes;
using tests::TwoTenants;
using Standing = schedule::Attained::State;

namespace {

struct Served : TwoTenants {
    explicit Served(const schedule::Target& target)
        : TwoTenants(schedule::make_policy("slo"), 0, 0, target) {}
    // A request of so long, beside which the other tenant has work, if it may have any.
    void request(schedule::Duration time) {
        REQUIRE(launch(*first) == CUDA_SUCCESS);
        REQUIRE(launch(*second) == CUDA_SUCCESS);
        pass(time);
        end(*first);
        // The other one goes on, or was stopped when it was over: the thread may see a request that late.
        CHECK(comes([&] {
            pass(1ms);
            dispatcher.look_again();
            gpu.run();
            schedule::Kernel kernel;
            return second->passes_through() || !second->describe(&kernel);
        }));
        end(*second);
    }
    Standing standing() const { return static_cast<Standing>(one->attainment.state.load()); }
    // How often the journal says so.
    int told(const std::string& what) {
        std::ifstream file(folder.file("journal"), std::ios::binary);
        std::ostringstream all;
        all << file.rdbuf();
        const std::string text = all.str();
        int count = 0;
        for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
        return count;
    }
};

}  // namespace

TEST_CASE("attained: a target that is kept, with what was seen and the headroom", "[solo]") {
    Served it({.p99 = 10ms});
    CHECK(it.one->attainment.state == Attainment::kNothing);
    it.request(2ms);
    it.request(2ms);
    CHECK(it.standing() == Standing::kLearning);
    for (int i = 0; i < 12; ++i) it.request(2ms);
    CHECK(it.standing() == Standing::kKept);
    CHECK(it.one->attainment.seen_p99_ns == std::chrono::nanoseconds(2ms).count());
    CHECK(it.one->attainment.headroom_thousandths == 800);
    CHECK(it.one->attainment.multiprocessors > 0);
    CHECK(it.told("its target cannot be kept") == 0);
}

TEST_CASE("attained: a target that cannot be kept is told, in the journal once", "[solo]") {
    Served it({.p99 = 1ms});
    for (int i = 0; i < 30; ++i) it.request(2ms);
    CHECK(it.standing() == Standing::kNotKept);
    CHECK(it.one->attainment.seen_p99_ns == std::chrono::nanoseconds(2ms).count());
    CHECK(it.one->attainment.headroom_thousandths == -1000);
    CHECK(it.one->attainment.multiprocessors == 0);
    CHECK(it.told("its target cannot be kept: 99 % of its requests take up to 2.00 ms, 100 % above it, with "
                  "all best-effort tenants stopped") == 1);
}

}  // namespace smt::runtime::dispatch
