// Recordings: a line comes back as what it was made of, and what is no line is refused.
#include "runtime/schedule/record.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "runtime/schedule/recorder.h"
#include "tests/policy/snapshots.h"
#include "tests/unit/temporary_folder.h"

namespace smt::tests {
namespace {

using Catch::Matchers::Contains;

// Nothing in it has its default.
Kernel full_kernel() {
    Kernel kernel{.id = 1ull << 63,
                  .tenant = "a \"tenant\"\n",
                  .session = 7,
                  .priority = -3,
                  .managed = false,
                  .has_door = true,
                  .state = State::kStopping,
                  .blocks = 4096,
                  .blocks_done = 17,
                  .ctas_per_sm = 8,
                  .usual_ctas = 3,
                  .multiprocessors = 96,
                  .since = kBegin - 3ns,
                  .launch = 12,
                  .last_taken = true,
                  .weight = 0.1,
                  .cta = {256, 8192, 1024, 8, 1},
                  .predicted = 5ms,
                  .remaining = -1ns,
                  .preemption = 44us,
                  .profile = nullptr};
    auto profile = std::make_shared<Profile>();
    profile->blocks = 9;
    profile->configurations = {{1, 80.5}, {2, 1.0 / 3}};
    profile->preemption = 50us;
    profile->slice_overhead = 10us;
    profile->by_ctas = {{1, 80.5}, {2, 1.0 / 3}, {3, 7}};
    profile->mix =
        Mix{{0.5, 0.25}, 0.125, 0.75, 1e9, models::Waits{3, 70, 0.5, {1, 0, 0.25, 0, 0, 0, 0, 1.0 / 3}}};
    profile->footprint = models::Footprint{48, 2, 1000};
    profile->identity = ~0ull;
    profile->beside = {{1ull << 63, 3, 5, 0.625}, {7, 1, 2, 1.0 / 3}};
    kernel.profile = profile;
    kernel.correction = 1.0625;
    kernel.corrections = 7;
    return kernel;
}

Record full_record() {
    Record record;
    record.now = kBegin;
    record.snapshot.device = {132, kSm, models::Multiprocessor{3, {600, 0.5, 1.5, 4, 16}}};
    record.snapshot.kernels = {full_kernel(), kernel(2, 0)};
    record.snapshot.urgent = {{5, kBegin - 2s}};
    record.snapshot.services = {
        {.session = 7,
         .tenant = "service",
         .target = {.p99 = 5ms, .slowdown = 1.25},
         .launches = 20,
         .over = 18,
         .activity = {true, kBegin - 1ms, kBegin - 2ms, {{kBegin - 9ms, kBegin - 8ms, 4, 3}}, 6}}};
    record.decision.assignments = {{1, Action::kWait, "because", {}, 0},
                                   {2, Action::kRun, "why not", {2, 0, 255}, 400}};
    record.decision.confinements = {{1, 96, 100us, "its blocks are long"}};
    record.decision.again = 200us;
    return record;
}

std::string line_of(const Record& record) {
    return record_line(record.snapshot, record.now, record.decision);
}

TEST_CASE("a line comes back as it was", "[record]") {
    const Record record = full_record();
    Record back;
    REQUIRE(read_line(line_of(record), back));
    CHECK(line_of(back) == line_of(record));
    CHECK(back.now == record.now);
    const Kernel& was = record.snapshot.kernels[0];
    REQUIRE(back.snapshot.kernels.size() == 2);
    const Kernel& is = back.snapshot.kernels[0];
    CHECK(is.id == was.id);
    CHECK(is.tenant == was.tenant);
    CHECK(is.session == was.session);
    CHECK(is.priority == was.priority);
    CHECK(is.managed == was.managed);
    CHECK(is.has_door == was.has_door);
    CHECK(is.state == was.state);
    CHECK(is.blocks == was.blocks);
    CHECK(is.blocks_done == was.blocks_done);
    CHECK(is.ctas_per_sm == was.ctas_per_sm);
    CHECK(is.multiprocessors == was.multiprocessors);
    CHECK(is.since == was.since);
    CHECK(is.launch == was.launch);
    CHECK(is.last_taken == was.last_taken);
    CHECK(is.weight == was.weight);
    CHECK(is.cta == was.cta);
    CHECK(is.predicted == was.predicted);
    CHECK(is.remaining == was.remaining);
    CHECK(is.preemption == was.preemption);
    REQUIRE(is.profile);
    CHECK(is.profile->blocks == 9);
    CHECK(is.profile->configurations == was.profile->configurations);
    CHECK(is.profile->by_ctas == was.profile->by_ctas);
    CHECK(is.profile->mix->waits == was.profile->mix->waits);
    CHECK(is.profile->preemption == was.profile->preemption);
    CHECK(is.profile->slice_overhead == was.profile->slice_overhead);
    CHECK(is.profile->mix->utilization.mur == 0.25);
    CHECK(is.profile->mix->instructions_per_block == 1e9);
    CHECK(is.profile->footprint->throughput == 1000);
    CHECK(is.profile->identity == ~0ull);
    REQUIRE(is.profile->beside.size() == 2);
    CHECK((is.profile->beside[0].other == 1ull << 63 && is.profile->beside[0].ctas_per_sm == 3 &&
           is.profile->beside[0].other_ctas_per_sm == 5));
    CHECK(is.profile->beside[1].rate == 1.0 / 3);
    CHECK(back.snapshot.device.sm == kSm);
    CHECK(back.snapshot.device.model->memory.uncoalesced_requests == 16);
    CHECK(back.snapshot.urgent[0].since == kBegin - 2s);
    REQUIRE(back.snapshot.services.size() == 1);
    const Service& service = back.snapshot.services[0];
    CHECK((service.session == 7 && service.launches == 20 && service.over == 18));
    CHECK(service.target.slowdown == 1.25);
    CHECK((service.activity.works && service.activity.began == kBegin - 1ms));
    CHECK(service.activity.ended == kBegin - 2ms);
    REQUIRE(service.activity.pauses.size() == 1);
    CHECK((service.activity.pauses[0].from == kBegin - 9ms && service.activity.pauses[0].to == kBegin - 8ms));
    CHECK((service.activity.pauses[0].launches == 4 && service.activity.pauses[0].over == 3));
    CHECK(service.activity.forgotten == 6);
    CHECK(said(back.decision) == said(record.decision));
    CHECK(back.decision.confinements[0].longer_than == 100us);
    CHECK(back.decision.again == record.decision.again);
}

TEST_CASE("what was measured of a pair is decided on alike when it is read back", "[record]") {
    Snapshot snapshot{device(132), {kernel(1, 100'000, nth_of(kSm, 8)), kernel(2, 100'000, nth_of(kSm, 8))}};
    Profile first, second;
    first.identity = 7, first.beside = {{9, 3, 5, 0.7}};
    second.identity = 9, second.beside = {{7, 5, 3, 0.8}};
    snapshot.kernels[0].profile = std::make_shared<Profile>(first),
    snapshot.kernels[1].profile = std::make_shared<Profile>(second);
    const Decision decision = make_slice()->decide(snapshot, kBegin);
    REQUIRE(said(decision) == Said{{1, "run 3"}, {2, "run 5"}});
    Record back;
    REQUIRE(read_line(record_line(snapshot, kBegin, decision), back));
    CHECK(said(make_slice()->decide(back.snapshot, back.now)) == said(back.decision));
}

TEST_CASE("a line with defaults is short, and defaults come back", "[record]") {
    const std::string line = record_line({}, {}, {});
    CHECK(line == R"({"now":0,"snapshot":{"device":{}},"decision":{}})");
    Record back = full_record();  // nothing stays of the last one
    REQUIRE(read_line(line, back));
    CHECK(line_of(back) == line);
    Snapshot one;
    one.kernels = {{}};
    REQUIRE(read_line(record_line(one, {}, {}), back));
    CHECK(back.snapshot.kernels[0].managed);
    CHECK(back.snapshot.kernels[0].weight == 1);
}

TEST_CASE("a line of before profiles knew of pairs is read", "[record]") {
    Record record;
    REQUIRE(read_line(R"({"now":1,"snapshot":{"device":{},)"
                      R"("kernels":[{"id":1,"profile":{"blocks":9,"preemption":50000}}]},"decision":{}})",
                      record));
    const Profile& profile = *record.snapshot.kernels[0].profile;
    CHECK((profile.blocks == 9 && profile.identity == 0 && profile.beside.empty()));
}

TEST_CASE("a line cut anywhere is refused", "[record]") {
    const std::string line = line_of(full_record());
    Record record;
    for (size_t bytes = 0; bytes < line.size(); ++bytes)
        CHECK_THROWS_AS(read_line(line.substr(0, bytes), record), std::runtime_error);
}

TEST_CASE("what is no line is refused, with the reason", "[record]") {
    const auto refusal = [](const std::string& line) {
        Record record;
        try {
            read_line(line, record);
        } catch (const std::runtime_error& problem) {
            return std::string(problem.what());
        }
        return std::string("taken");
    };
    const auto with = [&](const std::string& kernel) {
        return refusal(R"({"now":1,"snapshot":{"device":{"multiprocessors":8},"kernels":[)" + kernel +
                       R"(]},"decision":{}})");
    };
    CHECK(with(R"({"id":1})") == "taken");
    CHECK_THAT(with(R"({"id":"1"})"), Contains("snapshot: kernels: id: it is no whole number"));
    CHECK_THAT(with(R"({"id":-1})"), Contains("out of range"));
    CHECK_THAT(with(R"({"id":1.5})"), Contains("no whole number"));
    CHECK_THAT(with(R"({"id":true})"), Contains("no whole number"));
    CHECK_THAT(with(R"({"priority":4294967296})"), Contains("out of range"));
    CHECK_THAT(with(R"({"state":"sleeping"})"), Contains("no word"));
    CHECK_THAT(with(R"({"idd":1})"), Contains("unknown field"));
    CHECK_THAT(with(R"({"managed":1})"), Contains("neither true nor false"));
    CHECK_THAT(with(R"({"tenant":1})"), Contains("no text"));
    CHECK_THAT(with(R"({"weight":0})"), Contains("such numbers"));
    CHECK_THAT(with(R"({"weight":null})"), Contains("such numbers"));
    CHECK_THAT(with(R"({"ctas_per_sm":-1})"), Contains("such numbers"));
    CHECK_THAT(with("1"), Contains("no object"));
    CHECK_THAT(refusal(R"({"now":1,"snapshot":{"device":{"multiprocessors":1000000000}},"decision":{}})"),
               Contains("so many"));
    CHECK_THAT(refusal(R"({"now":1,"snapshot":{"device":{}}})"), Contains("should be in it"));
    CHECK_THAT(refusal(R"({"now":1,"snapshot":{"device":{},"kernels":{}},"decision":{}})"),
               Contains("no list"));
    CHECK_THAT(refusal("[]"), Contains("no object"));
    CHECK_THAT(refusal(R"({"recording":3,"policy":"fifo"})"), Contains("another version"));
    CHECK_THAT(refusal(""), Contains("no JSON"));
}

// What a recorder has said, and what its file says.
struct Recording {
    TemporaryFolder folder;
    std::string path = folder.file("recording");
    std::vector<std::string> notes;
    std::unique_ptr<Recorder> recorder;
    explicit Recording(uint64_t most = 1 << 20)
        : recorder(std::make_unique<Recorder>(path, most,
                                              [this](const std::string& note) { notes.push_back(note); })) {}
    std::vector<std::string> read() {
        std::vector<std::string> seen;
        read_recording(path, [&](const Record& record) {
            seen.push_back(record.policy + " " + std::to_string(record.decision.assignments.size()));
        });
        return seen;
    }
};

TEST_CASE("a recorder's file is read back, each decision with the policy that made it", "[record]") {
    Recording recording;
    const Record record = full_record();
    recording.recorder->choose("priority");
    recording.recorder->write(record.snapshot, record.now, record.decision);
    CHECK(recording.read().size() == 1);  // the first is there at once
    recording.recorder->choose("fifo");
    recording.recorder->write({}, record.now + 1ms, {});
    recording.recorder.reset();
    CHECK(recording.read() == std::vector<std::string>{"priority 2", "fifo 0"});
    CHECK(recording.notes.empty());
}

TEST_CASE("a recording that is full ends with a whole line and one note", "[record]") {
    Recording recording(1000);
    recording.recorder->choose("fifo");
    for (int i = 0; i < 100; ++i) recording.recorder->write({}, kBegin + i * 1ms, {});
    CHECK(recording.notes.size() == 1);
    CHECK_THAT(recording.notes.front(), Contains(recording.path) && Contains("full"));
    recording.recorder.reset();
    const std::string text = whole_file(recording.path);
    CHECK(text.size() <= 1000);
    CHECK(text.size() > 900);
    CHECK(text.back() == '\n');
    CHECK(recording.read().size() < 100);
    CHECK(recording.notes.size() == 1);
}

TEST_CASE("a recorder that cannot write says so", "[record]") {
    const auto nobody = [](const std::string&) { FAIL("nothing was written"); };
    CHECK_THAT(Recorder("/nowhere/file", 1000, nobody).error(), Contains("No such file"));
    CHECK_THAT(Recorder("here", 1000, nobody).error(), Contains("absolute"));
    Recorder mute("/nowhere/file", 1000, nobody);
    mute.choose("fifo");
    mute.write({}, {}, {});

    std::vector<std::string> notes;
    Recorder full("/dev/full", 1 << 20, [&](const std::string& note) { notes.push_back(note); });
    REQUIRE(full.error().empty());
    full.choose("fifo");
    for (int i = 0; i < 3; ++i) full.write({}, kBegin + i * 2s, {});
    REQUIRE(notes.size() == 1);
    CHECK_THAT(notes.front(), Contains("No space left"));
}

TEST_CASE("a damaged recording is refused with its name and the line", "[record]") {
    TemporaryFolder folder;
    const std::string path = folder.file("r"),
                      good = policy_line("fifo") + "\n" + line_of(full_record()) + "\n";
    const auto refusal = [&](const std::string& text) {
        std::ofstream(path, std::ios::binary) << text;
        try {
            read_recording(path, [](const Record&) {});
        } catch (const std::runtime_error& problem) {
            return std::string(problem.what());
        }
        return std::string("taken");
    };
    CHECK(refusal(good) == "taken");
    CHECK_THAT(refusal(good + good.substr(0, good.size() - 30)), Contains(path + ":4: it is no JSON"));
    CHECK_THAT(refusal(policy_line("fifo") + "\n\n"), Contains(path + ":2: "));
    CHECK_THAT(refusal(line_of(full_record())), Contains(path + ":1: the first line"));
    CHECK_THAT(refusal(""), Contains("is empty"));
    CHECK_THAT(refusal(std::string(1000, '\0')), Contains(path + ":1: "));
    std::string torn = good;
    torn[good.size() / 2] = '\x01';
    CHECK_THAT(refusal(torn), Contains(path + ":2: "));
    CHECK_THROWS_WITH(read_recording(folder.file("missing"), [](const Record&) {}), Contains("No such file"));
}

}  // namespace
}  // namespace smt::tests
