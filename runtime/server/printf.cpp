#include "runtime/server/printf.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/server/session.h"

namespace smt::runtime::server {

DevicePrintf::~DevicePrintf() {
    if (file_ >= 0) close(file_);
}

bool DevicePrintf::redirect_stdout() {
    file_ = memfd_create("smt-device-printf", MFD_CLOEXEC);
    if (file_ < 0 || dup2(file_, STDOUT_FILENO) < 0) return false;
    return fcntl(STDOUT_FILENO, F_SETFL, O_APPEND) == 0;
}

std::unique_lock<std::mutex> DevicePrintf::launching(Session& session) {
    std::unique_lock lock(mutex_);
    Session* before = holder_.load(std::memory_order_relaxed);
    if (before == &session) return lock;
    if (before) {
        before->streams().synchronize_all();
        collect_locked(*before);
    }
    holder_.store(&session, std::memory_order_release);
    session.arena().header().printing.store(1, std::memory_order_release);
    return lock;
}

void DevicePrintf::leave(Session& session) {
    std::lock_guard lock(mutex_);
    if (holder_.load(std::memory_order_relaxed) != &session) return;
    collect_locked(session);
    holder_.store(nullptr, std::memory_order_release);
}

void DevicePrintf::collect_from_stdout(Session& session) {
    std::lock_guard lock(mutex_);
    if (holder_.load(std::memory_order_relaxed) == &session) collect_locked(session);
}

// The driver printed through our stdout; another session's synchronisation may be printing the
// holder's lines right now, so the file is never truncated: what was read becomes a hole.
void DevicePrintf::collect_locked(Session& session) {
    std::fflush(stdout);
    struct stat file;
    if (file_ < 0 || fstat(file_, &file) != 0) return;
    uint64_t end = static_cast<uint64_t>(file.st_size);
    if (end <= read_) return;
    char buffer[16 << 10];
    uint64_t from = read_;
    while (read_ < end) {
        size_t wanted = end - read_ < sizeof buffer ? end - read_ : sizeof buffer;
        ssize_t got = pread(file_, buffer, wanted, static_cast<off_t>(read_));
        if (got <= 0) break;
        session.add_output(buffer, static_cast<size_t>(got));
        read_ += static_cast<uint64_t>(got);
    }
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
              static_cast<off_t>(read_ - from));
}

}  // namespace smt::runtime::server
