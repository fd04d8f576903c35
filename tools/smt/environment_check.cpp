#include "tools/smt/environment_check.h"

#include <fmt/format.h>

#include "runtime/settings/config.h"
#include "tools/smt/command.h"

namespace smt::tools {

void check_environment(const std::string& command) {
    const settings::Config config = settings::Config::read();
    if (const std::vector<std::string> problems = config.problems(); !problems.empty())
        throw Failure(fmt::format("{}", fmt::join(problems, "\n")));
    for (const std::string& line : config.unknown_variables()) fmt::print(stderr, "{}: {}\n", command, line);
}

}  // namespace smt::tools
