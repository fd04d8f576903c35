// Whose compile is next.
#include "runtime/jit/queue.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

using namespace smt::runtime::jit;

namespace {

// Jobs by name.
struct Jobs {
    explicit Jobs(size_t workers, Queue::Limits limits = {}) : queue(workers, limits) {}

    bool add(TenantId tenant, const std::string& name, uint64_t bytes = 1) {
        QueuedPointer& job = jobs[name];
        if (!job) job = std::make_shared<Queued>(), job->bytes = bytes;
        return queue.add(tenant, job);
    }
    std::string next() {
        const QueuedPointer job = queue.next();
        for (const auto& [name, each] : jobs)
            if (each == job) return name;
        return "";
    }
    // One after the other.
    std::string all() {
        std::string names;
        for (std::string name = next(); !name.empty(); name = next()) {
            names += name + " ";
            queue.done(*jobs[name]);
        }
        return names;
    }
    Queue queue;
    std::map<std::string, QueuedPointer> jobs;
};

}  // namespace

TEST_CASE("tenants take turns") {
    Jobs jobs(2);
    for (const char* name : {"a1", "a2", "a3", "a4"}) jobs.add(1, name);
    jobs.add(2, "b1"), jobs.add(2, "b2"), jobs.add(3, "c1");
    CHECK(jobs.queue.size() == 7);
    CHECK(jobs.all() == "a1 b1 c1 a2 b2 a3 a4 ");
    CHECK(jobs.queue.size() == 0);
}

TEST_CASE("what a load waits for comes first, of all tenants in turn") {
    Jobs jobs(2);
    for (const char* name : {"a1", "a2", "a3"}) jobs.add(1, name);
    for (const char* name : {"b1", "b2", "b3"}) jobs.add(2, name);
    jobs.queue.hurry(1, jobs.jobs["a3"]);
    jobs.queue.hurry(1, jobs.jobs["a2"]);
    jobs.queue.hurry(1, jobs.jobs["a2"]);
    jobs.queue.hurry(2, jobs.jobs["b3"]);
    CHECK(jobs.queue.size() == 6);
    CHECK(jobs.all() == "a3 b3 a2 b1 a1 b2 ");
}

TEST_CASE("one tenant never has all workers, if there are several") {
    Jobs jobs(3);
    for (const char* name : {"a1", "a2", "a3"}) jobs.add(1, name);
    CHECK(jobs.next() == "a1");
    CHECK(jobs.next() == "a2");
    CHECK(jobs.next().empty());
    jobs.add(2, "b1");
    CHECK(jobs.next() == "b1");
    CHECK(jobs.next().empty());
    jobs.queue.done(*jobs.jobs["a1"]);
    CHECK(jobs.next() == "a3");

    Jobs alone(1);
    alone.add(1, "a1");
    CHECK(alone.next() == "a1");
}

TEST_CASE("what two tenants ask for runs once, at the first of their turns") {
    Jobs jobs(2);
    for (const char* name : {"a1", "a2", "common"}) jobs.add(1, name);
    jobs.add(2, "common");
    CHECK(jobs.queue.size() == 3);
    CHECK(jobs.all() == "a1 common a2 ");
    jobs.add(1, "a3"), jobs.add(1, "a4");
    jobs.queue.hurry(2, jobs.jobs["a4"]);  // another's, that a load of this one waits for
    CHECK(jobs.all() == "a4 a3 ");
}

TEST_CASE("what waits is bounded, by tenant and in all") {
    Jobs jobs(2, {3, 100, 150});
    CHECK(jobs.add(1, "a1", 60));
    CHECK_FALSE(jobs.add(1, "a2", 41));
    CHECK(jobs.add(1, "a3", 40));
    CHECK(jobs.add(2, "a1"));  // is held already, and counts as this one's too
    CHECK_FALSE(jobs.add(2, "b1", 41));
    CHECK(jobs.add(2, "b2", 40));
    CHECK_FALSE(jobs.add(3, "c1", 11));  // in all
    CHECK(jobs.add(3, "c2", 10));
    CHECK(jobs.all() == "a1 b2 c2 a3 ");
    for (const char* name : {"1", "2", "3"}) CHECK(jobs.add(1, name, 0));
    CHECK_FALSE(jobs.add(1, "4", 0));
}

TEST_CASE("what a tenant leaves behind runs, as far as there is room, and what others asked for too") {
    Jobs jobs(2, {2, 100, 1000});
    jobs.add(1, "a1"), jobs.add(1, "a2"), jobs.add(2, "b1"), jobs.add(2, "common"), jobs.add(3, "common");
    CHECK(jobs.next() == "a1");
    CHECK(jobs.queue.leave(1).empty());
    CHECK(jobs.queue.leave(7).empty());
    CHECK(jobs.queue.leave(2).empty());
    jobs.add(4, "d1", 1);
    const auto dropped = jobs.queue.leave(4);
    REQUIRE(dropped.size() == 1);
    CHECK(dropped[0] == jobs.jobs["d1"]);
    CHECK(jobs.queue.size() == 3);
    jobs.queue.done(*jobs.jobs["a1"]);
    CHECK(jobs.all() == "common a2 b1 ");
}
