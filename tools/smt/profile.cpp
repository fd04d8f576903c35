// smt profile: what kernels need. Measures a program's; shows, exports and forgets what is known.
#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "profiler/store/store.h"
#include "runtime/profiles/book.h"
#include "runtime/protocol/environment.h"
#include "tools/smt/command.h"
#include "tools/smt/profile_rows.h"
#include "tools/smt/profile_run.h"

namespace smt::tools {
namespace {

using profiler::Profile;
using profiler::Store;

std::string path_of_store() {
    const std::string path = runtime::profiles::store_path();
    if (path.empty())
        throw Failure(fmt::format("nothing is kept: {} is \"{}\", or there is no folder for it (neither SMT_CACHE_DIR nor HOME is set)",
                                  environment::kProfiles, environment::kProfilesNone));
    return path;
}

template <class Value>
Value take(profiler::Result<Value> result) {
    if (auto* problem = std::get_if<profiler::Problem>(&result)) throw Failure(problem->text);
    return std::move(std::get<Value>(result));
}

profiler::Which which(const Options& options) {
    const auto text = [&](const char* name) { return options.value(name) ? *options.value(name) : std::string(); };
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
    const Options options = parse_options(arguments, {"--json"}, {"--kernel", "--image", "--device", "--plot"});
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
    const Options options = parse_options(arguments, {"--json"}, {"--kernel", "--image", "--device"});
    Store store(path_of_store());
    const std::vector<Profile> profiles = take(store.list(which(options)));
    const std::vector<ProfileRow> rows = rows_of(profiles);
    const std::vector<PairRow> found = pairs_of(rows);
    if (options.has("--json")) write(nullptr, json_of(found));
    else if (found.empty()) fmt::print("no kernel has counters that a model could go by; smt profile -- PROGRAM counts, where it may\n");
    else write(nullptr, table_of(found));
    return 0;
}

int export_all(const Arguments& arguments) {
    const Options options = parse_options(arguments, {"--csv"}, {"--kernel", "--image", "--device", "-o"});
    Store store(path_of_store());
    write(options.value("-o"), take(options.has("--csv") ? store.export_csv(which(options)) : store.export_json(which(options))));
    return 0;
}

int forget(const Arguments& arguments) {
    const Options options = parse_options(arguments, {"--all"}, {"--kernel", "--image", "--device"});
    if (options.values.empty()) throw Misuse("which? --kernel SYMBOL, --image DIGEST, --device NAME, or --all");
    Store store(path_of_store());
    fmt::print("{} profiles forgotten\n", take(store.forget(which(options))));
    return 0;
}

int measure(const Arguments& arguments) {
    const Options options = parse_options(arguments, {"--sweep", "--times"}, {"--plot", "--device", "--runs", "--stops"}, Operands::kCommandLine);
    if (options.operands.empty()) throw Misuse("which program?");
    ProfileRequest request;
    request.command = options.operands;
    request.sweep = options.has("--sweep");
    request.counters = !options.has("--times");
    if (request.sweep && !request.counters) throw Misuse("--times is for times alone: no --sweep");
    if (const std::string* device = options.value("--device")) request.device = *device;
    if (const std::string* runs = options.value("--runs")) {
        request.most_runs = std::atoi(runs->c_str());
        if (request.most_runs < 1) throw Misuse("--runs wants a number, 1 or more");
    }
    if (const std::string* stops = options.value("--stops")) {
        char* end = nullptr;
        request.stops = std::strtoll(stops->c_str(), &end, 10);
        if (stops->empty() || *end || request.stops < 0) throw Misuse("--stops wants a number, 0 or more");
        if (!request.sweep) throw Misuse("--stops is for --sweep");
    }
    if (options.value("--plot") && !request.sweep) throw Misuse("--plot draws what --sweep measures");
    const std::string path = std::filesystem::absolute(path_of_store());   // servers have a folder of their own
    ::setenv(environment::kProfiles, path.c_str(), 1);
    Store store(path, [](const std::string& line) { fmt::print(stderr, "smt profile: {}\n", line); });
    const std::vector<Profile> profiles = measure_program(request, store);
    const std::vector<ProfileRow> rows = rows_of(profiles);
    write(nullptr, table_of(rows));
    plot(options, rows);
    return 0;
}

int run(const Arguments& arguments) {
    if (arguments.empty()) throw Misuse("a program, or show, pairs, export or forget?");
    const Arguments rest(arguments.begin() + 1, arguments.end());
    if (arguments[0] == "show") return show(rest);
    if (arguments[0] == "pairs") return pairs(rest);
    if (arguments[0] == "export") return export_all(rest);
    if (arguments[0] == "forget") return forget(rest);
    return measure(arguments);
}

}  // namespace

const Command profile_command = {"profile",
                                 "smt profile [--sweep [--plot FILE.svg] [--runs N] [--stops N] | --times] [--device gpu|sim] -- PROGRAM [ARGUMENT]...\n"
                                 "       smt profile show [--json] [--plot FILE.svg] [--kernel SYMBOL] [--image DIGEST] [--device NAME]\n"
                                 "       smt profile pairs [--json] [--kernel SYMBOL] [--image DIGEST] [--device NAME]\n"
                                 "       smt profile export [--csv] [-o FILE] [--kernel SYMBOL] [--image DIGEST] [--device NAME]\n"
                                 "       smt profile forget --all | [--kernel SYMBOL] [--image DIGEST] [--device NAME]",
                                 "measures what a program's kernels need, for policies", run};

}  // namespace smt::tools
