// smt log: the journal of a server, while it runs or after it.
#include <fmt/core.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
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
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// Shows the journal from its start; with `follow`, until another file takes its place.
void show(const std::string& path, bool json, bool mapping, const std::string& tenant, bool follow) {
    ino_t file = identity(path);
    Reader reader(path);
    if (!reader.error().empty()) throw Failure(reader.error());
    LogView view(reader, json, mapping, tenant);
    auto show_entry = [&](const Entry& entry) { view.show(entry); };
    uint64_t next = reader.read(0, show_entry);
    while (follow && identity(path) == file) {
        std::fflush(stdout);
        std::this_thread::sleep_for(kPoll);
        next = reader.read(next, show_entry);
    }
    if (follow) return;
    if (view.shown() == 0) {
        std::string whose = tenant.empty() ? "" : " about tenant '" + tenant + "'";
        fmt::print(stderr, "smt log: {} has nothing{}\n", path, whose);
        return;
    }
    view.show_summary();
}

int run(const Arguments& arguments) {
    Options options = parse_options(arguments, {"--json", "--follow", "--mapping"}, {"--tenant"});
    const std::string* tenant = options.value("--tenant");
    auto show_it = [&](bool follow) {
        show(newest_journal(), options.has("--json"), options.has("--mapping"), tenant ? *tenant : "", follow);
    };
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

const Command log_command = {"log", "smt log [--json] [--follow] [--mapping] [--tenant NAME]",
                             "shows what the server did: launches by tenant, unsupported calls", run};

}  // namespace smt::tools
