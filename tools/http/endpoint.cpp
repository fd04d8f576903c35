#include "tools/http/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/settings/table.h"
#include "tools/smt/command.h"

namespace smt::tools::http {

namespace {

constexpr int kBacklog = 16;
constexpr unsigned kIdleSeconds = 30, kMostConnections = 64;

[[noreturn]] void fail(const std::string& where) {
    throw Failure("cannot listen on " + where + ": " + std::strerror(errno));
}

// Closed unless it is taken.
class Socket {
public:
    Socket(int family, const std::string& where) : socket_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        if (socket_ < 0) fail(where);
    }
    ~Socket() {
        if (socket_ >= 0) close(socket_);
    }
    int get() const { return socket_; }
    int take() { return std::exchange(socket_, -1); }

private:
    int socket_;
};

void bind_to(int socket, const void* address, socklen_t bytes, const std::string& where) {
    if (bind(socket, static_cast<const sockaddr*>(address), bytes) != 0 || listen(socket, kBacklog) != 0)
        fail(where);
}

template <typename Address>
uint16_t bind_to_port(int socket, Address& address, const std::string& where) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    bind_to(socket, &address, sizeof address, where);
    socklen_t bytes = sizeof address;
    if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) fail(where);
    if constexpr (std::is_same_v<Address, sockaddr_in>)
        return ntohs(address.sin_port);
    else
        return ntohs(address.sin6_port);
}

// A socket file that is left of a process that is gone is replaced; one where a process listens is not.
void bind_to_file(int socket, const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path)
        throw Misuse("unix: wants a path of 1 to 107 bytes");
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const Socket probe(AF_UNIX, path);
    if (connect(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
        errno == ECONNREFUSED) {
        struct stat found{};
        if (lstat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode))
            throw Failure("cannot listen on unix:" + path + ": a file that is no socket is there");
        unlink(path.c_str());
    }
    const mode_t mask = umask(0177);  // its owner's alone
    const int bound = bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
    umask(mask);
    if (bound != 0 || listen(socket, kBacklog) != 0) fail("unix:" + path);
}

MHD_Result collect(void* fields, MHD_ValueKind kind, const char* name, const char* value) {
    std::string key = name;
    if (kind == MHD_HEADER_KIND)
        std::transform(key.begin(), key.end(), key.begin(), [](char each) {
            return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
        });
    (*static_cast<Fields*>(fields))[key] = value ? value : "";
    return MHD_YES;
}

MHD_Result reply(MHD_Connection* connection, const Answer& answer) {
    MHD_Response* response = MHD_create_response_from_buffer(
        answer.text.size(), const_cast<char*>(answer.text.data()), MHD_RESPMEM_MUST_COPY);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type.c_str());
    for (const auto& [name, value] : answer.headers)
        MHD_add_response_header(response, name.c_str(), value.c_str());
    const MHD_Result queued = MHD_queue_response(connection, answer.status, response);
    MHD_destroy_response(response);
    return queued;
}

// Called when the header is there, for each piece of the body, and at its end.
MHD_Result handle(void* self, MHD_Connection* connection, const char* url, const char* method, const char*,
                  const char* piece, size_t* bytes, void** state) {
    const auto& endpoint = *static_cast<const Endpoint*>(self);
    auto* request = static_cast<Request*>(*state);
    if (!request) {
        *state = request = new Request;
        request->method = method;
        request->path = url;
        MHD_get_connection_values(connection, MHD_HEADER_KIND, &collect, &request->headers);
        MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &collect, &request->query);
        return MHD_YES;
    }
    if (*bytes != 0) {
        const size_t room = endpoint.most_body() - request->body.size();
        request->too_long |= *bytes > room;
        request->body.append(piece, std::min(*bytes, room));
        *bytes = 0;
        return MHD_YES;
    }
    return reply(connection, endpoint.answer(*request));
}

void forget(void*, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
    delete static_cast<Request*>(*state);
    *state = nullptr;
}

}  // namespace

Where parse_where(const std::string& text) {
    constexpr std::string_view kUnix = "unix:", kLoopback = "127.0.0.1:", kLoopback6 = "[::1]:";
    if (text.starts_with(kUnix)) return {.kind = Where::Kind::kUnix, .path = text.substr(kUnix.size())};
    Where where;
    std::string port = text;
    if (text.starts_with(kLoopback)) port = text.substr(kLoopback.size());
    if (text.starts_with(kLoopback6)) {
        where.kind = Where::Kind::kIpv6;
        port = text.substr(kLoopback6.size());
    }
    uint64_t number = 0;
    if (port.find_first_not_of("0123456789") != std::string::npos ||
        !settings::read_number(port, 0, UINT16_MAX, &number))
        throw Misuse("--listen wants PORT, 127.0.0.1:PORT, [::1]:PORT or unix:PATH, not '" + text +
                     "'; for other machines put a proxy in front");
    where.port = static_cast<uint16_t>(number);
    return where;
}

std::string_view Request::header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : found->second;
}

Answer Endpoint::answer(const Request& request) const {
    try {
        return answer_(request);
    } catch (const std::exception& error) {
        return {.status = MHD_HTTP_INTERNAL_SERVER_ERROR, .text = std::string(error.what()) + "\n"};
    }
}

Endpoint::Endpoint(const Where& where, size_t most_body, std::function<Answer(const Request&)> answer)
    : most_body_(most_body), answer_(std::move(answer)) {
    const int family = where.kind == Where::Kind::kUnix   ? AF_UNIX
                       : where.kind == Where::Kind::kIpv6 ? AF_INET6
                                                          : AF_INET;
    Socket socket(family, where.path);
    if (where.kind == Where::Kind::kUnix) {
        bind_to_file(socket.get(), where.path);
        path_ = where.path;
        address_ = "unix:" + where.path;
    } else if (where.kind == Where::Kind::kIpv6) {
        sockaddr_in6 address{};
        address.sin6_family = AF_INET6;
        address.sin6_addr = in6addr_loopback;
        address.sin6_port = htons(where.port);
        address_ = fmt::format("http://[::1]:{}",
                               bind_to_port(socket.get(), address, fmt::format("[::1]:{}", where.port)));
    } else {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(where.port);
        address_ = fmt::format("http://127.0.0.1:{}",
                               bind_to_port(socket.get(), address, fmt::format("127.0.0.1:{}", where.port)));
    }
    daemon_ =
        MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, 0, nullptr, nullptr,
                         &handle, this, MHD_OPTION_LISTEN_SOCKET, socket.get(), MHD_OPTION_CONNECTION_TIMEOUT,
                         kIdleSeconds, MHD_OPTION_CONNECTION_LIMIT, kMostConnections,
                         MHD_OPTION_NOTIFY_COMPLETED, &forget, nullptr, MHD_OPTION_END);
    if (!daemon_) throw Failure("cannot serve " + address_);
    socket.take();  // the daemon closes it
}

Endpoint::~Endpoint() {
    if (daemon_) MHD_stop_daemon(daemon_);
    if (!path_.empty()) unlink(path_.c_str());
}

}  // namespace smt::tools::http
