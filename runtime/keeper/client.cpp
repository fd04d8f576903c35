#include "runtime/keeper/client.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/keeper/channel.h"

extern char** environ;

namespace smt::runtime::keeper {

namespace {

constexpr int kChildDescriptor = 3;
constexpr int kStartMs = 20'000;  // the driver may have to start its own services

bool readable(int socket, int milliseconds) {
    pollfd watched{socket, POLLIN, 0};
    return poll(&watched, 1, milliseconds) == 1;
}

}  // namespace

Client::~Client() { close(socket_); }

int Client::ask(const Request& request, const std::vector<int>& sent, Answer* answer,
                std::vector<int>* files) {
    std::lock_guard lock(mutex_);
    if (!send_packet(socket_, &request, sizeof request, sent, true)) return kLost;
    const size_t got = receive_packet(socket_, answer, sizeof *answer, files);
    const bool good = got >= sizeof(Reply) && answer->reply.magic == kMagic &&
                      answer->reply.count <= kMostListed && files->size() == answer->reply.count &&
                      got == sizeof(Reply) + answer->reply.count * sizeof(Chunk);
    if (good) return answer->reply.status;
    close_all(*files);
    files->clear();
    answer->reply.count = 0;
    shutdown(socket_, SHUT_RDWR);  // what it says from now on would answer another request
    return kLost;
}

int Client::create(uint64_t bytes, Given* given) {
    Request request;
    request.kind = Kind::kCreate;
    request.bytes = bytes;
    Answer answer;
    std::vector<int> files;
    const int status = ask(request, {}, &answer, &files);
    if (status == 0 && files.size() == 1) return *given = {answer.chunks[0], files[0]}, 0;
    close_all(files);
    return status ? status : kLost;
}

int Client::release(uint64_t id) {
    Request request;
    request.kind = Kind::kRelease;
    request.id = id;
    Answer answer;
    std::vector<int> files;
    const int status = ask(request, {}, &answer, &files);
    close_all(files);
    return status;
}

int Client::list(std::vector<Given>* chunks) {
    Request request;
    request.kind = Kind::kList;
    for (;;) {
        Answer answer;
        std::vector<int> files;
        const int status = ask(request, {}, &answer, &files);
        for (uint32_t i = 0; i < answer.reply.count; ++i) chunks->push_back({answer.chunks[i], files[i]});
        if (status != 0 || answer.reply.count < kMostListed) return status;
        request.id = answer.chunks[kMostListed - 1].id;
    }
}

int Client::add_client(int socket) {
    Request request;
    request.kind = Kind::kAddClient;
    Answer answer;
    std::vector<int> files;
    const int status = ask(request, {socket}, &answer, &files);
    close_all(files);
    return status;
}

// Between requests nothing is to be read, so a readable socket has been closed.
bool Client::lost() const {
    std::unique_lock lock(mutex_, std::try_to_lock);
    return lock && readable(socket_, 0);
}

Started start(const std::string& program, const std::string& driver) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return {-1, -1, std::string("no socket: ") + std::strerror(errno)};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    // Through a higher number: dup2 of a descriptor to itself would leave it close-on-exec.
    const int high = fcntl(ends[1], F_DUPFD_CLOEXEC, kChildDescriptor + 1);
    posix_spawn_file_actions_adddup2(&files, high, kChildDescriptor);
    posix_spawn_file_actions_addclosefrom_np(&files, kChildDescriptor + 1);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    std::string name = program, descriptor = std::to_string(kChildDescriptor), path = driver;
    std::string flag_descriptor = "--descriptor", flag_driver = "--driver", flag_memfd = "--memfd";
    char* const with_driver[] = {
        name.data(), flag_descriptor.data(), descriptor.data(), flag_driver.data(), path.data(), nullptr};
    char* const with_memfd[] = {name.data(), flag_descriptor.data(), descriptor.data(), flag_memfd.data(),
                                nullptr};
    pid_t pid = -1;
    const int failed = posix_spawn(&pid, program.c_str(), &files, &attributes,
                                   driver.empty() ? with_memfd : with_driver, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    close(ends[1]);
    close(high);
    Reply ready;
    std::vector<int> sent;
    if (failed) {
        close(ends[0]);
        return {-1, -1, program + ": " + std::strerror(failed)};
    }
    if (readable(ends[0], kStartMs) && receive_packet(ends[0], &ready, sizeof ready, &sent) == sizeof ready &&
        ready.magic == kMagic)
        return {ends[0], pid, {}};
    close_all(sent);
    close(ends[0]);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return {-1, -1, "it does not become ready; the line in front of this one says why"};
}

std::string how_it_ended(int pid) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) != pid) return {};
    if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
    return "exited with " + std::to_string(WEXITSTATUS(status));
}

}  // namespace smt::runtime::keeper
