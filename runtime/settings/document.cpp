#include "runtime/settings/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/settings/config.h"

namespace smt::settings {

namespace {

constexpr const char* kOpening = R"(# Settings

`smt config --markdown` prints this page from the table of settings (`runtime/settings/settings.def`).
`smt config` prints each setting's value here, where it comes from, and what is wrong.

A value comes from, in this order:

1. the environment variable, or an option of `smt run`;
2. the user's file, `$XDG_CONFIG_HOME/smt.toml`, else `~/.config/smt.toml`;
3. the administrator's file, `/etc/smt.toml`;
4. the default.

Some variables are lists of items: `SMT_SIM="sms=4,grace=50"`. Of two entries of one name the last counts; a
flag may stand without `=1`; a value cannot have a comma. Sizes are bytes, or have a unit K, M, G or T, a
power of 1024.

A file is TOML: a variable is a key without its `SMT_`, an item is a key of a table.

```toml
policy = "fair"
idle_seconds = 600
memory_limit = "8G"

[limits]
lanes = 256

[compile]
workers = 4
```

The server reads the files when it starts. `smt run` puts what the program reads into its environment; a
program that loads `libsmt.so` by other means has the settings of its environment only. A wrong value or an
unknown key keeps `smt run` and `smt server start` from starting; a server that a program starts logs it and
uses the default. The files are no protection: a server belongs to its user, who can set every variable.
)";

const char* reader_name(Reader reader) {
    switch (reader) {
        case kClient:
            return "program";
        case kServer:
            return "server";
        case kWorker:
            return "compile worker";
        case kCommand:
            return "command";
        case kSimulator:
            return "simulated device";
    }
    return "";
}

std::string readers_of(const Setting& setting) {
    std::vector<const char*> names;
    for (const Reader each : {kClient, kServer, kWorker, kCommand, kSimulator})
        if (setting.readers & each) names.push_back(reader_name(each));
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string row(const Setting& setting) {
    return fmt::format("| `{}` | {} | {} | {} | {} |\n", *setting.item ? setting.item : setting.variable,
                       takes_of(setting), setting.initial.text, readers_of(setting), setting.sentence);
}

template <typename Belongs>
std::string rows(const std::string& heading, const std::string& first, Belongs belongs) {
    std::string text = fmt::format("\n## {}\n\n| {} | takes | default | read by | |\n|---|---|---|---|---|\n",
                                   heading, first);
    for (const Setting& each : kSettings)
        if (belongs(each)) text += row(each);
    return text;
}

std::vector<std::string> lists() {
    std::vector<std::string> names;
    for (const Setting& each : kSettings)
        if (*each.item && std::find(names.begin(), names.end(), each.variable) == names.end())
            names.emplace_back(each.variable);
    return names;
}

}  // namespace

std::string document() {
    const auto of = [](Audience audience) {
        return [audience](const Setting& each) { return !*each.item && each.audience == audience; };
    };
    std::string text = kOpening;
    text += rows("Variables that files have, too", "variable", of(Audience::kPublic));
    text += rows("Variables of one program or shell", "variable", of(Audience::kProgram));
    for (const std::string& list : lists())
        text += rows("Items of " + list, "item",
                     [&](const Setting& each) { return *each.item && each.variable == list; });
    text += rows("For development and tests", "variable", of(Audience::kDeveloper));
    return text;
}

}  // namespace smt::settings
