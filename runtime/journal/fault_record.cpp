#include "runtime/journal/fault_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace smt::runtime::journal {

namespace {

std::chrono::seconds since_1970() {
    return std::chrono::duration_cast<std::chrono::seconds>(
        std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace

void write_fault(const std::string& path, const std::string& text) {
    std::string line = text;
    std::replace(line.begin(), line.end(), '\n', ' ');
    const std::string whole = std::to_string(since_1970().count()) + "\n" + line + "\n";
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return;
    [[maybe_unused]] const ssize_t written = write(file, whole.data(), whole.size());
    close(file);
}

std::optional<LastFault> read_fault(const std::string& path) {
    std::ifstream file(path);
    long long time = 0;
    LastFault fault;
    if (!(file >> time) || file.get() != '\n' || !std::getline(file, fault.text)) return std::nullopt;
    fault.ago = std::max(since_1970() - std::chrono::seconds(time), std::chrono::seconds(0));
    return fault;
}

}  // namespace smt::runtime::journal
