// smt log: the journal of a server, while it runs or after it.
#include <fmt/core.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "runtime/journal/journal.h"
#include "tools/smt/command.h"
#include "tools/smt/log_view.h"
#include "tools/smt/places.h"

namespace smt::tools {
namespace {

using runtime::journal::Entry;
using runtime::journal::Reader;

constexpr std::chrono::milliseconds kPoll{100};

// Which file a path names just now: a server that starts again makes a new journal.
ino_t identity(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// Shows the journal from its start; with `follow`, until another file takes its place.
void show(const std::string& path, const LogView::Shape& shape, bool follow) {
    ino_t file = identity(path);
    Reader reader(path);
    if (!reader.error().empty()) throw Failure(reader.error());
    LogView view(reader, shape);
    auto show_entry = [&](const Entry& entry) { view.show(entry); };
    uint64_t next = reader.read(0, show_entry);
    while (follow && identity(path) == file) {
        std::fflush(stdout);
        std::this_thread::sleep_for(kPoll);
        next = reader.read(next, show_entry);
    }
    if (follow) return;
    if (view.shown() == 0) {
        std::string whose = shape.tenant.empty() ? "" : " about tenant '" + shape.tenant + "'";
        const bool others = keys_with(".journal").size() > 1;
        fmt::print(stderr, "smt log: {} has nothing{}{}\n", path, whose,
                   others ? "; there are other servers' journals: --server KEY" : "");
        return;
    }
    view.show_summary();
}

// "x.journal.2" -> "x.log.2".
std::string log_beside(const std::string& journal) {
    const size_t at = journal.rfind(".journal");
    return journal.substr(0, at) + ".log" + journal.substr(at + std::strlen(".journal"));
}

int run_log(const Arguments& arguments) {
    Options options =
        parse_options(arguments, {"--json", "--follow", "--mapping", "--kernels", "--last-crash"},
                      {"--tenant", "--server", "--before"});
    const std::string* tenant = options.value("--tenant");
    if (options.has("--kernels") && options.has("--follow"))
        throw Misuse("--kernels counts what there is, it does not follow");
    const LogView::Shape shape{options.has("--json"), options.has("--mapping"), options.has("--kernels"),
                               tenant ? *tenant : ""};
    const std::string* server = options.value("--server");
    const std::string* before = options.value("--before");
    if ((before || options.has("--last-crash")) && options.has("--follow"))
        throw Misuse("an earlier server's journal does not grow: leave out --follow");
    if (before && (before->size() != 1 || (*before)[0] < '1' || (*before)[0] > '0' + kMostGenerations))
        throw Misuse("--before wants a number from 1 to 4: how many servers ago");
    if (options.has("--last-crash") || before) {
        const std::string path =
            before ? find_generation(server, (*before)[0] - '0') : find_last_crash(server);
        fmt::print(stderr, "smt log: {}; what the server said is in {}\n", path, log_beside(path));
        return show(path, shape, false), 0;
    }
    auto show_it = [&](bool follow) { show(find_journal(server), shape, follow); };
    show_it(options.has("--follow"));
    while (options.has("--follow")) {  // the server started again: its journal may be half made
        try {
            show_it(true);
        } catch (const Failure&) {
            std::this_thread::sleep_for(kPoll);
        }
    }
    return 0;
}

}  // namespace

const Command log_command = {"log",
                             "smt log [--json] [--follow] [--mapping] [--kernels] [--tenant NAME] [--server "
                             "KEY] [--before N | --last-crash]",
                             "shows what the server did: launches by tenant, unsupported calls; --kernels: "
                             "what ran, and how; --last-crash: of the server that crashed",
                             run_log};

}  // namespace smt::tools
