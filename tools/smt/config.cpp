// smt config: each setting, its value, where the value comes from, and what is wrong.
#include "runtime/settings/config.h"

#include <fmt/format.h>

#include <string>

#include "runtime/journal/printable.h"
#include "runtime/settings/document.h"
#include "tools/smt/command.h"

namespace smt::tools {
namespace {

using settings::Setting;

void print_row(const std::string& key, const std::string& value, const std::string& from) {
    fmt::print("{:<22}  {:<32}  {}\n", key, value, from);
}

std::string shown(const settings::Source& source, const Setting& setting) {
    return source.value.empty() ? fmt::format("({})", setting.initial.text)
                                : runtime::journal::printable(source.value);
}

bool is_shown(const Setting& setting, const settings::Source& source, const Options& options) {
    if (options.has("--set")) return source.from != "default";
    return options.has("--all") || setting.audience != settings::Audience::kDeveloper ||
           source.from != "default";
}

int run_config(const Arguments& arguments) {
    const Options options = parse_options(arguments, {"--all", "--set", "--markdown"}, {});
    if (options.has("--markdown")) {
        fmt::print("{}", settings::document());
        return 0;
    }
    const settings::Config config = settings::Config::read();
    print_row("setting", "value", "from");
    for (const Setting& each : settings::kSettings) {
        const settings::Source source = config.source_of(each);
        if (is_shown(each, source, options))
            print_row(settings::key_of(each), shown(source, each), source.from);
    }
    const auto problems = config.problems(), unknown = config.unknown_variables();
    if (!problems.empty() || !unknown.empty()) fmt::print("\n");
    for (const std::string& line : problems) fmt::print("wrong: {}\n", line);
    for (const std::string& line : unknown) fmt::print("note: {}\n", line);
    return problems.empty() ? 0 : 1;
}

}  // namespace

const Command config_command = {"config",
                                "smt config [--all | --set | --markdown]\n"
                                "\n"
                                "Exit code 1: a value is wrong.\n"
                                "\n"
                                "  --all        settings for development and tests, too\n"
                                "  --set        those only that do not have their default\n"
                                "  --markdown   what every setting is, as in docs/settings.md",
                                "shows each setting, where it comes from, and what is wrong", run_config};

}  // namespace smt::tools
