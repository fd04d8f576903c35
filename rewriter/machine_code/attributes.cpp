#include "rewriter/machine_code/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "rewriter/machine_code/instruction.h"
#include "runtime/image/bytes.h"

namespace smt::machine_code {

namespace {

struct Head {
    uint8_t form, kind;
    uint16_t value;  // or a length
};
static_assert(sizeof(Head) == 4);

// Seen in cubins of ptxas 11 to 13.5, and what cuobjdump calls them leaves no doubt. Not 0x62: CTAs of such a
// kernel take over the work of CTAs that have not begun (cluster launch control), of which the frontier knows
// nothing.
constexpr std::array<uint8_t, 44> kKnown = {
    0x04, 0x05, 0x0a, 0x0f, 0x10, 0x17, 0x19, 0x1b, 0x1c, 0x1d, 0x1e, 0x27, 0x28, 0x29, 0x2b,
    0x2d, 0x2e, 0x31, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3d, 0x3e, 0x3f, 0x41, 0x44, 0x45,
    0x46, 0x4a, 0x4c, 0x50, 0x51, 0x52, 0x54, 0x55, 0x5b, 0x5f, 0x40, 0x66, 0x6b, 0x6d,
};

// Which words of an attribute are offsets of instructions: of each record's `words`, the one at `at`.
struct Records {
    uint8_t kind;
    size_t words, at;
};
constexpr Records kRecords[] = {
    {kExitOffsets, 1, 0},
    {kCooperativeOffsets, 1, 0},
    {kWarpWideOffsets, 1, 0},
    {kSyscallOffsets, 1, 0},
    {0x1d, 1, 0},
    {0x27, 1, 0},
    {0x2d, 1, 0},
    {0x2e, 2, 0},
    {kUnusedBytesOffsets, 2, 0},
    {kMbarrierOffsets, 4, 0},
    {0x40, 3, 0},
    {0x55, 2, 1},
};

// Where in `words` the offsets stand; nothing: it is cut. Records of indirect branches have their own
// lengths: offset, 0, count of targets, targets.
std::optional<std::vector<size_t>> places_of_offsets(uint8_t kind, const std::vector<uint32_t>& words) {
    std::vector<size_t> places;
    for (const Records& records : kRecords) {
        if (records.kind != kind) continue;
        if (words.size() % records.words != 0) return std::nullopt;
        for (size_t i = records.at; i < words.size(); i += records.words) places.push_back(i);
    }
    if (kind != kIndirectBranches) return places;
    for (size_t i = 0; i < words.size();) {
        if (words.size() - i < 3 || words[i + 2] > words.size() - i - 3) return std::nullopt;
        const size_t end = i + 3 + words[i + 2];
        places.push_back(i);
        for (i += 3; i < end; ++i) places.push_back(i);
    }
    return places;
}

}  // namespace

std::vector<uint32_t> Attribute::words() const {
    std::vector<uint32_t> result(bytes.size() / sizeof(uint32_t));
    if (!result.empty()) std::memcpy(result.data(), bytes.data(), result.size() * sizeof(uint32_t));
    return result;
}

void Attribute::append(uint32_t word) { bytes.append(reinterpret_cast<const char*>(&word), sizeof word); }

std::variant<std::vector<Attribute>, Problem> read_attributes(std::string_view info) {
    std::vector<Attribute> attributes;
    Head head;
    for (uint64_t at = 0; at < info.size();) {
        if (!image::read_at(info, at, &head)) return Problem{"an attribute is cut"};
        at += sizeof head;
        Attribute attribute{static_cast<Form>(head.form), head.kind, 0, {}};
        if (attribute.form == Form::kBytes) {
            if (head.value > info.size() - at)
                return Problem{fmt::format("attribute {:#x} is cut", head.kind)};
            attribute.bytes = info.substr(at, head.value);
            at += head.value;
        } else if (attribute.form >= Form::kNone && attribute.form <= Form::kHalf) {
            attribute.value = head.value;
        } else {
            return Problem{fmt::format("attribute {:#x} has the unknown form {}", head.kind, head.form)};
        }
        attributes.push_back(std::move(attribute));
    }
    return attributes;
}

std::string write_attributes(const std::vector<Attribute>& attributes) {
    std::string info;
    for (const Attribute& attribute : attributes) {
        const bool bytes = attribute.form == Form::kBytes;
        const Head head{static_cast<uint8_t>(attribute.form), attribute.kind,
                        bytes ? static_cast<uint16_t>(attribute.bytes.size()) : attribute.value};
        info.append(reinterpret_cast<const char*>(&head), sizeof head);
        info += attribute.bytes;
    }
    return info;
}

const Attribute* find(const std::vector<Attribute>& attributes, uint8_t kind) {
    auto found = std::find_if(attributes.begin(), attributes.end(),
                              [&](const Attribute& each) { return each.kind == kind; });
    return found == attributes.end() ? nullptr : &*found;
}

Attribute* find(std::vector<Attribute>& attributes, uint8_t kind) {
    return const_cast<Attribute*>(find(std::as_const(attributes), kind));
}

bool is_known(uint8_t kind) { return std::find(kKnown.begin(), kKnown.end(), kind) != kKnown.end(); }

bool move_offsets(Attribute& attribute, uint64_t code_bytes, uint32_t by) {
    if (attribute.form != Form::kBytes) return true;
    std::vector<uint32_t> words = attribute.words();
    const auto places = places_of_offsets(attribute.kind, words);
    if (!places) return false;
    if (places->empty()) return true;
    if (attribute.bytes.size() % sizeof(uint32_t) != 0) return false;
    for (const size_t place : *places) {
        if (words[place] >= code_bytes || words[place] % kInstructionBytes != 0) return false;
        words[place] += by;
    }
    std::memcpy(attribute.bytes.data(), words.data(), attribute.bytes.size());
    return true;
}

}  // namespace smt::machine_code
