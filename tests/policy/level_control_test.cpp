// The level control on synthetic services: requests whose times depend on the level alone, and on chance.
#include "runtime/schedule/policies/level_control.h"

#include <algorithm>
#include <random>

#include "tests/policy/snapshots.h"

namespace smt::tests {
namespace {

// By level, how long requests take in parts of what is allowed.
struct Response {
    std::vector<double> times;
    double spread = 0.02;  // uniform, to both sides
    double outliers = 0;   // part of requests that take twice as long, whatever the level
};

struct Run {
    int late = 0, requests = 0, moves = 0;
    double level = 0;  // mean
    double share() const { return static_cast<double>(late) / requests; }
};

class Synthetic {
public:
    explicit Synthetic(LevelControl& control) : control_(control) {}
    Run serve(const Response& response, int requests) {
        Run run;
        for (int i = 0; i < requests; ++i) {
            const int level = control_.level();
            double time = response.times[static_cast<size_t>(level)] + response.spread * sides_(random_);
            if (part_(random_) < response.outliers) time *= 2;
            control_.note(time);
            CHECK(control_.level() - level <= 2);  // bounded steps
            run.late += time > 1;
            run.moves += control_.level() != level;
            run.level += static_cast<double>(level) / requests;
            ++run.requests;
        }
        return run;
    }

private:
    LevelControl& control_;
    std::mt19937 random_{7};
    std::uniform_real_distribution<double> sides_{-1, 1}, part_{0, 1};
};

}  // namespace

TEST_CASE("levels: a service that others do not slow down has all of them beside it, soon", "[policy]") {
    LevelControl control(5);
    Synthetic service(control);
    CHECK(control.level() == 0);
    service.serve({{.8, .8, .8, .8, .8, .8}}, 40);
    CHECK(control.level() == 5);
    CHECK(service.serve({{.8, .8, .8, .8, .8, .8}}, 10'000).moves == 0);
}

TEST_CASE("levels: it stays at the highest level that keeps the target, and does not oscillate", "[policy]") {
    for (const double step : {0.03, 0.08, 0.3}) {
        for (int highest = 0; highest < 5; ++highest) {
            INFO("each level slows down by " << step << ", " << highest << " is the highest that is kept");
            Response response;
            for (int level = 0; level <= 5; ++level)
                response.times.push_back(0.97 + step * (level - highest));
            LevelControl control(5);
            Synthetic service(control);
            const Run first = service.serve(response, 1000);
            CHECK(first.late <= 10);
            const Run then = service.serve(response, 10'000);
            CHECK(then.share() <= 0.01);
            CHECK(then.level > highest - 0.1);
            CHECK(then.level < highest + 0.1);
            CHECK(then.moves <= 10'000 / 512 * 2 + 2);
        }
    }
}

TEST_CASE("levels: where the next one is just above the target, few requests are late", "[policy]") {
    LevelControl control(5);
    Synthetic service(control);
    const Run run = service.serve({.times = {.9, .92, .94, .985, 1.02, 1.2}, .spread = .03}, 20'000);
    CHECK(run.share() <= 0.01);
    CHECK(run.level > 1.9);
}

TEST_CASE("levels: two late requests of a few halve the level, four lead to the lowest", "[policy]") {
    LevelControl control(5);
    Synthetic service(control);
    service.serve({{.8, .8, .8, .8, .8, .8}}, 100);
    REQUIRE(control.level() == 5);
    control.note(1.3);
    CHECK(control.level() == 5);  // one may be chance
    control.note(1.3);
    CHECK(control.level() == 2);
    control.note(1.3);
    CHECK(control.level() == 1);
    control.note(1.3);
    CHECK(control.level() == 0);
    CHECK(control.kept());  // not known yet
    for (int i = 0; i < 3; ++i) control.note(1.3);
    CHECK(control.level() == 0);
    CHECK_FALSE(control.kept());
    for (int i = 0; i < 200; ++i) control.note(0.9);
    CHECK(control.kept());
}

TEST_CASE("levels: steps up become longer while none is late, and lead past none that has failed",
          "[policy]") {
    const auto requests_until = [](LevelControl& control, int level, double time) {
        int requests = 0;
        for (; control.level() < level && requests < 1000; ++requests) control.note(time);
        return requests;
    };
    LevelControl large(5), some(5), little(5), failed(5);
    CHECK(requests_until(large, 5, 0.7) == 4 * 2);
    CHECK(requests_until(some, 5, 0.9) == 4 * 4);
    CHECK(requests_until(little, 1, 0.97) == 4 * 8);
    requests_until(failed, 3, 0.9);
    failed.note(1.1);  // at the first try
    CHECK(failed.level() == 1);
    CHECK(requests_until(failed, 2, 0.9) == 4);
    CHECK(requests_until(failed, 3, 0.9) == 4 * 4);
}

TEST_CASE("levels: one that has to end early is worth less than a lower one", "[policy]") {
    LevelControl control(5);
    for (int i = 0; i < 4 + 4; ++i) control.note(0.9);
    REQUIRE(control.level() == 3);
    for (int i = 0; i < 100; ++i) control.note(0.98, 0.7);  // 0.7 * 3 is more than 2
    CHECK(control.level() == 3);
    for (int i = 0; i < 4; ++i) control.note(0.98, 0.6);
    CHECK(control.level() == 2);
    for (int i = 0; i < 8; ++i) control.note(0.98, 0.05);
    CHECK(control.level() == 0);
}

TEST_CASE("levels: single slow requests have other causes", "[policy]") {
    LevelControl control(5);
    Synthetic service(control);
    const Run run =
        service.serve({.times = {.8, .8, .8, .8, .8, .8}, .spread = .02, .outliers = .003}, 20'000);
    CHECK(run.level > 4);
}

TEST_CASE("levels: when requests become slower it goes down at once, and up again when they do not",
          "[policy]") {
    LevelControl control(5);
    Synthetic service(control);
    service.serve({{.7, .72, .74, .8, .9, .95}}, 2000);
    REQUIRE(control.level() == 5);
    const Response slow{{.8, .9, 1.1, 1.3, 1.5, 1.8}};
    CHECK(service.serve(slow, 20).late <= 8);
    const Run settled = service.serve(slow, 2000);
    CHECK(settled.share() <= 0.01);
    CHECK(settled.level > 0.9);
    service.serve({{.7, .72, .74, .8, .9, .95}}, 4 * 512);
    CHECK(control.level() == 5);
}

}  // namespace smt::tests
