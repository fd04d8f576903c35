#include "tools/smt/become.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "tools/smt/places.h"

namespace smt::tools {

void become(const std::string& name, const Arguments& arguments, const std::string& where) {
    std::string program = find_program(name);
    if (program.empty()) throw Failure(name + " is not in " + own_directory() + ": it is built " + where);
    std::vector<char*> argv{program.data()};
    Arguments rest = arguments;
    for (std::string& argument : rest) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(program.c_str(), argv.data());
    throw Failure("cannot run " + program + ": " + std::strerror(errno));
}

}  // namespace smt::tools
