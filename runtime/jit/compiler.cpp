#include "runtime/jit/compiler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "runtime/protocol/environment.h"

namespace smt::runtime::jit {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kChildDescriptor = 3, kSharedDescriptor = 4;
constexpr auto kStartTimeout = 30s;    // to load NVRTC from a slow disk
constexpr int kOrdersOfOneLife = 100;  // compilers leak
constexpr auto kLook = 50ms;           // how often a wait looks whether it was interrupted

// Of smtd's own, without what puts libraries in front and without a GPU.
std::vector<std::string> child_environment() {
    std::vector<std::string> kept;
    const std::string preload = std::string(environment::kPreload) + "=";
    const std::string visible = std::string(environment::kVisibleDevices) + "=";
    for (char** at = environ; *at; ++at) {
        if (strncmp(*at, preload.c_str(), preload.size()) == 0) continue;
        if (strncmp(*at, visible.c_str(), visible.size()) == 0) continue;
        kept.emplace_back(*at);
    }
    kept.push_back(visible);
    return kept;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
}

Result failed(const std::string& why) {
    Result result;
    result.reason = why;
    return result;
}

}  // namespace

bool Compiler::spawn(int descriptor, std::string& problem) {
    std::vector<std::string> arguments = {settings_.compiler,
                                          "--descriptor",
                                          std::to_string(kChildDescriptor),
                                          "--memory",
                                          std::to_string(settings_.memory_bytes),
                                          "--cpu",
                                          std::to_string(settings_.cpu / 1s)};
    if (shared_ >= 0) arguments.insert(arguments.end(), {"--shared", std::to_string(kSharedDescriptor)});
    std::vector<std::string> variables = child_environment();
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, descriptor, kChildDescriptor);
    if (shared_ >= 0) posix_spawn_file_actions_adddup2(&files, shared_, kSharedDescriptor);
    posix_spawn_file_actions_addclosefrom_np(&files,
                                             shared_ >= 0 ? kSharedDescriptor + 1 : kChildDescriptor + 1);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawn(&child_, settings_.compiler.c_str(), &files, &attributes,
                            pointers(arguments).data(), pointers(variables).data());
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (error == 0) return true;
    child_ = 0;
    problem =
        fmt::format("the compile worker {} does not start: {}", settings_.compiler, std::strerror(error));
    return false;
}

bool Compiler::start(std::string& problem) {
    if (child_) return true;
    if (settings_.compiler.empty()) return problem = "there is no compile worker beside smtd", false;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        problem = fmt::format("no socket for the compile worker: {}", std::strerror(errno));
        return false;
    }
    // dup2() onto itself would keep FD_CLOEXEC: move it away from where the child expects it.
    int theirs =
        pair[1] == kChildDescriptor ? fcntl(pair[1], F_DUPFD_CLOEXEC, kChildDescriptor + 1) : pair[1];
    bool spawned = theirs >= 0 && spawn(theirs, problem);
    if (theirs != pair[1] && theirs >= 0) close(theirs);
    close(pair[1]);
    socket_ = pair[0];
    const timeval limit{settings_.time / 1s, 0};  // of a worker that does not read
    setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (!spawned) return end(), false;
    std::optional<std::string> bytes = receive(Message::kReady, Clock::now() + kStartTimeout, problem);
    std::optional<Ready> ready = bytes ? decode_ready(*bytes) : std::nullopt;
    if (!ready) {
        if (problem.empty()) problem = "the compile worker answered nonsense";
        return end(), false;
    }
    ready_ = *ready;
    return true;
}

std::string Compiler::nvrtc(std::string& problem) {
    if (!start(problem)) return "";
    problem = ready_.problem;
    return ready_.nvrtc;
}

std::optional<std::string> Compiler::exchange(Message message, std::string_view bytes, Message expected,
                                              std::string& problem, bool* started) {
    // A worker that died while it had nothing to do is noticed at the first byte.
    bool sent = false;
    for (int attempt = 0; attempt < 2 && !sent; ++attempt) {
        const bool runs = start(problem);
        if (started) *started = runs;
        if (!runs) return std::nullopt;
        sent = write_message(socket_, message, bytes);
        if (!sent) end();
    }
    if (!sent) return problem = "the compile worker does not listen", std::nullopt;
    std::optional<std::string> answer = receive(expected, Clock::now() + settings_.time, problem);
    if (answer) return answer;
    if (problem.empty()) problem = "the compile worker answered nonsense";
    end();
    return std::nullopt;
}

Result Compiler::compile(const Order& order) {
    const std::string bytes = encode(order);
    std::string problem;
    if (bytes.size() > kMostBytes) return failed("the source is too large");
    const std::optional<std::string> answer = exchange(Message::kOrder, bytes, Message::kResult, problem);
    if (!answer) return failed(problem);
    std::optional<Result> result = decode_result(*answer);
    if (!result || !result->lasting || ++orders_ >= kOrdersOfOneLife) end();
    return result ? *result : failed("the compile worker answered nonsense");
}

bool Compiler::receive_bytes(void* to, size_t bytes, TimePoint deadline, std::string& problem) {
    char* at = static_cast<char*>(to);
    while (bytes) {
        if (interrupted_.load()) return problem = "the server is leaving", false;
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left <= 0ms) {
            problem = fmt::format("it took the compile worker longer than {} s", settings_.time / 1s);
            return false;
        }
        pollfd waiting{socket_, POLLIN, 0};
        if (poll(&waiting, 1,
                 static_cast<int>(std::min(left, std::chrono::milliseconds(kLook)).count()) + 1) <= 0)
            continue;
        ssize_t got = recv(socket_, at, bytes, MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got <= 0) return problem = farewell(), false;
        at += got;
        bytes -= static_cast<size_t>(got);
    }
    return true;
}

// No problem and no bytes: what came was no message.
std::optional<std::string> Compiler::receive(Message expected, TimePoint deadline, std::string& problem) {
    Head head;
    if (!receive_bytes(&head, sizeof head, deadline, problem)) return std::nullopt;
    if (head.magic != Head::kMagic || head.message != expected || head.bytes > kMostBytes)
        return std::nullopt;
    std::string bytes(head.bytes, '\0');
    if (!receive_bytes(bytes.data(), bytes.size(), deadline, problem)) return std::nullopt;
    return bytes;
}

// It closed its end: it is dying, or has lost its mind.
std::string Compiler::farewell() {
    int status = 0;
    pid_t reaped = 0;
    const TimePoint deadline = Clock::now() + 1s;
    while ((reaped = waitpid(child_, &status, WNOHANG)) == 0 && Clock::now() < deadline) usleep(1000);
    if (reaped != child_) return "the compile worker hung up";
    child_ = 0;
    if (WIFSIGNALED(status)) {
        return fmt::format("the compile worker crashed: {}", strsignal(WTERMSIG(status)));
    }
    return fmt::format("the compile worker ended with exit code {}", WEXITSTATUS(status));
}

void Compiler::end() {
    if (child_) {
        kill(child_, SIGKILL);
        while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
    }
    if (socket_ >= 0) close(socket_);
    child_ = 0;
    socket_ = -1;
    orders_ = 0;
}

}  // namespace smt::runtime::jit
