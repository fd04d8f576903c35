// Which requests the page's server answers. A port of the loopback is open to each program of this machine,
// and to each web page that a browser on it shows:
//
// - Figures and changes are for those that have the token, which smt ui prints as part of the address. Other
//   users do not have it, nor has a page of another site: it cannot add the header to a request, since the
//   browser asks first, and is refused.
// - The host that a request names is the loopback by a name that no DNS server can give to another address,
//   so a site that changes its own address to 127.0.0.1 is refused.
// - A change names no other origin than its own, and is JSON.
#pragma once

#include <optional>
#include <string>

#include "tools/http/endpoint.h"

namespace smt::tools::ui {

std::string make_token();  // 128 random bits in hex

class Guard {
public:
    explicit Guard(std::string token) : token_(std::move(token)) {}

    // Nothing: it is answered. `is_page`: it asks for one of the page's own files, which need no token.
    std::optional<http::Answer> refusal(const http::Request& request, bool is_page) const;

private:
    bool has_token(const http::Request& request) const;

    const std::string token_;
};

}  // namespace smt::tools::ui
