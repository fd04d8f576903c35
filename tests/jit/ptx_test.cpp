// Images of unknown source: which PTX is taken, and what the service makes of it.
#include "runtime/jit/ptx.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "runtime/jit/service.h"
#include "tests/jit/sources.h"
#include "tests/unit/temporary_folder.h"

using namespace smt::runtime::jit;
using namespace smt::tests;
using namespace std::chrono_literals;
using Catch::Contains;
using State = Service::State;

namespace {

std::string module_for(int architecture, const std::string& body = "ret;") {
    return ".version 8.0\n.target sm_" + std::to_string(architecture) +
           "\n.address_size 64\n.visible .entry k() {\n.reg .b64 %rd<2>;\n" + body + "\n}\n";
}

template <typename T>
void append(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

constexpr uint64_t kSpecific = 0x100000, kFamily = 0x200000;  // sm_90a, sm_100f

// An entry as nvcc writes it, not compressed. Kind 1: PTX, 2: machine code.
std::string entry(uint16_t kind, uint32_t architecture, const std::string& payload, uint64_t flags = 0) {
    std::string bytes;
    append<uint16_t>(bytes, kind), append<uint16_t>(bytes, 0x101), append<uint32_t>(bytes, 64);
    append<uint64_t>(bytes, payload.size()), append<uint64_t>(bytes, 0);
    append<uint32_t>(bytes, 0), append<uint32_t>(bytes, architecture);
    append<uint64_t>(bytes, 0), append<uint64_t>(bytes, flags);
    bytes.append(64 - bytes.size(), '\0');
    return bytes + payload;
}

std::string image_of(const std::string& entries) {
    std::string bytes;
    append<uint32_t>(bytes, 0xba55ed50), append<uint16_t>(bytes, 1), append<uint16_t>(bytes, 16);
    append<uint64_t>(bytes, entries.size());
    return bytes + entries;
}

constexpr uint64_t kMuchMemory = 1u << 20;

struct MadeByService {
    std::string lines;
    ResultPointer result;
};

MadeByService make(const PtxChoice& choice, const Settings& settings) {
    MadeByService made;
    std::mutex mutex;
    Service service(settings, [&](const std::string& line) {
        std::lock_guard lock(mutex);
        made.lines += line + "\n";
    });
    const Service::Answer answer =
        service.wait_for(kNoTenant, service.submit_ptx(kNoTenant, choice, {90, true}), 60s);
    REQUIRE(answer.state == State::kDone);
    made.result = answer.result;
    return made;
}

}  // namespace

TEST_CASE("the PTX that the driver would take is taken, or there is a reason") {
    CHECK(choose_ptx(module_for(75), 90, kMuchMemory).text == module_for(75));
    CHECK(choose_ptx(image_of(entry(1, 75, module_for(75)) + entry(1, 90, module_for(90))), 90, kMuchMemory)
              .text == module_for(90));
    CHECK_THAT(choose_ptx(module_for(100), 90, kMuchMemory).reason, Contains("none of its PTX is for sm_90"));
    CHECK_THAT(choose_ptx(image_of(entry(2, 90, "code")), 90, kMuchMemory).reason,
               Contains("machine code only"));
    CHECK_THAT(choose_ptx("what", 90, kMuchMemory).reason, Contains("cannot be read"));
    CHECK_THAT(choose_ptx(module_for(75), 90, 10).reason, Contains("more than ptx_size in SMT_COMPILE (10)"));
    // Code for a newer architecture may be other code.
    CHECK_THAT(
        choose_ptx(image_of(entry(2, 90, "code") + entry(1, 75, module_for(75))), 90, kMuchMemory).reason,
        Contains("its PTX is for compute_75, its machine code for sm_90"));
    const auto reason = [](int architecture, uint64_t code, uint64_t ptx) {
        const std::string entries =
            entry(2, architecture, "code", code) + entry(1, architecture, module_for(architecture), ptx);
        return choose_ptx(image_of(entries), architecture, kMuchMemory).reason;
    };
    CHECK_THAT(reason(90, kSpecific, 0), Contains("its PTX is for compute_90, its machine code for sm_90a"));
    CHECK_THAT(reason(100, kFamily, 0), Contains("machine code for sm_100f"));
    CHECK_THAT(reason(100, kSpecific, kFamily), Contains("machine code for sm_100a"));
    CHECK(reason(90, kSpecific, kSpecific).empty());
    CHECK(reason(90, 0, kSpecific).empty());
    const PtxChoice both =
        choose_ptx(image_of(entry(2, 90, "code") + entry(1, 90, module_for(90))), 90, kMuchMemory);
    CHECK(both.text == module_for(90));
    CHECK(both.registers.empty());  // machine code that cannot be read
}

TEST_CASE("PTX has a managed form, made once and kept on disk") {
    TemporaryFolder folder;
    Settings settings = toy_settings(folder.file("cache"));
    PtxChoice choice{module_for(90), {{"k", 41}}, ""};
    MadeByService first = make(choice, settings);
    CHECK_THAT(first.result->image,
               Contains(".entry smt_k(") && Contains(".entry k(") && Contains(".maxnreg 48"));
    CHECK(first.result->language == Language::kPtx);
    REQUIRE(first.result->kernels.size() == 1);
    CHECK(first.result->kernels[0].managed == "smt_k");
    CHECK_THAT(first.lines, Contains("1 kernels managed by PTX, 0 refused; compiled in"));
    MadeByService again = make(choice, settings);
    CHECK(again.result->image == first.result->image);
    CHECK_THAT(again.lines, Contains("kept from before"));
    {
        settings.compiler = "/bin/false";
        Service service(settings, [](const std::string&) {});
        CHECK(service.compiled() == 0);
        const std::string identity = service.submit_ptx(kNoTenant, choice, {90, true});
        const Service::Answer at_once = service.wait_for(kNoTenant, identity, std::chrono::milliseconds(0));
        REQUIRE(at_once.state == Service::State::kDone);  // no thread had to find it
        CHECK(at_once.result->image == first.result->image);
        CHECK(service.compiled() == 1);
        settings.compiler = toy_settings().compiler;
    }
    choice.registers.clear();
    CHECK_THAT(make(choice, settings).result->image, !Contains(".maxnreg"));
}

TEST_CASE("why PTX has no managed form is said by kernel, and is kept too") {
    TemporaryFolder folder;
    const PtxChoice choice{module_for(90, "mov.u64 %rd1, %gridid;\nret;"), {}, ""};
    for (const char* how : {"compiled in", "kept from before"}) {
        const MadeByService made = make(choice, toy_settings(folder.file("cache")));
        CHECK(made.result->image.empty());
        CHECK_THAT(made.result->reason, Contains("no kernel of it can be managed"));
        CHECK_THAT(made.lines, Contains("1 refused (k: reads %gridid)") && Contains(how));
    }
    CHECK_THAT(make({"nonsense", {}, ""}, toy_settings()).result->reason,
               Contains("its PTX cannot be read: line 1"));
}
