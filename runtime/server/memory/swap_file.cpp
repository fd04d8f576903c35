// See swap_file.h.
#include "runtime/server/memory/swap_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace smt::runtime::server {

namespace {

constexpr uint64_t kBytesOfCall = 16ull << 20;  // of one call: enough for a disk to be busy

// Without a name, from the beginning on or from at once after it. -1: errno says why not.
int open_without_name(const std::string& folder) {
    const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
    std::string name = folder + "/smt-swap-XXXXXX";
    const int named = mkostemp(name.data(), O_CLOEXEC);
    if (named >= 0) unlink(name.c_str());
    return named;
}

bool in_memory(int file) {
    struct statfs facts{};
    if (fstatfs(file, &facts) != 0) return false;
    return facts.f_type == TMPFS_MAGIC || facts.f_type == RAMFS_MAGIC;
}

// To a file system that cannot say ahead whether there is room it is no error.
int reserve(int file, uint64_t at, uint64_t bytes) {
    if (fallocate(file, 0, static_cast<off_t>(at), static_cast<off_t>(bytes)) == 0) return 0;
    return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : errno;
}

std::string advice(int error) {
    const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    return full ? "make room there, or name another folder (swap_folder in SMT_LIMITS)"
                : "see the system's log for that disk, or name another folder (swap_folder in SMT_LIMITS)";
}

}  // namespace

SwapFile::Calls SwapFile::Calls::of_system() { return {::pwrite, ::pread}; }

std::shared_ptr<SwapFile> SwapFile::open(const std::string& folder, uint64_t part_bytes, std::string* problem,
                                         const Calls& calls) {
    const auto refuse = [&](const std::string& why) {
        *problem = fmt::format("swap_folder in SMT_LIMITS is {}: {}", folder, why);
        return nullptr;
    };
    if (!folder.starts_with('/')) return refuse("it takes an absolute path");
    const int file = open_without_name(folder);
    if (file < 0)
        return refuse(fmt::format("no file can be made there: {}; name a folder that the server may write to",
                                  std::strerror(errno)));
    if (in_memory(file)) {
        close(file);
        return refuse("it is in memory (a tmpfs), which files are to spare; name a folder on a disk");
    }
    const bool direct = fcntl(file, F_SETFL, O_DIRECT) == 0;
    return std::shared_ptr<SwapFile>(new SwapFile(file, folder, part_bytes, direct, calls));
}

SwapFile::~SwapFile() { close(file_); }

void SwapFile::Part::give_back() {
    if (file_) file_->give(at_);
    file_ = nullptr;
}

uint64_t SwapFile::take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return std::exchange(end_, end_ + part_bytes_);
    return free_.extract(free_.begin()).value();
}

// What a file system cannot give back stays the file's, for the next part.
void SwapFile::give(uint64_t at) {
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
              static_cast<off_t>(part_bytes_));
    std::lock_guard lock(mutex_);
    free_.insert(at);
}

// `direct`: before the call that returned the error. True: it is to be tried again, through the page cache.
bool SwapFile::wants_cache(bool direct, int error) {
    if (!direct || error != EINVAL) return false;
    direct_.store(false);
    return fcntl(file_, F_SETFL, 0) == 0;
}

// 0, or the system's error.
int SwapFile::write_all(const char* from, uint64_t bytes, uint64_t at) {
    if (const int error = reserve(file_, at, bytes)) return error;
    for (uint64_t done = 0; done < bytes;) {
        const bool direct = direct_.load();
        const ssize_t wrote = calls_.write(file_, from + done, std::min(kBytesOfCall, bytes - done),
                                           static_cast<off_t>(at + done));
        if (wrote < 0 && (errno == EINTR || wants_cache(direct, errno))) continue;
        if (wrote <= 0) return wrote == 0 ? EIO : errno;
        done += static_cast<uint64_t>(wrote);
    }
    if (direct_) return 0;
    if (fdatasync(file_) != 0) return errno;
    posix_fadvise(file_, static_cast<off_t>(at), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
    return 0;
}

SwapFile::Part SwapFile::write(const char* from, uint64_t bytes, std::string* problem) {
    Part part(shared_from_this(), take());
    const int error = write_all(from, bytes, part.at_);
    if (error == 0) return part;
    *problem =
        fmt::format("the file in {} cannot be written: {}; {}", folder_, std::strerror(error), advice(error));
    return {};
}

std::string SwapFile::read(const Part& part, char* to, uint64_t bytes) {
    for (uint64_t done = 0; done < bytes;) {
        const bool direct = direct_.load();
        const ssize_t had = calls_.read(file_, to + done, std::min(kBytesOfCall, bytes - done),
                                        static_cast<off_t>(part.at_ + done));
        if (had < 0 && (errno == EINTR || wants_cache(direct, errno))) continue;
        if (had <= 0)
            return fmt::format("the file in {} cannot be read: {}; {}", folder_,
                               std::strerror(had == 0 ? EIO : errno), advice(EIO));
        done += static_cast<uint64_t>(had);
    }
    if (!direct_)
        posix_fadvise(file_, static_cast<off_t>(part.at_), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
    return {};
}

uint64_t SwapFile::parts() const {
    std::lock_guard lock(mutex_);
    return end_ / part_bytes_ - free_.size();
}

}  // namespace smt::runtime::server
