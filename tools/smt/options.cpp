// Command lines of the subcommands.
#include <algorithm>

#include "tools/smt/command.h"

namespace smt::tools {

Options parse_options(const Arguments& arguments, std::initializer_list<const char*> flags,
                      std::initializer_list<const char*> valued, Operands operands) {
    auto knows = [](auto& names, const std::string& name) {
        return std::any_of(names.begin(), names.end(), [&](const char* known) { return name == known; });
    };
    Options options;
    size_t at = 0;
    for (; at < arguments.size(); ++at) {
        const std::string& argument = arguments[at];
        if (!argument.starts_with("-")) {
            if (operands != Operands::kMixed) break;
            options.operands.push_back(argument);
            continue;
        }
        if (argument == "--") {
            ++at;
            break;
        }
        size_t equals = argument.find('=');
        std::string name = argument.substr(0, equals);
        if (knows(flags, name)) {
            if (equals != std::string::npos) throw Misuse(name + " takes no value");
            options.values[name] = "";
        } else if (!knows(valued, name)) {
            throw Misuse("unknown option '" + argument + "'");
        } else if (equals != std::string::npos) {
            options.values[name] = argument.substr(equals + 1);
        } else if (++at < arguments.size()) {
            options.values[name] = arguments[at];
        } else {
            throw Misuse(name + " needs a value");
        }
    }
    options.operands.insert(options.operands.end(), arguments.begin() + static_cast<std::ptrdiff_t>(at),
                            arguments.end());
    if (operands == Operands::kNone && !options.operands.empty())
        throw Misuse("unexpected argument '" + options.operands.front() + "'");
    return options;
}

}  // namespace smt::tools
