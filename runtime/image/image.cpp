#include "runtime/image/image.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <optional>

#include "runtime/image/bytes.h"

namespace smt::image {

namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr uint16_t kFatbinVersion = 1;

constexpr uint16_t kEntryPtx = 1;
constexpr uint16_t kEntryCubin = 2;

constexpr uint64_t kFlagLz4 = 0x2000;
constexpr uint64_t kFlagZstd = 0x8000;
constexpr uint64_t kFlagSpecific = 0x100000;  // sm_90a
constexpr uint64_t kFlagFamily = 0x200000;    // sm_100f

struct FatbinHeader {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t payload_bytes;
};
static_assert(sizeof(FatbinHeader) == 16);

struct EntryHeader {
    uint16_t kind;
    uint16_t version;
    uint32_t header_bytes;
    uint64_t payload_bytes;     // with padding
    uint32_t compressed_bytes;  // without; 0 if it is not compressed
    uint32_t options_at;
    uint16_t code_minor, code_major;
    uint32_t architecture;
    uint32_t name_at, name_bytes;
    uint64_t flags;
    uint64_t unused;
    uint64_t bytes;  // decompressed; 0 if it is not compressed
};
static_assert(sizeof(EntryHeader) == 64);

constexpr uint64_t kShortestEntryHeader = sizeof(EntryHeader);

constexpr int kNoDevice = 0xffff;  // a target with a number that is larger than any

Kind kind_of(uint16_t number) {
    return number == kEntryPtx ? Kind::kPtx : number == kEntryCubin ? Kind::kCubin : Kind::kOther;
}

// Null: fine.
std::optional<Problem> read_entry(std::string_view payload, uint64_t at, EntryHeader* header, Entry* entry) {
    if (!read_at(payload, at, header))
        return Problem{fmt::format("the entry at {} of the fatbin has no header", at)};
    uint64_t left = payload.size() - at;
    if (header->header_bytes < kShortestEntryHeader || header->header_bytes > left ||
        header->payload_bytes > left - header->header_bytes)
        return Problem{fmt::format("the entry at {} of the fatbin leads out of it", at)};
    entry->kind = kind_of(header->kind);
    entry->architecture = static_cast<int>(header->architecture & 0xffff);
    entry->variant = header->flags & kFlagSpecific ? 'a' : header->flags & kFlagFamily ? 'f' : 0;
    entry->stored = payload.substr(at + header->header_bytes, header->payload_bytes);
    entry->bytes = header->payload_bytes;
    if (!(header->flags & (kFlagLz4 | kFlagZstd))) return std::nullopt;
    entry->compression = header->flags & kFlagZstd ? Compression::kZstd : Compression::kLz4;
    if (header->compressed_bytes > entry->stored.size())
        return Problem{fmt::format("the entry at {} of the fatbin has {} compressed bytes in {}", at,
                                   header->compressed_bytes, entry->stored.size())};
    entry->stored = entry->stored.substr(0, header->compressed_bytes);
    entry->bytes = header->bytes;
    return std::nullopt;
}

std::variant<std::vector<Entry>, Problem> read_fatbin(std::string_view image) {
    FatbinHeader header;
    if (!read_at(image, 0, &header)) return Problem{"a fatbin without a whole header"};
    if (header.version != kFatbinVersion)
        return Problem{fmt::format("a fatbin of version {}, not 1", header.version)};
    if (fatbin_bytes(image) == 0)
        return Problem{
            fmt::format("a fatbin of {} bytes that says it has {}", image.size(), header.payload_bytes)};
    std::string_view payload = image.substr(header.header_bytes, header.payload_bytes);
    std::vector<Entry> entries;
    for (uint64_t at = 0; at < payload.size();) {
        EntryHeader entry_header;
        Entry entry;
        if (auto problem = read_entry(payload, at, &entry_header, &entry)) return *problem;
        entries.push_back(entry);
        at += entry_header.header_bytes + entry_header.payload_bytes;
    }
    if (entries.empty()) return Problem{"a fatbin without entries"};
    return entries;
}

// Behind blanks and comments.
size_t skip_blanks(std::string_view text, size_t at) {
    while (at < text.size()) {
        if (std::isspace(static_cast<unsigned char>(text[at]))) {
            ++at;
        } else if (text.substr(at, 2) == "//") {
            at = std::min(text.find('\n', at), text.size());
        } else if (text.substr(at, 2) == "/*") {
            size_t close = text.find("*/", at + 2);
            at = close == text.npos ? text.size() : close + 2;
        } else {
            break;
        }
    }
    return at;
}

// sm_90a, behind .target at the head of the text
void read_target(std::string_view text, Entry* entry) {
    constexpr int kHeadWords = 8;  // .version 9.0 .target sm_90
    size_t at = skip_blanks(text, 0);
    bool target = false;
    for (int i = 0; i < kHeadWords && at < text.size(); ++i) {
        size_t end = at;
        while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end])) && text[end] != ',')
            ++end;
        std::string_view word = text.substr(at, end - at);
        if (target && word.starts_with("sm_")) {
            const char* last = word.data() + word.size();
            auto [rest, error] = std::from_chars(word.data() + 3, last, entry->architecture);
            if (error == std::errc::result_out_of_range) entry->architecture = kNoDevice;
            if (error == std::errc::invalid_argument || entry->architecture < 0) entry->architecture = 0;
            if (rest != last && (*rest == 'a' || *rest == 'f')) entry->variant = *rest;
            return;
        }
        target |= word == ".target";
        at = skip_blanks(text, end + (end == at));  // a ',' is skipped
    }
}

bool is_text(std::string_view image) {
    size_t at = skip_blanks(image, 0);
    return at < image.size() && image[at] == '.';
}

}  // namespace

bool is_fatbin(std::string_view bytes) {
    uint32_t magic = 0;
    return read_at(bytes, 0, &magic) && magic == kFatbinMagic;
}

uint64_t fatbin_bytes(std::string_view bytes) {
    FatbinHeader header;
    if (!read_at(bytes, 0, &header) || header.header_bytes < sizeof header ||
        header.header_bytes > bytes.size() || header.payload_bytes > bytes.size() - header.header_bytes)
        return 0;
    return header.header_bytes + header.payload_bytes;
}

bool is_empty_fatbin(std::string_view bytes) {
    return is_fatbin(bytes) && fatbin_bytes(bytes) == sizeof(FatbinHeader);
}

std::variant<std::vector<Entry>, Problem> read(std::string_view image) {
    uint32_t magic = 0;
    read_at(image, 0, &magic);
    if (is_fatbin(image)) return read_fatbin(image);
    if (magic == kWrapperMagic)
        return Problem{"a fatbin's wrapper: it holds a pointer to the image, not the image"};
    Entry entry;
    entry.stored = image;
    entry.bytes = image.size();
    if (int architecture = cubin_architecture(image)) {
        entry.kind = Kind::kCubin;
        entry.architecture = architecture;
    } else if (is_text(image)) {
        entry.kind = Kind::kPtx;
        read_target(image, &entry);
    } else {
        return Problem{fmt::format("{} bytes that are no fatbin, no cubin and no PTX", image.size())};
    }
    return std::vector{entry};
}

std::string target_of(const Entry& entry) {
    if (entry.architecture == 0) return "no target";
    std::string target =
        fmt::format("{}_{}", entry.kind == Kind::kPtx ? "compute" : "sm", entry.architecture);
    if (entry.variant) target += entry.variant;
    return target;
}

}  // namespace smt::image
