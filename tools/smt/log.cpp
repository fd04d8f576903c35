// smt log: the journal of a server, while it runs or after it.
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "runtime/journal/journal.h"
#include "runtime/protocol/server_key.h"
#include "tools/smt/command.h"
#include "tools/smt/log_view.h"
#include "tools/smt/places.h"

namespace smt::tools {
namespace {

using runtime::journal::Entry;
using runtime::journal::Reader;

constexpr int kPollMs = 100;

// Which file a path names just now: a server that starts again makes a new journal.
ino_t identity(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// A journal as far as it has been shown.
class Shown {
public:
    Shown(const std::string& path, const LogView::Shape& shape)
        : path_(path), file_(identity(path)), reader_(path), view_(reader_, shape) {}
    Shown(const Shown&) = delete;
    Shown& operator=(const Shown&) = delete;

    bool replaced() const { return identity(path_) != file_; }
    const std::string& error() const { return reader_.error(); }
    void show_more() {
        next_ = reader_.read(next_, [&](const Entry& entry) { view_.show(entry); });
    }
    LogView& view() { return view_; }

private:
    const std::string path_;
    const ino_t file_;
    const Reader reader_;
    LogView view_;
    uint64_t next_ = 0;
};

LogView::Shape shape_for(LogView::Shape shape, const std::string& path) {
    shape.server = key_of_journal(path);
    shape.of_earlier_server = is_complete(path);  // before it is read
    if (protocol::is_strict_key(shape.server))
        shape.title = "server " + shape.server + ", of one strict tenant";
    return shape;
}

void show(const std::vector<std::string>& paths, const LogView::Shape& shape) {
    uint64_t entries = 0;
    for (const std::string& path : paths) {
        Shown shown(path, shape_for(shape, path));
        if (!shown.error().empty() && paths.size() == 1) throw Failure(shown.error());
        if (!shown.error().empty()) {
            fmt::print(stderr, "smt log: {}\n", shown.error());
            continue;
        }
        shown.show_more();
        if (shown.view().shown() != 0) shown.view().show_summary();
        entries += shown.view().shown();
    }
    if (entries != 0) return;
    const std::string whose = shape.tenant.empty() ? "" : " about tenant '" + shape.tenant + "'";
    const bool others = keys_with(".journal").size() > paths.size();
    fmt::print(stderr, "smt log: {} has nothing{}{}\n", paths.front(), whose,
               others ? "; there are other servers' journals: --server KEY" : "");
}

// False after a while; true as soon as the other end of the pipe or terminal that the output goes to is
// closed.
bool output_is_gone() {
    pollfd output{STDOUT_FILENO, 0, 0};
    return ::poll(&output, 1, kPollMs) > 0 && (output.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

// Shows each journal from its start, and what is added to it, until nothing reads the output or the process
// is ended. A server that starts again makes a new journal, and strict tenants' servers come and go; a
// journal may be half made.
void follow(const std::string* server, const LogView::Shape& shape) {
    std::map<std::string, std::unique_ptr<Shown>> all;
    const std::vector<std::string> begins = find_journals(server);
    if (begins.size() == 1)  // of several each is tried again
        if (const Reader reader(begins.front()); !reader.error().empty()) throw Failure(reader.error());
    do {
        std::vector<std::string> paths;
        try {
            paths = find_journals(server);
        } catch (const Failure&) {
        }
        for (const std::string& path : paths) {
            std::unique_ptr<Shown>& shown = all[path];
            if (!shown || shown->replaced() || !shown->error().empty())
                shown = std::make_unique<Shown>(path, shape_for(shape, path));
            shown->show_more();
        }
        std::fflush(stdout);
    } while (!output_is_gone());
}

// "x.journal.2" -> "x.log.2".
std::string log_beside(const std::string& journal) {
    const size_t at = journal.rfind(".journal");
    return journal.substr(0, at) + ".log" + journal.substr(at + std::strlen(".journal"));
}

// A tenant's programs may be on several GPUs, and a server may have gone in the middle of them.
std::vector<std::string> every_journal() {
    std::vector<std::string> paths;
    for (const std::string& key : keys_with(".journal"))
        for (int before = kMostGenerations; before >= 0; --before) {
            const std::string path = path_of(key, ".journal") + (before ? fmt::format(".{}", before) : "");
            if (::access(path.c_str(), R_OK) == 0) paths.push_back(path);
        }
    if (paths.empty()) throw Failure("there is no journal: no server has run");
    return paths;
}

int run_log(const Arguments& arguments) {
    Options options =
        parse_options(arguments, {"--json", "--follow", "--mapping", "--kernels", "--totals", "--last-crash"},
                      {"--tenant", "--server", "--before"});
    const std::string* tenant = options.value("--tenant");
    if (options.has("--kernels") && options.has("--follow"))
        throw Misuse("--kernels counts what there is, it does not follow");
    if (options.has("--totals") && (options.has("--follow") || options.has("--kernels")))
        throw Misuse("--totals counts sessions that have ended: without --follow and --kernels");
    const LogView::Shape shape{options.has("--json"),
                               options.has("--mapping"),
                               options.has("--kernels"),
                               options.has("--totals"),
                               false,
                               tenant ? *tenant : "",
                               "",
                               ""};
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
        return show({path}, shape), 0;
    }
    if (options.has("--follow")) return follow(server, shape), 0;
    return show(shape.totals && !server ? every_journal() : find_journals(server), shape), 0;
}

}  // namespace

const Command log_command = {"log",
                             "smt log [--json] [--follow] [--mapping] [--kernels | --totals] [--tenant "
                             "NAME] [--server KEY] [--before N | --last-crash]",
                             "shows what the server did: launches by tenant, unsupported calls; --kernels: "
                             "what ran, and how; --totals: launches and GPU time of programs that have "
                             "ended, as JSON; --last-crash: of the server that crashed",
                             run_log};

}  // namespace smt::tools
