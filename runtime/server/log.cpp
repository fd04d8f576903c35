#include "runtime/server/log.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include "runtime/journal/printable.h"

namespace smt::runtime::server {

void log_line(std::string_view text) {
    time_t now = time(nullptr);
    tm local{};
    localtime_r(&now, &local);
    std::string line = fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} smtd[{}] {}\n", local.tm_year + 1900,
                                   local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                                   getpid(), journal::printable(text));
    // One write, so that lines of several threads do not mix. A failed write, as on a full disk, is ignored.
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

}  // namespace smt::runtime::server
