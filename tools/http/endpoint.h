// An HTTP endpoint on the loopback or on a Unix socket, for programs of one user (smt-metrics, smt-ui).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

struct MHD_Daemon;

namespace smt::tools::http {

// WHERE of the command line: PORT, 127.0.0.1:PORT, [::1]:PORT or unix:PATH. Throws Misuse for another.
struct Where {
    enum class Kind { kIpv4, kIpv6, kUnix } kind = Kind::kIpv4;
    uint16_t port = 0;  // 0: one that is free
    std::string path = {};
};
Where parse_where(const std::string& text);

using Fields = std::map<std::string, std::string>;

struct Request {
    std::string method, path;
    Fields query;
    Fields headers;  // names in lower case
    std::string body;
    bool too_long = false;  // the body is cut off

    // Empty: it has none.
    std::string_view header(const std::string& name) const;
    bool reads() const { return method == "GET" || method == "HEAD"; }
};

inline constexpr const char* kPlain = "text/plain; charset=utf-8";

struct Answer {
    unsigned status = 200;
    std::string type = kPlain;
    std::string text = {};
    Fields headers = {};
};

class Endpoint {
public:
    // `answer` is called in threads of the endpoint's, several at a time; an exception there is an answer 500
    // with its text. Of a request's body it gets at most `most_body` bytes. Throws Failure if the address
    // cannot be had.
    Endpoint(const Where& where, size_t most_body, std::function<Answer(const Request&)> answer);
    ~Endpoint();
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    std::string address() const { return address_; }  // "http://127.0.0.1:9469", "unix:PATH"
    size_t most_body() const { return most_body_; }
    Answer answer(const Request& request) const;

private:
    const size_t most_body_;
    const std::function<Answer(const Request&)> answer_;
    std::string address_;
    std::string path_;  // of a Unix socket, which is removed at the end
    MHD_Daemon* daemon_ = nullptr;
};

}  // namespace smt::tools::http
