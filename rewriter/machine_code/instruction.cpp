#include "rewriter/machine_code/instruction.h"

#include <cstring>

namespace smt::machine_code {

namespace {

constexpr unsigned kLowAt = 16, kLowBits = 8, kHighAt = 34, kHighBits = 48;
constexpr unsigned kScheduleAt = 105, kScheduleBits = 23;
constexpr int64_t kWord = 4;

constexpr uint64_t mask(unsigned count) { return count == 64 ? ~0ull : (1ull << count) - 1; }

}  // namespace

Instruction Instruction::at(std::string_view code, size_t number) {
    Instruction result;
    std::memcpy(result.words_.data(), code.data() + number * kInstructionBytes, kInstructionBytes);
    return result;
}

void Instruction::append_to(std::string& code) const {
    code.append(reinterpret_cast<const char*>(words_.data()), kInstructionBytes);
}

uint64_t Instruction::bits(unsigned at, unsigned count) const {
    if (at >= 64) return words_[1] >> (at - 64) & mask(count);
    const uint64_t low = words_[0] >> at;
    return (at + count <= 64 ? low : low | words_[1] << (64 - at)) & mask(count);
}

Instruction Instruction::with(unsigned at, unsigned count, uint64_t value) const {
    Instruction result = *this;
    for (unsigned i = 0; i < count; ++i) {
        uint64_t& word = result.words_[(at + i) / 64];
        const uint64_t bit = 1ull << (at + i) % 64;
        word = value >> i & 1 ? word | bit : word & ~bit;
    }
    return result;
}

bool Instruction::sets_stack_register() const {
    constexpr uint64_t kStackRegister = 1;
    const bool moves = is(Operation::kLoadConstant) || is(Operation::kMove) || is(Operation::kMultiplyAdd);
    return moves && always() && bits(16, 8) == kStackRegister;
}

Instruction Instruction::with_constant_moved(uint32_t bytes, ConstantForm form) const {
    constexpr unsigned kBits = 16;
    const auto at = static_cast<unsigned>(form);
    return with(at, kBits, bits(at, kBits) + bytes);
}

bool Instruction::loads_from_others() const {
    constexpr uint64_t kWeak = 0, kConstant = 4, kStrongInCta = 5;
    const uint64_t order = bits(77, 4);
    return (is(Operation::kLoad) || is(Operation::kLoadGlobal)) && order != kWeak && order != kConstant &&
           order != kStrongInCta;
}

Instruction Instruction::scheduled_as(const Instruction& other) const {
    return with(kScheduleAt, kScheduleBits, other.bits(kScheduleAt, kScheduleBits));
}

int64_t Instruction::jump(BranchForm form) const {
    uint64_t words = bits(kHighAt, kHighBits);
    unsigned count = kHighBits;
    if (form == BranchForm::kSplit) {
        words = words << kLowBits | bits(kLowAt, kLowBits);
        count += kLowBits;
    }
    const int64_t signed_words = static_cast<int64_t>(words << (64 - count)) >> (64 - count);
    return signed_words * kWord + static_cast<int64_t>(kInstructionBytes);
}

Instruction Instruction::with_jump(int64_t bytes, BranchForm form) const {
    const int64_t words = (bytes - static_cast<int64_t>(kInstructionBytes)) / kWord;
    if (form == BranchForm::kWhole) return with(kHighAt, kHighBits, static_cast<uint64_t>(words));
    return with(kLowAt, kLowBits, static_cast<uint64_t>(words))
        .with(kHighAt, kHighBits, static_cast<uint64_t>(words >> kLowBits));
}

}  // namespace smt::machine_code
