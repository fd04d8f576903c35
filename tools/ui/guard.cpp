#include "tools/ui/guard.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "tools/smt/command.h"

namespace smt::tools::ui {

namespace {

// "localhost:9470" -> "localhost"; empty: what follows the name is no port.
std::string_view name_of(std::string_view host) {
    const size_t begins = host.starts_with('[') ? host.find(']') : 0;
    if (begins == std::string_view::npos) return {};
    const size_t colon = host.find(':', begins);
    if (colon == std::string_view::npos) return host;
    if (host.find_first_not_of("0123456789", colon + 1) != std::string_view::npos) return {};
    return host.substr(0, colon);
}

// Any port: a tunnel (ssh -L) may have another one.
bool is_loopback(std::string_view host) {
    const std::string_view name = name_of(host);
    return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

}  // namespace

std::string make_token() {
    unsigned char bytes[16];
    if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        throw Failure(std::string("cannot get random bytes: ") + std::strerror(errno));
    std::string token;
    for (const unsigned char each : bytes) token += fmt::format("{:02x}", each);
    return token;
}

// Takes as long for each wrong token.
bool Guard::has_token(const http::Request& request) const {
    constexpr std::string_view kScheme = "Bearer ";
    std::string_view given = request.header("authorization");
    if (!given.starts_with(kScheme)) return false;
    given.remove_prefix(kScheme.size());
    if (given.size() != token_.size()) return false;
    unsigned char differ = 0;
    for (size_t i = 0; i < given.size(); ++i) differ |= static_cast<unsigned char>(given[i] ^ token_[i]);
    return differ == 0;
}

std::optional<http::Answer> Guard::refusal(const http::Request& request, bool is_page) const {
    const std::string_view host = request.header("host"), origin = request.header("origin"),
                           site = request.header("sec-fetch-site");
    if (!is_loopback(host))
        return http::Answer{.status = 403,
                            .text = "the page is at 127.0.0.1, [::1] or localhost, by no other name\n"};
    if (is_page) return std::nullopt;
    if (!has_token(request))
        return http::Answer{.status = 401,
                            .text = "the token is missing: open the address that smt ui has printed\n",
                            .headers = {{"WWW-Authenticate", "Bearer"}}};
    if (request.reads()) return std::nullopt;
    if ((!origin.empty() && origin != fmt::format("http://{}", host)) ||
        (!site.empty() && site != "same-origin"))
        return http::Answer{.status = 403, .text = "a page of another site cannot change anything\n"};
    if (!request.header("content-type").starts_with("application/json"))
        return http::Answer{.status = 415, .text = "a change is JSON (Content-Type: application/json)\n"};
    return std::nullopt;
}

}  // namespace smt::tools::ui
