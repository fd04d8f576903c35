// The socket of smt-metrics: GET /metrics on the loopback or on a Unix socket.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

struct MHD_Daemon;

namespace smt::tools::metrics {

// WHERE of the command line: PORT, 127.0.0.1:PORT, [::1]:PORT or unix:PATH. Throws Misuse for another.
struct Where {
    enum class Kind { kIpv4, kIpv6, kUnix } kind = Kind::kIpv4;
    uint16_t port = 0;  // 0: one that is free
    std::string path = {};
};
Where parse_where(const std::string& text);

class Endpoint {
public:
    // Answers each GET /metrics with what `collect` returns, in a thread of its own; an exception there is an
    // answer 500 with its text. Throws Failure if the address cannot be had.
    Endpoint(const Where& where, std::function<std::string()> collect);
    ~Endpoint();
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    std::string address() const { return address_; }  // "http://127.0.0.1:9469/metrics", "unix:PATH"
    std::string answer() const { return collect_(); }

private:
    const std::function<std::string()> collect_;
    std::string address_;
    std::string path_;  // of a Unix socket, which is removed at the end
    MHD_Daemon* daemon_ = nullptr;
};

}  // namespace smt::tools::metrics
