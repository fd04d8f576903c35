// What the page of smt ui shows of a journal, and whom its server answers.
#include <catch2/catch.hpp>

#include "tests/unit/temporary_folder.h"
#include "tools/ui/changes.h"
#include "tools/ui/guard.h"
#include "tools/ui/site.h"
#include "tools/ui/timeline.h"

namespace smt::tools::ui {
namespace {

using runtime::journal::Entry;
using runtime::journal::Kind;
using runtime::journal::Reader;
using runtime::journal::Writer;

class Journal {
public:
    explicit Journal(bool is_virtual = true) : virtual_(is_virtual), writer_(folder_.file("a.journal")) {
        for (const char* each : {"alice", "bob"}) {
            Entry entry = made(Kind::kSessionOpened, ++sessions_, 0);
            entry.name = writer_.name(each);
            writer_.write(entry);
        }
    }

    uint64_t launch(uint32_t session, uint64_t start, uint64_t end, uint64_t where, uint64_t passed = 0) {
        Entry entry = made(Kind::kLaunch, session, passed);
        entry.start_ns = start;
        entry.end_ns = end;
        entry.multiprocessors[0] = where;
        return writer_.write(entry);
    }
    void mapping(uint32_t session, uint64_t start, uint64_t end, uint64_t where, uint64_t now) {
        Entry entry = made(Kind::kMapping, session, now);
        entry.name = writer_.name(session == 1 ? "alice" : "bob");
        entry.start_ns = start;
        entry.end_ns = end;
        entry.multiprocessors[1] = where;
        writer_.write(entry);
    }
    void said(Kind kind, uint32_t session, uint64_t now, const std::string& text, uint64_t value = 0) {
        Entry entry = made(kind, session, now);
        entry.name = writer_.name(session == 1 ? "alice" : "bob");
        entry.text = writer_.line(text);
        entry.value = value;
        writer_.write(entry);
    }
    std::string path() const { return writer_.path(); }
    Writer& writer() { return writer_; }

private:
    Entry made(Kind kind, uint32_t session, uint64_t now) const {
        Entry entry;
        entry.kind = kind;
        entry.session = session;
        entry.time_ns = now;
        entry.virtual_time = virtual_;
        return entry;
    }

    const bool virtual_;
    const tests::TemporaryFolder folder_;
    Writer writer_;
    uint32_t sessions_ = 0;
};

TEST_CASE("a frame has the parts of its time that tenants had each multiprocessor", "[ui]") {
    Journal journal;
    journal.launch(1, 100, 160, 0b01);
    journal.launch(1, 140, 180, 0b01);  // beside it: counts once
    journal.launch(2, 150, 400, 0b11);
    Timeline timeline(0);
    timeline.follow(Reader(journal.path()));
    CHECK(timeline.multiprocessors() == 2);
    CHECK(timeline.is_placed());
    const Frame frame = timeline.frame({100, 120, 220}, 3);
    REQUIRE(frame.multiprocessors.size() == 3);
    REQUIRE(frame.multiprocessors[0].size() == 2);
    CHECK(timeline.tenants()[frame.multiprocessors[0][0].tenant] == "alice");
    CHECK(frame.multiprocessors[0][0].part == Approx(0.6));
    CHECK(frame.multiprocessors[0][1].part == Approx(0.7));
    REQUIRE(frame.multiprocessors[1].size() == 1);
    CHECK(frame.multiprocessors[1][0].part == Approx(0.7));
    CHECK(frame.multiprocessors[2].empty());
    CHECK(timeline.frame({400, 400, 500}, 2).multiprocessors[1].empty());
}

TEST_CASE("figures are of what ended within the window", "[ui]") {
    Journal journal;
    for (uint64_t i = 1; i <= 100; ++i) journal.launch(1, 1000 * i, 1000 * i + i, 1, 1000 * i - 10);
    journal.said(Kind::kStopped, 1, 50'000, "kernel", 77);  // in real time: of another clock
    Timeline timeline(0);
    timeline.follow(Reader(journal.path()));
    const Figures alice = timeline.frame({0, 0, 200'000}, 1).tenants.at(0);
    CHECK(alice.launches == 100);
    CHECK(alice.run.median_ns == 50);
    CHECK(alice.run.p99_ns == 99);
    CHECK(alice.latency.median_ns == 60);
    CHECK(alice.stop.count == 0);
    CHECK(timeline.frame({0, 0, 200'000}, 1).tenants.count(1) == 0);
    CHECK(timeline.frame({90'500, 0, 200'000}, 1).tenants.at(0).run.median_ns == 95);
}

TEST_CASE("decisions come until a frame's end, the newest ones", "[ui]") {
    Journal journal;
    for (uint64_t i = 1; i <= 30; ++i) journal.said(Kind::kDecision, 2, 10 * i, "d" + std::to_string(i));
    Timeline timeline(0);
    timeline.follow(Reader(journal.path()));
    CHECK(timeline.decisions() == 30);
    const auto shown = timeline.frame({0, 0, 205}, 0).decisions;
    REQUIRE(shown.size() > 2);
    CHECK(shown.back().text == "d20");
    CHECK(shown[shown.size() - 2].text == "d19");
    CHECK(timeline.tenants()[shown.back().tenant] == "bob");
    CHECK(timeline.frame({0, 0, 15}, 0).decisions.size() == 1);
}

TEST_CASE("on a GPU workers' reports say where it ran, on the journal's clock", "[ui]") {
    Journal journal(false);
    journal.mapping(1, 1100, 1200, 0b1000, 5300);  // the GPU's timer is 4000 behind, and a moment more
    journal.mapping(2, 1300, 1400, 0b1, 5400);
    journal.launch(1, 0, 0, ~0ull);  // where it may run
    journal.said(Kind::kStopped, 1, 5350, "kernel", 77);
    journal.said(Kind::kStopped, 2, 500'000, "kernel", 88);
    Timeline timeline(0);
    timeline.follow(Reader(journal.path()));
    CHECK_FALSE(timeline.is_virtual());
    CHECK(timeline.multiprocessors() == 68);
    const Frame frame = timeline.frame({5300, 5300, 5400}, 132);
    REQUIRE(frame.multiprocessors[64].size() == 1);
    CHECK(frame.multiprocessors[64][0].part == Approx(1));
    CHECK(frame.multiprocessors[0].empty());
    CHECK(frame.tenants.at(0).stop.p99_ns == 77);
    CHECK(frame.tenants.at(1).stop.count == 0);
}

TEST_CASE("times that are added to an entry later are seen", "[ui]") {
    Journal journal(false);
    const uint64_t now = runtime::journal::now_ns(), first = journal.launch(1, 0, 0, 0, now);
    journal.launch(1, 0, 0, 0, now + 1);
    Timeline timeline(0);
    const Reader reader(journal.path());
    timeline.follow(reader);
    CHECK(timeline.frame({0, 0, now + 1000}, 0).tenants.at(0).launches == 2);
    CHECK(timeline.frame({0, 0, now + 1000}, 0).tenants.at(0).latency.count == 0);
    journal.writer().set_times(first, now + 100, now + 300);
    timeline.follow(reader);
    CHECK(timeline.frame({0, 0, now + 1000}, 0).tenants.at(0).launches == 2);
    CHECK(timeline.frame({0, 0, now + 1000}, 0).tenants.at(0).latency.median_ns == 300);
    timeline.follow(reader);
    CHECK(timeline.frame({0, 0, now + 1000}, 0).tenants.at(0).latency.count == 1);
}

TEST_CASE("what is old is forgotten, and another journal begins anew", "[ui]") {
    Journal journal;
    journal.launch(2, 100, 200, 1);
    journal.launch(2, 10'000, 20'000, 1);
    Timeline timeline(1000);
    timeline.follow(Reader(journal.path()));
    CHECK(timeline.frame({0, 0, 20'000}, 1).tenants.at(1).launches == 1);
    timeline.restart();
    CHECK(timeline.end_ns() == 0);
    CHECK(timeline.frame({0, 0, 20'000}, 1).tenants.empty());
    timeline.follow(Reader(journal.path()));
    CHECK(timeline.number_of("bob") == 1);
    CHECK(timeline.frame({0, 0, 20'000}, 1).tenants.at(1).launches == 1);
}

// ---- Whom it answers

http::Request change_from(const std::string& host, const std::string& origin) {
    http::Request request{.method = "POST", .path = "/policy", .query = {}, .headers = {}, .body = "{}"};
    request.headers = {
        {"host", host}, {"authorization", "Bearer secret"}, {"content-type", "application/json"}};
    if (!origin.empty()) request.headers["origin"] = origin;
    return request;
}

unsigned refused(const http::Request& request, bool is_page = false) {
    const auto answer = Guard("secret").refusal(request, is_page);
    return answer ? answer->status : 0;
}

TEST_CASE("hosts and origins", "[ui]") {
    for (const char* host : {"127.0.0.1:9470", "localhost:80", "[::1]:1", "localhost"}) {
        CHECK(refused(change_from(host, "")) == 0);
        CHECK(refused(change_from(host, std::string("http://") + host)) == 0);
    }
    for (const char* host : {"", "evil.example:9470", "127.0.0.1.evil.example", "localhost.evil.example:80",
                             "127.0.0.1:80@evil.example", "[::1", "[::2]:80", "0.0.0.0:9470"}) {
        CHECK(refused(change_from(host, "")) == 403);
        CHECK(refused(change_from(host, ""), true) == 403);
    }
    for (const char* origin : {"http://evil.example", "null", "http://127.0.0.1:8080",
                               "https://127.0.0.1:9470", "http://localhost:9470"})
        CHECK(refused(change_from("127.0.0.1:9470", origin)) == 403);
    auto across = change_from("127.0.0.1:9470", "");
    across.headers["sec-fetch-site"] = "cross-site";
    CHECK(refused(across) == 403);
}

TEST_CASE("the token, and what a change is", "[ui]") {
    for (const char* given :
         {"", "secret", "Bearer", "Bearer secreT", "Bearer Secret", "Bearer secret2", "Basic secret"}) {
        auto request = change_from("localhost:1", "");
        request.headers["authorization"] = given;
        CHECK(refused(request) == 401);
        request.method = "GET";
        CHECK(refused(request) == 401);
        CHECK(refused(request, true) == 0);
    }
    auto form = change_from("localhost:1", "");
    form.headers["content-type"] = "text/plain";  // what a page of another site may send unasked
    CHECK(refused(form) == 415);
    const std::string token = make_token();
    CHECK(token.size() == 32);
    CHECK(token != make_token());
}

TEST_CASE("changes that make no sense", "[ui]") {
    const auto status = [](const char* what, const char* wish) {
        return carry_out("nothing-listens-here", what, wish).status;
    };
    CHECK(status("policy", "") == 400);
    CHECK(status("policy", "[1]") == 400);
    CHECK(status("policy", R"({"policy":7})") == 400);
    CHECK(status("policy", R"({"policy":"no-such"})") == 400);
    CHECK(status("memory", R"({"tenant":"a","limit":"much"})") == 400);
    CHECK(status("memory", R"({"tenant":"a","limit":"4G"})") == 409);
    CHECK(status("suspend", R"({"tenant":"a"})") == 409);
    CHECK(status("reboot", "{}") == 404);
}

}  // namespace
}  // namespace smt::tools::ui
