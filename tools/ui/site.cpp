#include "tools/ui/site.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "ui_page.gen.h"

namespace smt::tools::ui {

namespace {

constexpr const char* kJson = "application/json; charset=utf-8";

const PageFile* page_file(const std::string& path) {
    const auto found = std::find_if(std::begin(kPage), std::end(kPage),
                                    [&](const PageFile& each) { return path == each.path; });
    return found == std::end(kPage) ? nullptr : found;
}

// The page loads nothing from elsewhere, is shown in no other page, and no browser keeps what it says.
void add_rules(http::Answer& answer) {
    answer.headers["Content-Security-Policy"] =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'";
    answer.headers["X-Content-Type-Options"] = "nosniff";
    answer.headers["Referrer-Policy"] = "no-referrer";
    answer.headers["Cross-Origin-Resource-Policy"] = "same-origin";
    answer.headers["Cache-Control"] = "no-store";
}

http::Answer not_allowed(const char* methods) {
    return {.status = 405, .text = std::string("only ") + methods + "\n", .headers = {{"Allow", methods}}};
}

}  // namespace

http::Answer Site::answer(const http::Request& request) {
    http::Answer answer;
    try {
        const auto refusal = guard_.refusal(request, request.reads() && page_file(request.path));
        answer = refusal ? *refusal : answer_known(request);
    } catch (const std::exception& error) {
        answer = {.status = 500, .text = std::string(error.what()) + "\n"};
    }
    add_rules(answer);
    return answer;
}

http::Answer Site::answer_known(const http::Request& request) {
    if (const PageFile* file = page_file(request.path))
        return request.reads() ? http::Answer{.type = file->type, .text = file->text}
                               : not_allowed("GET, HEAD");
    const bool about = request.path == "/about";
    if (about || request.path == "/state") {
        if (!request.reads()) return not_allowed("GET, HEAD");
        return {.type = kJson, .text = about ? source_->about() : source_->state(request.query)};
    }
    const std::string what = request.path.substr(std::min<size_t>(1, request.path.size()));
    constexpr std::string_view kChanges[] = {"policy", "memory", "terms", "suspend", "resume"};
    if (std::find(std::begin(kChanges), std::end(kChanges), what) == std::end(kChanges))
        return {.status = 404, .text = "there is nothing of this name\n"};
    if (request.method != "POST") return not_allowed("POST");
    if (request.too_long) return {.status = 413, .text = "no change is so long\n"};
    return source_->change(what, request.body);
}

}  // namespace smt::tools::ui
