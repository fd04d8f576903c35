// What a journal file looks like. Only journal.cpp (the writer) and reader.cpp include this.
//
//   file    := FileHeader, names, slots
//   names   := kNameBytes of NUL-terminated strings; a name's index is its offset; index 0 is "?"
//   slots   := kEntries entries; entry n lives in slot n % kEntries
//
// An entry is moved 64 bits at a time with atomics, and its first word is its guard:
//
//   writer: guard := kBusy, the other words (release), guard := sequence (release)
//   reader: guard (acquire), the other words (acquire), guard again: kept if both equal the sequence
//
// Release and acquire on each word, not a fence, order a word against the guard: on x86-64 both are
// plain moves, and the thread sanitizer understands them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/journal/journal.h"

namespace smt::runtime::journal {

inline constexpr uint64_t kFileMagic = 0x4c4e524a544d53ull;  // "SMTJRNL"
inline constexpr uint32_t kFileVersion = 2;
inline constexpr uint64_t kBusy = ~0ull;

struct FileHeader {
    uint64_t magic;
    uint32_t version;
    uint32_t entry_bytes;
    uint32_t entries;
    uint32_t name_bytes;
    alignas(64) std::atomic<uint64_t> next;        // sequence of the next entry; the first is 1
    alignas(64) std::atomic<uint32_t> names_used;  // bytes
};

inline constexpr uint64_t kNamesOffset = 4096;
inline constexpr uint64_t kSlotsOffset = kNamesOffset + kNameBytes;
inline constexpr uint64_t kFileBytes = kSlotsOffset + uint64_t{kEntries} * sizeof(Entry);
inline constexpr uint64_t kEntryWords = sizeof(Entry) / sizeof(uint64_t);
static_assert(sizeof(FileHeader) <= kNamesOffset && sizeof(Entry) % sizeof(uint64_t) == 0);
static_assert(offsetof(Entry, sequence) == 0);

// The words of the slot that sequence number lives in.
inline uint64_t* slot_words(char* file, uint64_t sequence) {
    return reinterpret_cast<uint64_t*>(file + kSlotsOffset + sequence % kEntries * sizeof(Entry));
}

}  // namespace smt::runtime::journal
