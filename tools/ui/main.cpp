// smt-ui: see README.md.
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <exception>

#include "runtime/settings/config.h"
#include "tools/http/endpoint.h"
#include "tools/http/signals.h"
#include "tools/smt/command.h"
#include "tools/ui/site.h"

namespace smt::tools::ui {
namespace {

constexpr const char* kUsualPlace = "0";
constexpr std::chrono::hours kLong{24};

std::unique_ptr<Source> source_of(const Options& options) {
    const std::string *replay = options.value("--replay"), *server = options.value("--server");
    if (replay && server) throw Misuse("--server is for a server that runs, --replay for a file");
    if (replay) return make_recording(*replay);
    return make_live(server ? std::optional(*server) : std::nullopt);
}

// The token is in the part of the address that browsers do not send.
std::string address_of(const http::Endpoint& endpoint, const http::Where& where, const std::string& token) {
    if (where.kind == http::Where::Kind::kUnix) return endpoint.address() + " token " + token;
    return endpoint.address() + "/#" + token;
}

// Until the process is told to end.
int run(const Arguments& arguments) {
    const Options options = parse_options(arguments, {}, {"--listen", "--replay", "--server"});
    const std::string* place = options.value("--listen");
    const http::Where where = http::parse_where(place ? *place : kUsualPlace);
    const http::EndSignals ends;
    const std::string token = make_token();
    Site site(source_of(options), token);
    const http::Endpoint endpoint(where, kMostBody,
                                  [&](const http::Request& request) { return site.answer(request); });
    fmt::print("{}\n", address_of(endpoint, where, token));
    std::fflush(stdout);
    while (!ends.came_within(kLong)) {
    }
    return 0;
}

}  // namespace
}  // namespace smt::tools::ui

int main(int count, char** arguments) {
    try {
        smt::settings::Config::read().apply();
        return smt::tools::ui::run({arguments + 1, arguments + count});
    } catch (const smt::tools::Misuse& misuse) {
        fmt::print(stderr, "smt ui: {}\nusage: {}\n", misuse.what(), smt::tools::ui_command.usage);
        return 2;
    } catch (const std::exception& failure) {
        fmt::print(stderr, "smt ui: {}\n", failure.what());
        return 1;
    }
}
