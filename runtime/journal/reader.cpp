// The journal's reader. It maps a file that another process writes, so nothing in it is trusted:
// sizes are checked once at the start, indices at each use.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/journal/file_format.h"
#include "runtime/journal/journal.h"
#include "runtime/journal/printable.h"

namespace smt::runtime::journal {

// How often an entry that is just being written is looked at again before it is skipped.
constexpr int kAttempts = 8;

struct Reader::Impl {
    char* file = nullptr;  // mapped read-only

    FileHeader& header() const { return *reinterpret_cast<FileHeader*>(file); }
};

namespace {

std::string why_unreadable(const char* file) {
    const auto& header = *reinterpret_cast<const FileHeader*>(file);
    if (header.magic != kFileMagic) return "is not a journal, or is damaged";
    if (header.version != kFileVersion || header.entry_bytes != sizeof(Entry) || header.entries != kEntries ||
        header.name_bytes != kNameBytes)
        return "was written by another version of smt, or is damaged";
    return "";
}

char* map_file(const std::string& path, std::string& error) {
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        error = errno == ENOENT ? "there is no journal " + path + " (has a server run?)"
                                : "cannot open journal " + path + ": " + std::strerror(errno);
        return nullptr;
    }
    struct stat status{};
    char* file = nullptr;
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size != static_cast<off_t>(kFileBytes)) {
        error = path + " is not a journal, or is damaged (its size is wrong)";
    } else if (void* at = ::mmap(nullptr, kFileBytes, PROT_READ, MAP_SHARED, fd, 0); at == MAP_FAILED) {
        error = "cannot map journal " + path + ": " + std::strerror(errno);
    } else {
        file = static_cast<char*>(at);
    }
    ::close(fd);
    return file;
}

// Atomic loads only: the mapping is read-only.
uint64_t load(uint64_t* words, uint64_t index) {
    return std::atomic_ref<uint64_t>(words[index]).load(std::memory_order_acquire);
}

bool copy_entry(uint64_t* slot, uint64_t sequence, Entry& entry) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        uint64_t words[kEntryWords] = {load(slot, 0)};
        if (words[0] == sequence) {
            for (uint64_t i = 1; i < kEntryWords; ++i) words[i] = load(slot, i);
            if (load(slot, 0) == sequence) return std::memcpy(&entry, words, sizeof(entry)), true;
        } else if (words[0] != kBusy && words[0] > sequence) {
            return false;  // overwritten by a later one
        }
        ::sched_yield();
    }
    return false;
}

std::string line_of(char* file, const FileHeader& header, uint32_t index) {
    const uint64_t used = header.lines_used.load(std::memory_order_acquire);
    const uint64_t back = (used - index) & (kLineBit - 1);
    if (back == 0 || back > std::min(used, kLineUnits)) return "?";
    const uint64_t begin = used - back, most = std::min(back, kLineUnits - begin % kLineUnits) * kUnitWords;
    std::string text;
    for (uint64_t i = 0; i < most; ++i) {
        const uint64_t word = load(line_words(file, begin), i);
        text.append(reinterpret_cast<const char*>(&word), sizeof word);
        if (std::memchr(&word, 0, sizeof word)) break;
    }
    if (header.lines_used.load(std::memory_order_acquire) - begin > kLineUnits)
        return "?";  // overwritten meanwhile
    return text.substr(0, text.find('\0'));
}

}  // namespace

Reader::Reader(const std::string& path) {
    char* file = map_file(path, error_);
    if (!file) return;
    if (std::string why = why_unreadable(file); !why.empty()) {
        error_ = path + " " + why;
        ::munmap(file, kFileBytes);
        return;
    }
    impl_ = new Impl{file};
}

Reader::~Reader() {
    if (!impl_) return;
    ::munmap(impl_->file, kFileBytes);
    delete impl_;
}

uint64_t Reader::read(uint64_t from, const std::function<void(const Entry&)>& visit) const {
    if (!impl_) return from;
    uint64_t next = impl_->header().next.load(std::memory_order_acquire);
    uint64_t oldest = next > kEntries ? next - kEntries : 1;
    for (uint64_t sequence = std::max(from, oldest); sequence < next; ++sequence) {
        Entry entry;
        if (copy_entry(slot_words(impl_->file, sequence), sequence, entry)) visit(entry);
    }
    return std::max(from, next);
}

bool Reader::read_one(uint64_t sequence, Entry* entry) const {
    return impl_ && sequence != 0 && copy_entry(slot_words(impl_->file, sequence), sequence, *entry);
}

Ending Reader::ending() const {
    const uint32_t how = impl_ ? impl_->header().ending.load(std::memory_order_acquire) : 0;
    return how <= static_cast<uint32_t>(Ending::kFault) ? static_cast<Ending>(how) : Ending::kNone;
}

std::string Reader::name(uint32_t index) const {
    if (!impl_) return "?";
    if (index & kLineBit) return printable(line_of(impl_->file, impl_->header(), index));
    uint32_t used = std::min(impl_->header().names_used.load(std::memory_order_acquire), kNameBytes);
    if (index >= used) return "?";
    const char* text = impl_->file + kNamesOffset + index;
    return printable({text, ::strnlen(text, used - index)});
}

}  // namespace smt::runtime::journal
