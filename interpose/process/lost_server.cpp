#include "interpose/process/lost_server.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "runtime/protocol/runtime_folder.h"

namespace smt::interpose {

namespace {

constexpr size_t kFolderBytes = 512;
constexpr int kGenerations = 4;      // of logs that a later server moved away (runtime/server/generations.h)
constexpr size_t kTailBytes = 4096;  // at a log's end, searched for its last line
constexpr size_t kShownBytes = 400;  // of that line

struct Server {
    char log_path[2 * kFolderBytes];
    char log_place[160];  // in place of log_path, of a system's server
    int pid;
    std::atomic<bool> said;
};
constinit PerSession<Server> servers;

// The text of the last line of the server `pid` in the file, without time and process; false: there is none.
bool last_line(const char* path, int pid, char (&line)[kShownBytes]) {
    char tail[kTailBytes + 1];
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return false;
    struct stat found{};
    ssize_t got = -1;
    if (fstat(file, &found) == 0) {
        const off_t from = found.st_size > static_cast<off_t>(kTailBytes)
                               ? found.st_size - static_cast<off_t>(kTailBytes)
                               : 0;
        got = pread(file, tail, kTailBytes, from);
    }
    close(file);
    if (got <= 0) return false;
    tail[got] = 0;
    char head[32];
    snprintf(head, sizeof head, " smtd[%d] ", pid);
    const char* last = nullptr;
    for (const char* at = tail; (at = strstr(at, head)); ++at) last = at + strlen(head);
    if (!last) return false;
    snprintf(line, sizeof line, "%.*s", static_cast<int>(strcspn(last, "\n")), last);
    return true;
}

}  // namespace

void remember_server(const Session& session, const char* key, int pid, bool is_system) {
    Server& server = servers.of(session);
    char folder[kFolderBytes];
    server.pid = pid;
    if (is_system)
        snprintf(server.log_place, sizeof server.log_place, "the administrator's (journalctl -u smtd@%s)",
                 key);
    else if (!protocol::name_runtime_folder(folder, sizeof folder))
        snprintf(server.log_path, sizeof server.log_path, "%s/%s.log", folder, key);
}

void say_lost(const Session& session, const char* farewell) {
    Server& server = servers.of(session);
    const char* const path = server.log_path;
    if (server.said.exchange(true)) return;
    char log[sizeof server.log_path + 8], line[kShownBytes], text[sizeof log + 3 * kShownBytes];
    snprintf(log, sizeof log, "%s", path);
    bool found = path[0] && last_line(log, server.pid, line);
    for (int i = 1; path[0] && !found && i <= kGenerations; ++i) {
        snprintf(log, sizeof log, "%s.%d", path, i);
        found = last_line(log, server.pid, line);
    }
    if (!found) snprintf(log, sizeof log, "%s", path[0] ? path : server.log_place);
    const char* const rest =
        "This program's CUDA calls return an error from now on: start it again. The server's log";
    int bytes;
    if (farewell)
        bytes = snprintf(text, sizeof text, "smt: lost the server (process %d): %.*s. %s: %s\n", server.pid,
                         static_cast<int>(kShownBytes), farewell, rest, log);
    else if (found)
        bytes = snprintf(
            text, sizeof text,
            "smt: lost the server (process %d), which crashed or was killed. Its last line: \"%s\". %s: %s\n",
            server.pid, line, rest, log);
    else
        bytes = snprintf(text, sizeof text,
                         "smt: lost the server (process %d), which crashed or was killed. %s: %s\n",
                         server.pid, rest, log);
    if (bytes >= static_cast<int>(sizeof text)) bytes = sizeof text - 1;
    if (write(STDERR_FILENO, text, static_cast<size_t>(bytes)) < 0) return;
}

}  // namespace smt::interpose
