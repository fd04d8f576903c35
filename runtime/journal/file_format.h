// The format of a journal file. Only journal.cpp (the writer) and reader.cpp include this.
//
//   file    := FileHeader, names, lines, slots
//   names   := kNameBytes of NUL-terminated strings; a name's index is its offset; index 0 is "?"
//   lines   := a ring of kLineUnits units of 16 bytes. A NUL-terminated string takes whole units and does not
//              wrap round. A line's index is kLineBit plus the number of its first unit since creation.
//   slots   := kEntries entries; entry n lives in slot n % kEntries
//
// Entries are copied in atomic 64-bit words. The first word is the guard:
//
//   writer: guard := kBusy, the other words (release), guard := sequence (release)
//   reader: guard (acquire), the other words (acquire), guard again: kept if both equal the sequence
//
// Release and acquire on each word, not a fence, order the words against the guard: on x86-64 both are plain
// moves, and the thread sanitizer understands them. Lines are copied the same way. The writer advances
// lines_used before it overwrites units.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/journal/journal.h"

namespace smt::runtime::journal {

inline constexpr uint64_t kFileMagic = 0x4c4e524a544d53ull;  // "SMTJRNL"
inline constexpr uint32_t kFileVersion = 4;
inline constexpr uint64_t kBusy = ~0ull;

struct FileHeader {
    uint64_t magic;
    uint32_t version;
    uint32_t entry_bytes;
    uint32_t entries;
    uint32_t name_bytes;
    alignas(64) std::atomic<uint64_t> next;        // sequence of the next entry; the first is 1
    alignas(64) std::atomic<uint32_t> names_used;  // bytes
    alignas(64) std::atomic<uint64_t> lines_used;  // units since creation
    std::atomic<uint32_t> ending;                  // Ending
};

inline constexpr uint32_t kLineBit = 1u << 31;
inline constexpr uint64_t kUnitWords = 2;
inline constexpr uint64_t kLineUnits = kLineBytes / (kUnitWords * sizeof(uint64_t));

inline constexpr uint64_t kNamesOffset = 4096;
inline constexpr uint64_t kLinesOffset = kNamesOffset + kNameBytes;
inline constexpr uint64_t kSlotsOffset = kLinesOffset + kLineBytes;
inline constexpr uint64_t kFileBytes = kSlotsOffset + uint64_t{kEntries} * sizeof(Entry);
inline constexpr uint64_t kEntryWords = sizeof(Entry) / sizeof(uint64_t);
static_assert(sizeof(FileHeader) <= kNamesOffset && sizeof(Entry) % sizeof(uint64_t) == 0);
static_assert(offsetof(Entry, sequence) == 0);
static_assert(kNameBytes < kLineBit && kLineUnits < kLineBit);

// The words of the slot for a sequence number.
inline uint64_t* slot_words(char* file, uint64_t sequence) {
    return reinterpret_cast<uint64_t*>(file + kSlotsOffset + sequence % kEntries * sizeof(Entry));
}

// The words of a line's unit.
inline uint64_t* line_words(char* file, uint64_t unit) {
    return reinterpret_cast<uint64_t*>(file + kLinesOffset) + unit % kLineUnits * kUnitWords;
}

}  // namespace smt::runtime::journal
