#include "rewriter/machine_code/attributes.h"

#include "tests/machine_code/cubins.h"

namespace smt::machine_code {
namespace {

std::string words(std::initializer_list<uint32_t> all) {
    std::string bytes;
    for (uint32_t word : all) bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
    return bytes;
}

Attribute with(uint8_t kind, std::initializer_list<uint32_t> all) {
    return {Form::kBytes, kind, 0, words(all)};
}

TEST_CASE("attributes of all forms are written as they were read") {
    const std::string info("\x01\x04\x00\x00\x02\x4c\x01\x00\x03\x19\x18\x00\x04\x1c\x08\x00", 16);
    const std::string bytes = info + words({0x70, 0x80});
    const auto read = must_be(read_attributes(bytes));
    REQUIRE(read.size() == 4);
    CHECK(read[0] == Attribute{Form::kNone, kCtaIdZUsed, 0, ""});
    CHECK(read[1] == Attribute{Form::kByte, kBarriers, 1, ""});
    CHECK(read[2] == Attribute{Form::kHalf, kParameterBytes, 24, ""});
    CHECK(read[3].words() == std::vector<uint32_t>{0x70, 0x80});
    CHECK(write_attributes(read) == bytes);
    CHECK(find(read, kParameterBytes) == &read[2]);
    CHECK(find(read, kMbarrierOffsets) == nullptr);
}

TEST_CASE("an attribute that is appended to is written longer") {
    std::vector<Attribute> all{with(kExitOffsets, {0x70})};
    all[0].append(0x1234);
    CHECK(must_be(read_attributes(write_attributes(all)))[0].words() == std::vector<uint32_t>{0x70, 0x1234});
}

TEST_CASE("cut attributes and unknown forms are problems") {
    const std::string bytes = write_attributes({with(kExitOffsets, {0x70, 0x80})});
    for (size_t size = 1; size < bytes.size(); ++size)
        CHECK(problem_of(read_attributes(bytes.substr(0, size))).find("is cut") != std::string::npos);
    for (const char form : {'\0', '\5', '\xff'})
        CHECK(problem_of(read_attributes(std::string({form, 0x1c, 0, 0}))).find("unknown form") !=
              std::string::npos);
}

// Moved by 128 within code of 0x200 bytes; nothing: it cannot be.
std::vector<uint32_t> moved(Attribute attribute) {
    const Attribute before = attribute;
    if (move_offsets(attribute, 0x200, 128)) return attribute.words();
    CHECK(attribute == before);
    return {};
}
using Words = std::vector<uint32_t>;

TEST_CASE("offsets of instructions move with the code, and nothing else") {
    for (const uint8_t kind : {kExitOffsets, kCooperativeOffsets, kWarpWideOffsets, kSyscallOffsets})
        CHECK(moved(with(kind, {0x70, 0, 0x1f0})) == Words{0xf0, 0x80, 0x270});
    // Of four words the first is an offset; of two the first; of two the second.
    CHECK(moved(with(kMbarrierOffsets, {0x70, 1, 2, 3, 0x90, 4, 5, 6})) ==
          Words{0xf0, 1, 2, 3, 0x110, 4, 5, 6});
    CHECK(moved(with(kUnusedBytesOffsets, {0x70, 0xfff, 0, 0xfff0})) == Words{0xf0, 0xfff, 0x80, 0xfff0});
    CHECK(moved(with(0x2e, {0x70, 3, 0x80, 4})) == Words{0xf0, 3, 0x100, 4});
    CHECK(moved(with(0x40, {0x70, 3, 5})) == Words{0xf0, 3, 5});
    CHECK(moved(with(0x55, {1, 0x70, 1, 0x90})) == Words{1, 0xf0, 1, 0x110});
    // Offset, 0, count and as many targets.
    CHECK(moved(with(kIndirectBranches, {0x70, 0, 2, 0x80, 0x90, 0x70, 0, 1, 0})) ==
          Words{0xf0, 0, 2, 0x100, 0x110, 0xf0, 0, 1, 0x80});
    CHECK(moved(with(kParameter, {0x70, 0, 0})) == Words{0x70, 0, 0});
    Attribute half{Form::kHalf, kParameterBytes, 0x70, ""};
    CHECK(move_offsets(half, 0x200, 128));
    CHECK(half.value == 0x70);
}

TEST_CASE("offsets that lead to no instruction of the code do not move, nor do cut records") {
    CHECK(moved(with(kExitOffsets, {0x70, 0x200})).empty());
    CHECK(moved(with(kExitOffsets, {0x70, 0x78})).empty());
    CHECK(moved(with(kMbarrierOffsets, {0x70, 1, 2})).empty());
    CHECK(moved(with(kIndirectBranches, {0x70, 0, 3, 0x80, 0x90})).empty());
    CHECK(moved(with(kIndirectBranches, {0x70, 0, 1, 0x200})).empty());
    CHECK(moved(with(kIndirectBranches, {0x70, 0})).empty());
    Attribute cut = with(kExitOffsets, {0x70});
    cut.bytes += '\0';
    CHECK(moved(cut).empty());
}

}  // namespace
}  // namespace smt::machine_code
