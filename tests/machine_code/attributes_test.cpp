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

TEST_CASE("an attribute that names the first instruction is found, in each of its records") {
    CHECK_FALSE(names_first_instruction(with(kExitOffsets, {0x70, 0x80})));
    CHECK(names_first_instruction(with(kExitOffsets, {0x70, 0})));
    CHECK(names_first_instruction(with(kCooperativeOffsets, {0})));
    CHECK(names_first_instruction(with(kWarpWideOffsets, {16, 0})));
    CHECK(names_first_instruction(with(kSyscallOffsets, {0})));
    // Of four words the first is an offset.
    CHECK_FALSE(names_first_instruction(with(kMbarrierOffsets, {0x70, 0, 0, 0, 0x90, 0, 0, 0})));
    CHECK(names_first_instruction(with(kMbarrierOffsets, {0x70, 0, 0, 0, 0, 1, 1, 1})));
    // Offset, 0, count and as many targets.
    CHECK_FALSE(names_first_instruction(with(kIndirectBranches, {0x70, 0, 2, 0x80, 0x90, 0x70, 0, 1, 0x80})));
    CHECK(names_first_instruction(with(kIndirectBranches, {0x70, 0, 2, 0x80, 0x90, 0x70, 0, 1, 0})));
    CHECK(names_first_instruction(with(kIndirectBranches, {0x70, 0, 3, 0x80, 0x90})));  // cut
    // No offsets at all.
    CHECK_FALSE(names_first_instruction(with(kParameter, {0, 0, 0})));
    CHECK_FALSE(names_first_instruction({Form::kHalf, kParameterBytes, 0, ""}));
}

}  // namespace
}  // namespace smt::machine_code
