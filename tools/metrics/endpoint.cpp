#include "tools/metrics/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/settings/table.h"
#include "tools/smt/command.h"

namespace smt::tools::metrics {

namespace {

constexpr const char* kContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8";
constexpr int kBacklog = 16;
constexpr unsigned kIdleSeconds = 30;

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
        errno == ECONNREFUSED)
        unlink(path.c_str());
    const mode_t mask = umask(0177);  // its owner's alone
    const int bound = bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
    umask(mask);
    if (bound != 0 || listen(socket, kBacklog) != 0) fail("unix:" + path);
}

MHD_Result reply(MHD_Connection* connection, unsigned status, const std::string& text, const char* type) {
    MHD_Response* response =
        MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    const MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
}

MHD_Result handle(void* endpoint, MHD_Connection* connection, const char* url, const char* method,
                  const char*, const char*, size_t* upload_bytes, void**) {
    constexpr const char* kPlain = "text/plain; charset=utf-8";
    *upload_bytes = 0;  // what a request brings along is not read
    if (method != std::string_view("GET") && method != std::string_view("HEAD"))
        return reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is answered\n", kPlain);
    if (url != std::string_view("/metrics"))
        return reply(connection, MHD_HTTP_NOT_FOUND, "the figures are at /metrics\n", kPlain);
    try {
        return reply(connection, MHD_HTTP_OK, static_cast<const Endpoint*>(endpoint)->answer(), kContentType);
    } catch (const std::exception& error) {
        return reply(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, std::string(error.what()) + "\n", kPlain);
    }
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

Endpoint::Endpoint(const Where& where, std::function<std::string()> collect) : collect_(std::move(collect)) {
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
        address_ = fmt::format("http://[::1]:{}/metrics",
                               bind_to_port(socket.get(), address, fmt::format("[::1]:{}", where.port)));
    } else {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(where.port);
        address_ = fmt::format("http://127.0.0.1:{}/metrics",
                               bind_to_port(socket.get(), address, fmt::format("127.0.0.1:{}", where.port)));
    }
    daemon_ = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, nullptr, nullptr, &handle, this,
                               MHD_OPTION_LISTEN_SOCKET, socket.get(), MHD_OPTION_CONNECTION_TIMEOUT,
                               kIdleSeconds, MHD_OPTION_END);
    if (!daemon_) throw Failure("cannot serve " + address_);
    socket.take();  // the daemon closes it
}

Endpoint::~Endpoint() {
    if (daemon_) MHD_stop_daemon(daemon_);
    if (!path_.empty()) unlink(path_.c_str());
}

}  // namespace smt::tools::metrics
