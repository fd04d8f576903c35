// The journal's writer. See file_format.h for how an entry is guarded.
#include "runtime/journal/journal.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/journal/file_format.h"

namespace smt::runtime::journal {

struct Writer::Impl {
    char* file = nullptr;
    std::mutex mutex;  // guards the rest, the end of the name table, and that of the lines
    std::unordered_map<std::string, uint32_t> indices;
    std::unordered_map<std::string, uint64_t> lines;             // first units of those that are there
    std::deque<std::pair<uint64_t, const std::string*>> by_age;  // of them

    FileHeader& header() { return *reinterpret_cast<FileHeader*>(file); }
};

namespace {

// A new file, filled so that a full disk is an error here and not a SIGBUS later. An older journal
// is unlinked, not truncated: a reader may still have it mapped.
char* create_file(const std::string& path, std::string& error) {
    ::unlink(path.c_str());
    int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        error = "cannot create journal " + path + ": " + std::strerror(errno);
        return nullptr;
    }
    int full = ::posix_fallocate(fd, 0, kFileBytes);
    void* file = full ? MAP_FAILED : ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED) {
        error = "cannot map journal " + path + ": " + std::strerror(full ? full : errno);
        ::unlink(path.c_str());
    }
    ::close(fd);
    return file == MAP_FAILED ? nullptr : static_cast<char*>(file);
}

std::atomic_ref<uint64_t> word(uint64_t* words, uint64_t index) {
    return std::atomic_ref<uint64_t>(words[index]);
}

// Takes the slot for one writer. False when another holds it, which takes a writer that slept
// through a whole ring.
bool take(std::atomic_ref<uint64_t> guard, uint64_t expected) {
    return expected != kBusy && guard.compare_exchange_strong(expected, kBusy, std::memory_order_acquire);
}

}  // namespace

Writer::Writer(const std::string& path) : path_(path) {
    char* file = create_file(path, error_);
    if (!file) return;
    impl_ = new Impl;
    impl_->file = file;
    FileHeader& header = impl_->header();
    header.version = kFileVersion;
    header.entry_bytes = sizeof(Entry);
    header.entries = kEntries;
    header.name_bytes = kNameBytes;
    header.next.store(1, std::memory_order_relaxed);
    std::memcpy(file + kNamesOffset, "?", 2);
    header.names_used.store(2, std::memory_order_relaxed);
    std::atomic_ref<uint64_t>(header.magic).store(kFileMagic, std::memory_order_release);
}

Writer::~Writer() {
    if (!impl_) return;
    ::munmap(impl_->file, kFileBytes);
    delete impl_;
}

void Writer::end(Ending how) {
    if (impl_) impl_->header().ending.store(static_cast<uint32_t>(how), std::memory_order_release);
}

uint32_t Writer::name(std::string_view text) {
    if (!impl_ || text.empty()) return 0;
    text = text.substr(0, text.find('\0'));
    std::lock_guard lock(impl_->mutex);
    if (const auto known = impl_->indices.find(std::string(text)); known != impl_->indices.end())
        return known->second;
    uint32_t used = impl_->header().names_used.load(std::memory_order_relaxed);
    if (text.size() + 1 > kNameBytes - used) return 0;
    std::memcpy(impl_->file + kNamesOffset + used, text.data(), text.size());  // the file is zero beyond
    impl_->header().names_used.store(used + static_cast<uint32_t>(text.size()) + 1,
                                     std::memory_order_release);
    return impl_->indices[std::string(text)] = used;
}

// One that is there already is taken again, but not when it is among the older half: its entry will be there
// for longer.
uint32_t Writer::line(std::string_view text) {
    if (!impl_ || text.empty()) return 0;
    const std::string cut(text.substr(0, std::min<size_t>(text.find('\0'), kLongestLine)));
    const auto index = [](uint64_t unit) { return kLineBit | static_cast<uint32_t>(unit & (kLineBit - 1)); };
    std::lock_guard lock(impl_->mutex);
    std::atomic<uint64_t>& used = impl_->header().lines_used;
    uint64_t begin = used.load(std::memory_order_relaxed);
    const auto known = impl_->lines.find(cut);
    if (known != impl_->lines.end() && begin - known->second <= kLineUnits / 2) return index(known->second);
    std::vector<uint64_t> words((cut.size() / (kUnitWords * sizeof(uint64_t)) + 1) * kUnitWords);
    const uint64_t units = words.size() / kUnitWords;
    std::memcpy(words.data(), cut.data(), cut.size());
    if (begin % kLineUnits + units > kLineUnits) begin += kLineUnits - begin % kLineUnits;
    used.store(begin + units, std::memory_order_release);
    for (size_t i = 0; i < words.size(); ++i)
        word(line_words(impl_->file, begin), i).store(words[i], std::memory_order_release);
    while (!impl_->by_age.empty() && impl_->by_age.front().first + kLineUnits < begin + units) {
        const auto [unit, old] = impl_->by_age.front();
        impl_->by_age.pop_front();
        if (const auto kept = impl_->lines.find(*old); kept->second == unit) impl_->lines.erase(kept);
    }
    const auto entry = impl_->lines.insert_or_assign(cut, begin).first;
    impl_->by_age.emplace_back(begin, &entry->first);
    return index(begin);
}

uint64_t Writer::write(Entry entry) {
    if (!impl_) return 0;
    if (entry.time_ns == 0 && !entry.virtual_time) entry.time_ns = now_ns();
    entry.sequence = impl_->header().next.fetch_add(1, std::memory_order_relaxed);
    uint64_t* slot = slot_words(impl_->file, entry.sequence);
    if (!take(word(slot, 0), word(slot, 0).load(std::memory_order_relaxed))) return entry.sequence;
    uint64_t words[kEntryWords];
    std::memcpy(words, &entry, sizeof(entry));
    for (uint64_t i = 1; i < kEntryWords; ++i) word(slot, i).store(words[i], std::memory_order_release);
    word(slot, 0).store(entry.sequence, std::memory_order_release);
    return entry.sequence;
}

void Writer::set_times(uint64_t sequence, uint64_t start_ns, uint64_t end_ns) {
    if (!impl_ || sequence == 0) return;
    uint64_t* slot = slot_words(impl_->file, sequence);
    if (!take(word(slot, 0), sequence)) return;
    word(slot, offsetof(Entry, start_ns) / sizeof(uint64_t)).store(start_ns, std::memory_order_release);
    word(slot, offsetof(Entry, end_ns) / sizeof(uint64_t)).store(end_ns, std::memory_order_release);
    word(slot, 0).store(sequence, std::memory_order_release);
}

void release_unused(const std::string& path) {
    constexpr uint64_t kPage = 4096;
    int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return;
    FileHeader header;
    const auto release = [&](uint64_t begin, uint64_t end) {
        begin = (begin + kPage - 1) / kPage * kPage;
        if (begin < end)
            ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                        static_cast<off_t>(end - begin));
    };
    if (::pread(fd, static_cast<void*>(&header), sizeof header, 0) == sizeof header &&
        header.magic == kFileMagic && header.version == kFileVersion) {
        release(kNamesOffset + std::min(header.names_used.load(), kNameBytes), kLinesOffset);
        if (header.lines_used.load() < kLineUnits)
            release(kLinesOffset + header.lines_used.load() * kUnitWords * sizeof(uint64_t), kSlotsOffset);
        if (header.next.load() < kEntries)
            release(kSlotsOffset + header.next.load() * sizeof(Entry), kFileBytes);
    }
    ::close(fd);
}

uint64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000ull + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace smt::runtime::journal
