#include "runtime/image/image.h"

#include <elf.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "runtime/image/kernel_facts.h"
#include "tests/image/made.h"

namespace smt::image {
namespace {

// Entries view the image, so it must not be a temporary.
std::vector<Entry> entries_of(std::string&& image) = delete;
std::vector<Entry> entries_of(const std::string& image) {
    auto result = read(image);
    if (auto* problem = std::get_if<Problem>(&result)) FAIL(problem->text);
    return std::get<std::vector<Entry>>(result);
}

std::string problem_of(const std::string& image) {
    auto result = read(image);
    auto* problem = std::get_if<Problem>(&result);
    return problem ? problem->text : "";
}

// Of the only entry.
std::string expansion_of(const std::string& image) {
    auto entries = entries_of(image);
    REQUIRE(entries.size() == 1);
    auto result = expand(entries[0]);
    auto* problem = std::get_if<Problem>(&result);
    return problem ? "problem: " + problem->text : std::get<std::string>(result);
}

std::string long_text() {
    std::string text = ".version 9.0\n.target sm_90\n";
    for (int i = 0; i < 100000; ++i) text += "// line " + std::to_string(i % 77) + "\n";
    return text;
}

TEST_CASE("entries of a fatbin, in order", "[image]") {
    const std::string image =
        fatbin({{2, 80, 0, "code"}, {1, 90, kSpecific, "text"}, {8, 90, kFamily, "else"}});
    auto entries = entries_of(image);
    REQUIRE(entries.size() == 3);
    CHECK(entries[0].kind == Kind::kCubin);
    CHECK(entries[0].architecture == 80);
    CHECK(entries[0].variant == 0);
    CHECK(entries[0].stored.substr(0, 4) == "code");
    CHECK(entries[1].kind == Kind::kPtx);
    CHECK(entries[1].variant == 'a');
    CHECK(entries[2].kind == Kind::kOther);
    CHECK(entries[2].variant == 'f');
}

TEST_CASE("entries are expanded, texts lose their padding", "[image]") {
    const std::string text = long_text();
    CHECK(expansion_of(fatbin({{1, 90, 0, "text"}})) == "text");
    CHECK(expansion_of(fatbin({{2, 90, 0, "code1"}})) == std::string("code1\0\0\0", 8));
    CHECK(expansion_of(fatbin({{1, 90, kZstd, zstd(text), text.size()}})) == text);
    CHECK(expansion_of(fatbin({{1, 90, kLz4, lz4(text), text.size()}})) == text);
    CHECK(expansion_of(fatbin({{2, 90, kZstd, zstd(std::string(9, '\0')), 9}})) == std::string(9, '\0'));
}

TEST_CASE("what does not expand to what it says is refused", "[image]") {
    const std::string text = long_text();
    std::string broken = zstd(text);
    broken[broken.size() / 2] ^= 0x55;
    CHECK(expansion_of(fatbin({{1, 90, kZstd, broken, text.size()}}))
              .starts_with("problem: the entry's Zstandard data is broken"));
    CHECK(expansion_of(fatbin({{1, 90, kZstd, zstd(text).substr(0, 90), text.size()}})) ==
          "problem: the entry's Zstandard data is cut");
    CHECK(expansion_of(fatbin({{1, 90, kZstd, zstd("1234567"), 6}})) ==
          "problem: the entry has 7 bytes, not 6");
    CHECK(expansion_of(fatbin({{1, 90, kZstd, zstd("1234567"), 5}})) ==
          "problem: the entry has more than 5 bytes");
    CHECK(expansion_of(fatbin({{1, 90, kZstd, zstd("1234567"), 8}})) ==
          "problem: the entry has 7 bytes, not 8");
    CHECK(expansion_of(fatbin({{1, 90, kZstd, zstd("1"), 1ull << 40}})) ==
          "problem: an entry of 1099511627776 bytes: more than 536870912 is taken for a mistake");
    CHECK(expansion_of(fatbin({{1, 90, kLz4, lz4("1234567"), 8}})) ==
          "problem: the entry has 7 bytes, not 8");
    CHECK(expansion_of(fatbin({{1, 90, kLz4, lz4("1234567"), 6}})) ==
          "problem: the entry's LZ4 data is broken");
    CHECK(expansion_of(fatbin({{1, 90, kLz4, "1234", 1 << 20}})) ==
          "problem: 4 LZ4 bytes cannot become 1048576");
}

TEST_CASE("a text names its target itself", "[image]") {
    auto target_of = [](const std::string& text) { return entries_of(text)[0]; };  // `stored` is not used
    CHECK(target_of("\n// .target sm_50\n.version 9.0\n.target sm_90a, debug\n").architecture == 90);
    CHECK(target_of("/* .target sm_50 */ .version 9.0 .target sm_90a,debug\n").variant == 'a');
    CHECK(target_of(".version 9.0 .target sm_103f").variant == 'f');
    CHECK(target_of(".version 9.0 .target sm_75").variant == 0);
    CHECK(target_of(".version 9.0 .target debug, sm_75").architecture == 75);
    CHECK(target_of(".version 9.0 ").architecture == 0);
    CHECK(target_of(".version 9.0 .target sm_99999999999999").architecture == 0xffff);
    CHECK(target_of(".version 9.0 .target sm_none").architecture == 0);
    CHECK(target_of(".version 9.0").kind == Kind::kPtx);
    CHECK(expansion_of(std::string(".version 9.0\0\0", 14)) == ".version 9.0");
}

TEST_CASE("what is no image is refused in words", "[image]") {
    CHECK(problem_of("") == "0 bytes that are no fatbin, no cubin and no PTX");
    CHECK(problem_of("hello") == "5 bytes that are no fatbin, no cubin and no PTX");
    CHECK(problem_of("// only a comment") == "17 bytes that are no fatbin, no cubin and no PTX");
    CHECK(problem_of(std::string("\xb1\x43\x62\x46\x01\0\0\0", 8)) ==
          "a fatbin's wrapper: it holds a pointer to the image, not the image");
    CHECK(problem_of(fatbin({}).substr(0, 9)) == "a fatbin without a whole header");
    CHECK(problem_of(fatbin({})) == "a fatbin without entries");
    std::string whole = fatbin({{1, 90, 0, "12345678"}});
    CHECK(problem_of(whole.substr(0, whole.size() - 1)) == "a fatbin of 87 bytes that says it has 72");
    std::string other = whole;
    other[4] = 2;
    CHECK(problem_of(other) == "a fatbin of version 2, not 1");
    other = whole;
    other[16 + 4] = 60;  // header bytes of the entry
    CHECK(problem_of(other) == "the entry at 0 of the fatbin leads out of it");
    other = whole;
    std::memset(&other[16 + 8], 0xff, 8);  // its payload bytes
    CHECK(problem_of(other) == "the entry at 0 of the fatbin leads out of it");
    other = whole + "1234";
    other[8] += 4;
    CHECK(problem_of(other) == "the entry at 72 of the fatbin has no header");
    CHECK(problem_of(fatbin({{1, 90, kZstd, "", 1ull << 33}})).empty());  // expand() refuses it
    other = fatbin({{1, 90, kZstd, "12345678", 9}});
    other[16 + 16] = 9;  // compressed bytes
    CHECK(problem_of(other) == "the entry at 0 of the fatbin has 9 compressed bytes in 8");
}

// Writes a field of every section header.
std::string with_sections(std::string cubin, size_t field, uint64_t value) {
    Elf64_Ehdr header;
    std::memcpy(&header, cubin.data(), sizeof header);
    for (size_t i = 0; i < header.e_shnum; ++i)
        std::memcpy(&cubin[header.e_shoff + i * sizeof(Elf64_Shdr) + field], &value, sizeof value);
    return cubin;
}

TEST_CASE("facts of a cubin's kernels", "[image]") {
    auto result = kernel_facts(small_cubin());
    auto& facts = std::get<std::vector<KernelFacts>>(result);
    REQUIRE(facts.size() == 1);
    CHECK(facts[0].name == "k");
    CHECK(facts[0].kernel);
    CHECK(facts[0].registers == 4);
    CHECK(facts[0].stack_bytes == 0);
    CHECK(facts[0].shared_bytes == 0u);
    CHECK(facts[0].barriers == 0);
    CHECK(facts[0].parameters == std::vector<Parameter>{{0, 8}});
    const std::string cubin = small_cubin();
    CHECK(entries_of(cubin)[0].kind == Kind::kCubin);
    CHECK(entries_of(cubin)[0].architecture == 75);
}

TEST_CASE("a broken cubin is refused, or has no facts", "[image]") {
    auto problem = [](const std::string& bytes) {
        auto result = kernel_facts(bytes);
        auto* found = std::get_if<Problem>(&result);
        return found ? found->text : "";
    };
    const std::string cubin = small_cubin();
    CHECK(problem(cubin) == "");
    CHECK(problem(cubin.substr(0, cubin.size() - 200))
              .starts_with("a cubin that cannot be read: an ELF file that is cut"));
    CHECK(problem(cubin.substr(0, 64)).ends_with("its section headers are not in it"));
    CHECK(problem(with_sections(cubin, offsetof(Elf64_Shdr, sh_offset), ~0ull)) == "");  // no names, no facts
    CHECK(problem(with_sections(cubin, offsetof(Elf64_Shdr, sh_link), ~0ull)) == "");
    std::string other = cubin;
    other[offsetof(Elf64_Ehdr, e_shentsize)] = 63;
    CHECK(problem(other) == "a cubin that cannot be read: an ELF file without proper section headers");
}

TEST_CASE("what is no cubin has no facts", "[image]") {
    auto problem = [](const std::string& bytes) { return std::get<Problem>(kernel_facts(bytes)).text; };
    CHECK(problem("") == "no cubin");
    CHECK(problem(std::string(64, '\0')) == "no cubin");
}

}  // namespace
}  // namespace smt::image
