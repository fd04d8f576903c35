// smt profile: what kernels need. Measures a program's; shows, exports and forgets what is known.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "profiler/store/store.h"
#include "runtime/profiles/profile_cache.h"
#include "runtime/settings/config.h"
#include "tools/smt/command.h"
#include "tools/smt/profile_pair_run.h"
#include "tools/smt/profile_rows.h"
#include "tools/smt/profile_run.h"
#include "tools/smt/profile_store.h"

namespace smt::tools {
namespace {

using profiler::Profile;
using profiler::Store;

std::string path_of_store() {
    const std::string path = runtime::profiles::store_path();
    if (path.empty())
        throw Failure(
            fmt::format("nothing is kept: SMT_PROFILES is \"none\", or there is no folder for it (neither "
                        "SMT_CACHE_DIR nor HOME is set)"));
    return path;
}

profiler::Which which(const Options& options) {
    const auto text = [&](const char* name) {
        return options.value(name) ? *options.value(name) : std::string();
    };
    return {text("--kernel"), text("--image"), text("--device")};
}

// To a file, or to stdout.
void write(const std::string* path, const std::string& text) {
    if (!path) {
        std::cout << text << std::flush;
        return;
    }
    std::ofstream file(*path);
    if (!(file << text << std::flush)) throw Failure("cannot write " + *path);
}

void plot(const Options& options, const std::vector<ProfileRow>& rows) {
    const std::string* path = options.value("--plot");
    if (!path) return;
    const std::string picture = plot_of(rows);
    if (picture.empty()) throw Failure("there are no curves to draw: smt profile --sweep measures them");
    write(path, picture);
}

int show(const Arguments& arguments) {
    const Options options =
        parse_options(arguments, {"--json"}, {"--kernel", "--image", "--device", "--plot"});
    Store store(path_of_store());
    const std::vector<Profile> profiles = take(store.list(which(options)));
    const std::vector<ProfileRow> rows = rows_of(profiles);
    if (options.has("--json")) {
        write(nullptr, json_of(rows));
    } else if (rows.empty()) {
        fmt::print("no profiles; smt profile -- PROGRAM makes some\n");
    } else {
        write(nullptr, table_of(rows));
    }
    plot(options, rows);
    return 0;
}

int pairs(const Arguments& arguments) {
    const Options options =
        parse_options(arguments, {"--json", "--measured"}, {"--kernel", "--image", "--device"});
    Store store(path_of_store());
    const std::vector<Profile> profiles = take(store.list(which(options)));
    const std::vector<ProfileRow> rows = rows_of(profiles);
    if (options.has("--measured")) {
        const std::vector<MeasuredRow> measured = measured_of(rows);
        if (options.has("--json")) return write(nullptr, json_of(measured)), 0;
        write(nullptr, measured.empty() ? "no two kernels were measured side by side; smt profile --pair -- "
                                          "PROGRAM -- PROGRAM does that\n"
                                        : table_of(measured));
        return 0;
    }
    const std::vector<PairRow> found = pairs_of(rows);
    if (options.has("--json"))
        write(nullptr, json_of(found));
    else if (found.empty())
        fmt::print(
            "no two kernels were measured side by side, and none has counters that a model could go by; smt "
            "profile --pair -- PROGRAM -- PROGRAM measures, "
            "smt profile -- PROGRAM counts, where it may\n");
    else
        write(nullptr, table_of(found));
    return 0;
}

int export_all(const Arguments& arguments) {
    const Options options = parse_options(arguments, {"--csv"}, {"--kernel", "--image", "--device", "-o"});
    Store store(path_of_store());
    write(options.value("-o"),
          take(options.has("--csv") ? store.export_csv(which(options)) : store.export_json(which(options))));
    return 0;
}

int forget(const Arguments& arguments) {
    const Options options = parse_options(arguments, {"--all"}, {"--kernel", "--image", "--device"});
    if (options.values.empty())
        throw Misuse("which? --kernel SYMBOL, --image DIGEST, --device NAME, or --all");
    Store store(path_of_store());
    fmt::print("{} profiles forgotten\n", take(store.forget(which(options))));
    return 0;
}

int most_runs(const Options& options, int standard) {
    const std::string* runs = options.value("--runs");
    if (!runs) return standard;
    const int most = std::atoi(runs->c_str());
    if (most < 1) throw Misuse("--runs wants a number, 1 or more");
    return most;
}

// Of the caller's folder: servers have one of their own.
Store store_for_servers() {
    const std::string path = std::filesystem::absolute(path_of_store());
    settings::set(settings::Id::kProfiles, path);
    return Store(path, [](const std::string& line) { fmt::print(stderr, "smt profile: {}\n", line); });
}

// The first -- between the two separates them.
int measure_two(const Options& options) {
    for (const char* other : {"--sweep", "--times", "--plot", "--stops"}) {
        if (options.has(other))
            throw Misuse(
                fmt::format("--pair measures two programs side by side, and nothing else: no {}", other));
    }
    const Arguments& words = options.operands;
    const auto between = std::find(words.begin(), words.end(), "--");
    PairRequest request;
    request.commands[0].assign(words.begin(), between);
    if (between != words.end()) request.commands[1].assign(between + 1, words.end());
    if (request.commands[0].empty() || request.commands[1].empty())
        throw Misuse(
            "--pair wants two programs: smt profile --pair -- PROGRAM [ARGUMENT]... -- PROGRAM "
            "[ARGUMENT]...");
    if (const std::string* device = options.value("--device")) request.device = *device;
    request.most_runs = most_runs(options, request.most_runs);
    Store store = store_for_servers();
    const std::vector<Profile> profiles = measure_pair(request, store);
    const std::vector<ProfileRow> rows = rows_of(profiles);
    const std::vector<MeasuredRow> measured = measured_of(rows);
    write(nullptr, table_of(measured));
    if (std::any_of(measured.begin(), measured.end(), [](const MeasuredRow& row) { return !row.paper; }))
        fmt::print(stderr, "the models want counters: smt profile -- PROGRAM counts, where it may\n");
    return 0;
}

int measure(const Arguments& arguments) {
    const Options options =
        parse_options(arguments, {"--sweep", "--times", "--pair"},
                      {"--plot", "--device", "--runs", "--stops"}, Operands::kCommandLine);
    if (options.has("--pair")) return measure_two(options);
    if (options.operands.empty()) throw Misuse("which program?");
    ProfileRequest request;
    request.command = options.operands;
    request.sweep = options.has("--sweep");
    request.counters = !options.has("--times");
    if (request.sweep && !request.counters) throw Misuse("--times is for times alone: no --sweep");
    if (const std::string* device = options.value("--device")) request.device = *device;
    request.most_runs = most_runs(options, request.most_runs);
    if (const std::string* stops = options.value("--stops")) {
        char* end = nullptr;
        request.stops = std::strtoll(stops->c_str(), &end, 10);
        if (stops->empty() || *end || request.stops < 0) throw Misuse("--stops wants a number, 0 or more");
        if (!request.sweep) throw Misuse("--stops is for --sweep");
    }
    if (options.value("--plot") && !request.sweep) throw Misuse("--plot draws what --sweep measures");
    Store store = store_for_servers();
    const std::vector<Profile> profiles = measure_program(request, store);
    const std::vector<ProfileRow> rows = rows_of(profiles);
    write(nullptr, table_of(rows));
    plot(options, rows);
    return 0;
}

int run_profile(const Arguments& arguments) {
    if (arguments.empty()) throw Misuse("a program, or show, pairs, export or forget?");
    const Arguments rest(arguments.begin() + 1, arguments.end());
    if (arguments[0] == "show") return show(rest);
    if (arguments[0] == "pairs") return pairs(rest);
    if (arguments[0] == "export") return export_all(rest);
    if (arguments[0] == "forget") return forget(rest);
    return measure(arguments);
}

}  // namespace

const Command profile_command = {
    "profile",
    "smt profile [--sweep [--plot FILE.svg] [--runs N] [--stops N] | --times] [--device gpu|sim] -- PROGRAM "
    "[ARGUMENT]...\n"
    "       smt profile --pair [--runs N] [--device gpu|sim] -- PROGRAM [ARGUMENT]... -- PROGRAM "
    "[ARGUMENT]...\n"
    "       smt profile show [--json] [--plot FILE.svg] [--kernel SYMBOL] [--image DIGEST] [--device NAME]\n"
    "       smt profile pairs [--json] [--measured] [--kernel SYMBOL] [--image DIGEST] [--device NAME]\n"
    "       smt profile export [--csv] [-o FILE] [--kernel SYMBOL] [--image DIGEST] [--device NAME]\n"
    "       smt profile forget --all | [--kernel SYMBOL] [--image DIGEST] [--device NAME]",
    "measures what a program's kernels need, alone or beside another's, for policies", run_profile};

}  // namespace smt::tools
