// smt-keeper: owns tenants' device memory. smtd starts it.
//
//   smt-keeper --descriptor N (--driver PATH | --memfd)
//
// It says "ready" on the socket (an empty Reply), or one line on stderr, and ends.
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "runtime/keeper/channel.h"
#include "runtime/keeper/keeper.h"

namespace {

using namespace smt::runtime::keeper;

// A memfd for each chunk of the simulated device; on a GPU the driver's own descriptors.
void raise_file_limit() {
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

int main(int count, char** arguments) {
    int socket = -1;
    std::string driver;
    bool memfd = false;
    for (int i = 1; i < count; ++i) {
        const std::string_view argument = arguments[i];
        if (argument == "--descriptor" && i + 1 < count) socket = std::atoi(arguments[++i]);
        if (argument == "--driver" && i + 1 < count) driver = arguments[++i];
        if (argument == "--memfd") memfd = true;
    }
    if (socket < 3 || memfd != driver.empty()) {
        std::fprintf(stderr, "usage: smt-keeper --descriptor N (--driver PATH | --memfd) (smtd starts it)\n");
        return 2;
    }
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGINT, SIG_IGN);  // of a terminal: the server decides
    raise_file_limit();
    std::string problem;
    const std::unique_ptr<Source> source = memfd ? memfd_source() : cuda_source(driver, &problem);
    if (!source) {
        std::fprintf(stderr, "smt-keeper: %s\n", problem.c_str());
        return 1;
    }
    const Reply ready;
    if (!send_packet(socket, &ready, sizeof ready, {}, true)) return 1;
    Keeper(*source).serve(socket);
    return 0;
}
