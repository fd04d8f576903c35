#include "runtime/schedule/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/schedule/record.h"

namespace smt::runtime::schedule {

namespace {

using namespace std::chrono_literals;

// Bytes that are written together: one decision in a hundred makes a system call. A killed server loses as
// much.
constexpr size_t kTogether = 64u << 10;
constexpr auto kLongest = 1s;  // until a line is in the file, while decisions are made

}  // namespace

Recorder::Recorder(std::string path, uint64_t most_bytes, std::function<void(const std::string&)> note)
    : path_(std::move(path)), most_bytes_(most_bytes), note_(std::move(note)) {
    if (!path_.starts_with('/')) {
        error_ = path_ + " is no absolute path";  // a server's working directory is /
        return;
    }
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file_ < 0) error_ = "cannot write " + path_ + ": " + std::strerror(errno);
}

Recorder::~Recorder() {
    flush();
    if (file_ >= 0) close(file_);
}

void Recorder::choose(std::string_view policy) { add(policy_line(policy)); }

void Recorder::write(const Snapshot& snapshot, TimePoint now, const Decision& decision) {
    if (file_ < 0) return;
    add(record_line(snapshot, now, decision));
    ++decisions_;
    if (lines_.size() < kTogether && now - flushed_ < kLongest) return;
    flushed_ = now;
    flush();
}

void Recorder::add(const std::string& line) {
    if (file_ < 0) return;
    if (bytes_ + line.size() + 1 > most_bytes_) return stop(fmt::format("it is full with {} bytes", bytes_));
    bytes_ += line.size() + 1;
    lines_ += line;
    lines_ += '\n';
}

void Recorder::flush() {
    for (size_t at = 0; file_ >= 0 && at < lines_.size();) {
        const ssize_t wrote = ::write(file_, lines_.data() + at, lines_.size() - at);
        if (wrote > 0)
            at += static_cast<size_t>(wrote);
        else if (wrote == 0 || errno != EINTR) {
            lines_.clear();
            return stop(std::strerror(errno));
        }
    }
    lines_.clear();
}

void Recorder::stop(const std::string& why) {
    flush();
    if (file_ < 0) return;
    close(std::exchange(file_, -1));
    note_(fmt::format("decisions are no longer recorded in {}: {}, {} decisions", path_, why, decisions_));
}

}  // namespace smt::runtime::schedule
