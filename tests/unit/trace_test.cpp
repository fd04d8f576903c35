// What `smt trace` makes of a journal. The golden file is what a viewer gets; look at it in one after a
// change.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/unit/temporary_folder.h"
#include "tools/smt/trace_view.h"

namespace smt::tools {
namespace {

using Json = nlohmann::json;
using runtime::journal::Entry;
using runtime::journal::Kind;
using runtime::journal::Reader;
using runtime::journal::Writer;

// A journal that is written line by line, with times of our own.
class Journal {
public:
    Entry entry(Kind kind, uint32_t session, uint64_t time_ns, const char* name, const char* text,
                uint64_t value = 0) {
        Entry made;
        made.kind = kind;
        made.session = session;
        made.time_ns = time_ns;
        made.name = writer_.name(name);
        made.text = writer_.name(text);
        made.value = value;
        return made;
    }
    void add(const Entry& entry) { writer_.write(entry); }
    void add(Kind kind, uint32_t session, uint64_t time_ns, const char* name, const char* text,
             uint64_t value = 0) {
        add(entry(kind, session, time_ns, name, text, value));
    }
    // Its workers say when, by a clock of their own.
    void add_mapping(uint32_t session, uint64_t time_ns, const char* tenant, const char* kernel, uint64_t sms,
                     uint64_t start, uint64_t end) {
        Entry made = entry(Kind::kMapping, session, time_ns, tenant, kernel, 40);
        made.multiprocessors[0] = sms;
        made.blocks_together = 4;
        made.start_ns = start;
        made.end_ns = end;
        add(made);
    }
    std::string trace(uint64_t last_ns = ~0ull) const {
        std::string text;
        write_trace(Reader(folder_.file("j")), last_ns, [&](std::string_view piece) { text += piece; });
        return text;
    }
    std::vector<Json> events() const { return Json::parse(trace())["traceEvents"].get<std::vector<Json>>(); }

private:
    tests::TemporaryFolder folder_;
    Writer writer_{folder_.file("j")};
};

struct TwoTenants : Journal {
    TwoTenants();
};

TwoTenants::TwoTenants() {
    Journal& journal = *this;
    journal.add(Kind::kSessionOpened, 1, 1'000'000, "alice", "train", 100);
    journal.add(Kind::kSessionOpened, 2, 1'001'000, "bob \"the\" second", "serve", 101);
    Entry launch = journal.entry(Kind::kLaunch, 1, 1'010'000, "_Z5saxpyPf", "");
    launch.grid[0] = 4096, launch.grid[1] = launch.grid[2] = 1;
    launch.block[0] = 256, launch.block[1] = launch.block[2] = 1;
    launch.registers = 32;
    journal.add(launch);
    launch.time_ns = 1'011'000, launch.start_ns = 1'020'000, launch.end_ns = 1'050'500;
    journal.add(launch);
    launch.start_ns = 1'030'000, launch.end_ns = 1'060'000;  // beside the other, on another stream
    launch.stream = 7;
    journal.add(launch);
    journal.add(Kind::kDecision, 1, 1'040'000, "alice",
                "stopped for bob \"the\" second, which is more urgent");
    journal.add(Kind::kStopped, 1, 1'052'000, "alice", "_Z5saxpyPf", 12'000);
    // SMs 0, 1 and 3; the GPU's timer is 500'000'000 ahead, and the second entry came soonest, 1'000 after
    // its kernel's end.
    journal.add_mapping(1, 1'100'000, "alice", "_Z5saxpyPf", 0b1011, 501'020'000, 501'050'000);
    journal.add_mapping(2, 1'100'000, "bob \"the\" second", "tiny", 0b10, 501'030'000, 501'099'000);
    journal.add(Kind::kUnsupported, 2, 1'110'000, "cuIpcOpenMemHandle", "", 1);
    journal.add(Kind::kNote, 0, 1'120'000, "", "the compile service has\nsomething to say");
    journal.add(Kind::kSessionClosed, 1, 1'130'000, "alice", "the program has ended", 100);
}

TEST_CASE("a trace is as it was", "[trace]") {
    const std::string trace = TwoTenants().trace();
    if (std::getenv("SMT_TEST_WRITE_GOLDEN")) std::ofstream(SMT_TRACE_GOLDEN, std::ios::binary) << trace;
    CHECK(trace == tests::whole_file(SMT_TRACE_GOLDEN));
}

TEST_CASE("multiprocessors have tracks, and what overlaps there has two", "[trace]") {
    std::map<std::string, std::vector<std::string>> names;  // of what is on a track, by the track's name
    std::map<std::pair<int, int>, std::string> tracks;
    const std::vector<Json> events = TwoTenants().events();
    for (const Json& event : events)
        if (event["name"] == "thread_name") tracks[{event["pid"], event["tid"]}] = event["args"]["name"];
    for (const Json& event : events)
        if (event["ph"] != "M") names[tracks.at({event["pid"], event["tid"]})].push_back(event["name"]);
    using Names = std::vector<std::string>;
    CHECK(names["SM 0"] == Names{"alice: saxpy(float*)"});
    CHECK(names["SM 1"] == Names{"alice: saxpy(float*)"});
    CHECK(names["SM 1 (2)"] == Names{"bob \"the\" second: tiny"});
    CHECK(names.count("SM 2") == 0);
    CHECK(names["SM 3"] == Names{"alice: saxpy(float*)"});
    CHECK(names["alice"].size() == 2);
    CHECK(names["alice (2)"].size() == 1);
    CHECK(names["decisions"] == Names{"stopped for bob \"the\" second, which is more urgent"});
    CHECK(names["stops"] == Names{"alice: saxpy(float*) stops"});
    CHECK(names["notes"].size() == 2);
    CHECK(names["sessions"].size() == 3);
}

TEST_CASE("the GPU's timer is shifted so that no kernel ends after its entry", "[trace]") {
    for (const Json& event : TwoTenants().events()) {
        if (event["name"] != "bob \"the\" second: tiny") continue;
        CHECK(event["ts"] == 31.0);  // us since the journal's oldest entry
        CHECK(event["dur"] == 69.0);
        return;
    }
    FAIL("it is not there");
}

TEST_CASE("a simulated device's journal: launches say where they ran", "[trace]") {
    Journal journal;
    journal.add(Kind::kNote, 0, 5'000'000'000, "", "of the real clock");
    Entry launch = journal.entry(Kind::kLaunch, 3, 900, "tiny", "");
    launch.virtual_time = 1;
    launch.start_ns = 1000, launch.end_ns = 3500;
    launch.multiprocessors[0] = 0b110;
    journal.add(launch);
    Entry stopped = journal.entry(Kind::kStopped, 3, 4000, "carol", "tiny",
                                  9'000'000);  // longer than the virtual clock has run
    stopped.virtual_time = 1;
    journal.add(stopped);
    const Json trace = Json::parse(journal.trace());
    CHECK(trace["otherData"]["clock"] == "virtual");
    CHECK(trace["otherData"]["origin_ns"] == 900);
    CHECK(trace["otherData"]["entries_of_another_clock"] == 1);
    int on_sms = 0;
    for (const Json& event : trace["traceEvents"]) {
        if (event["ph"] == "M" || event["pid"] != 1) continue;
        ++on_sms;
        CHECK(event["ts"] == 0.1);
        CHECK(event["dur"] == 2.5);
        CHECK(event["name"] == "carol: tiny");
    }
    CHECK(on_sms == 2);
}

TEST_CASE("the last part of a journal is what ended in it, with the tenants' names", "[trace]") {
    const Json trace = Json::parse(TwoTenants().trace(20'000));
    std::vector<std::string> names;
    for (const Json& event : trace["traceEvents"])
        if (event["ph"] != "M") names.push_back(event["name"]);
    CHECK(names == std::vector<std::string>{
                       "bob \"the\" second called cuIpcOpenMemHandle, which is not supported",
                       "the compile service has something to say", "alice closed: the program has ended"});
    CHECK(Json::parse(TwoTenants().trace(31'000))["otherData"]["origin_ns"] ==
          1'031'000);  // bob's kernel began before
}

TEST_CASE("an empty journal is a trace with nothing in it", "[trace]") {
    CHECK(Json::parse(Journal().trace())["traceEvents"].empty());
}

}  // namespace
}  // namespace smt::tools
