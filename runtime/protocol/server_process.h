// The start of a server, by a program's libsmt.so and by `smt server start`: its command line, its files, and
// its part of the starter's environment. A server outlives the program that started it and serves other
// programs, so it inherits the variables listed below only. The server itself resets other inherited process
// attributes (runtime/server/process.h).
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/protocol/environment.h"
#include "runtime/settings/read.h"

extern char** environ;

namespace smt::protocol {

// Whether the server inherits the variable: all SMT_ variables except those that only
// programs and the command read, and of others
//   paths          the loader's path (the driver may be there), HOME and related, CUDA's folder
//   GPU            the driver's numbering; the starter sets CUDA_VISIBLE_DEVICES to the server's one GPU
//   MPS            its directories
//   messages       language and time zone; sanitizers
// CUDA's other variables are excluded: one program's CUDA_LAUNCH_BLOCKING or CUDA_MODULE_LOADING would apply
// to all.
inline bool server_inherits(const char* entry) {
    using namespace environment;
    const char* const end = strchr(entry, '=');
    if (!end) return false;
    const auto is = [&](const char* name) {
        return strlen(name) == static_cast<size_t>(end - entry) && strncmp(entry, name, strlen(name)) == 0;
    };
    const auto begins = [&](const char* with) { return strncmp(entry, with, strlen(with)) == 0; };
    static constexpr const char* kOthers[] = {kLibraryPath,
                                              kPath,
                                              kHome,
                                              kXdgCacheHome,
                                              kXdgConfigHome,
                                              kCudaHome,
                                              kVirtualEnv,
                                              kVisibleDevices,
                                              "CUDA_DEVICE_ORDER",
                                              "CUDA_MPS_PIPE_DIRECTORY",
                                              "CUDA_MPS_LOG_DIRECTORY",
                                              "USER",
                                              "LOGNAME",
                                              "TMPDIR",
                                              "LANG",
                                              "LANGUAGE",
                                              "TZ",
                                              "ASAN_OPTIONS",
                                              "LSAN_OPTIONS",
                                              "TSAN_OPTIONS",
                                              "UBSAN_OPTIONS"};
    for (const char* name : kOthers)
        if (is(name)) return true;
    if (begins("LC_")) return true;
    bool is_ours = false;
    for (const settings::Setting& each : settings::kSettings) {
        if (!is(each.variable)) continue;
        if (each.readers & ~(settings::kClient | settings::kCommand)) return true;
        is_ours = true;
    }
    return !is_ours && begins("SMT_");  // what test code reads
}

// The server's environment, to be free()d. Null: out of memory. `visible`: its CUDA_VISIBLE_DEVICES, or
// null.
inline char** server_environment(const char* visible) {
    size_t count = 0;
    while (environ[count]) ++count;
    const size_t name_bytes = strlen(environment::kVisibleDevices),
                 visible_bytes = visible ? name_bytes + strlen(visible) + 2 : 0;
    char** copy = static_cast<char**>(malloc((count + 2) * sizeof(char*) + visible_bytes));
    if (!copy) return nullptr;
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
        const bool device = strncmp(environ[i], environment::kVisibleDevices, name_bytes) == 0 &&
                            environ[i][name_bytes] == '=';
        if (server_inherits(environ[i]) && !(visible && device)) copy[kept++] = environ[i];
    }
    if (visible) {
        char* text = reinterpret_cast<char*>(copy + count + 2);
        strcpy(text, environment::kVisibleDevices);
        strcat(text, "=");
        strcat(text, visible);
        copy[kept++] = text;
    }
    copy[kept] = nullptr;
    return copy;
}

enum class ServerStart { kOnItsWay, kCannotRun, kRefused };

// Runs `smtd --daemonize`. Its first process exits once the server proper is started, which closes what it
// inherits. Output before the server opens its log goes to `log`.
// kCannotRun: `error` is an errno. kRefused: the first process failed, and `log` has the reason.
inline ServerStart start_server_process(const char* program, const char* key, const char* visible,
                                        const char* log, int* error) {
    char** variables = server_environment(visible);
    if (!variables) return *error = ENOMEM, ServerStart::kCannotRun;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const char* const arguments[] = {program, "--daemonize", "--key", key, nullptr};
    pid_t child = 0;
    *error =
        posix_spawn(&child, program, &files, &attributes, const_cast<char* const*>(arguments), variables);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    free(variables);
    if (*error != 0) return ServerStart::kCannotRun;
    int status = 0;
    pid_t reaped;
    do reaped = waitpid(child, &status, 0);
    while (reaped < 0 && errno == EINTR);
    // Another thread of the process may have reaped the child; then its status is unknown.
    const bool refused = reaped == child && !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return refused ? ServerStart::kRefused : ServerStart::kOnItsWay;
}

}  // namespace smt::protocol
