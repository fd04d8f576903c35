// See control.h.
#include "tools/smt/control.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/smt/command.h"
#include "tools/smt/places.h"

namespace smt::tools {
namespace {

constexpr time_t kPatienceSeconds = 5;

struct Socket {
    int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ~Socket() {
        if (fd >= 0) ::close(fd);
    }
};

}  // namespace

std::optional<protocol::StatusReply> ask_server(const std::string& key, protocol::ControlKind question) {
    std::string path = path_of(key, ".sock");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) throw Failure(path + " is too long for a socket's name");
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);

    Socket socket;
    timeval patience{kPatienceSeconds, 0};
    ::setsockopt(socket.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ::setsockopt(socket.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (::connect(socket.fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
        if (errno == ENOENT || errno == ECONNREFUSED) return std::nullopt;
        throw Failure("cannot connect to " + path + ": " + std::strerror(errno));
    }
    protocol::StatusRequest request;
    request.kind = question;
    protocol::StatusReply reply;
    if (::send(socket.fd, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request))
        throw Failure("cannot ask the server of " + path + ": " + std::strerror(errno));
    ssize_t got = ::recv(socket.fd, &reply, sizeof(reply), 0);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return std::nullopt;   // it hung up: it is leaving
    if (got < 0 && errno == EAGAIN)
        throw Failure("the server of " + path + " does not answer; see " + path_of(key, ".log"));
    if (got != sizeof(reply) || reply.kind != protocol::ControlKind::kStatusReply)
        throw Failure("the server of " + path +
                      " answers in a way this smt does not know: another version of it?");
    reply.device[sizeof(reply.device) - 1] = 0;
    return reply;
}

}  // namespace smt::tools
