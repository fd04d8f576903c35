// The compile worker with a toy in place of the source rewriter. Lines of the source say what it does:
//
//   //toy managed k smt_k [single]   k has a managed form; the text has it under #ifdef TOY_REWRITTEN
//   //toy refused k REASON           k is refused
//   //toy error TEXT                 the whole text is
//   //toy plain                      the text that comes out is the one that came in
//   //toy drop                       the text that comes out is empty
//   //toy crash, hang, exit, memory  what a compiler does with a text that it was not made for
//   //toy garbage, lie               it talks past its worker on the server's socket
//   //toy try WHAT [PATH]            the whole text is refused: what came of writing or reading PATH, of a
//   socket, exec, fork,
//                                    ptrace, a signal to the server, a thread; "WHAT: done", or why not
//   //toy spin                       it computes for ever
//
// An image that begins with such a line does the same to the worker that opens it:
//
//   //toy crash, kill, hang, exit, garbage, lie
//   //toy beyond, much               the answer leads out of the image; names more than was unpacked
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/jit/messages.h"
#include "runtime/jit/worker/worker.h"

namespace {

using smt::rewriter::source::Input;
using smt::rewriter::source::Output;

constexpr int kServer = 3;

void misbehave(const std::string& how) {
    using namespace smt::runtime::jit;
    if (how == "crash") {
        std::signal(SIGSEGV, SIG_DFL);  // a sanitizer would report it and leave in its own way
        std::raise(SIGSEGV);
    }
    if (how == "kill") std::raise(SIGKILL);
    while (how == "hang") std::raise(SIGSTOP);  // which its state in /proc shows
    if (how == "exit") _exit(7);
    if (how == "memory") {
        std::vector<std::vector<char>> all;
        while (true) all.emplace_back(64u << 20);
    }
    if (how == "garbage") {
        const std::string garbage(4096, 'x');
        if (send(kServer, garbage.data(), garbage.size(), 0) < 0) _exit(8);
    }
    if (how == "lie") {  // a whole message with nonsense in it
        if (!write_message(kServer, Message::kResult, "no result at all")) _exit(8);
    }
    if (how == "spin")
        while (true) __asm__ volatile("");
}

bool attempt(const std::string& what, const std::string& path) {
    if (what == "write") return open(path.c_str(), O_WRONLY | O_CREAT, 0600) >= 0;
    if (what == "append") return open(path.c_str(), O_RDWR) >= 0;
    if (what == "remove") return unlink(path.c_str()) == 0;
    if (what == "read") return open(path.c_str(), O_RDONLY) >= 0;
    if (what == "socket") return socket(AF_INET, SOCK_STREAM, 0) >= 0;
    if (what == "exec") return execl("/bin/true", "/bin/true", nullptr) == 0;
    if (what == "ptrace") return ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr) == 0;
    if (what == "signal") return kill(getppid(), SIGURG) == 0;
    if (what == "thread") return std::thread([] {}).join(), true;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    return child > 0;
}

Output toy(const Input& input) {
    Output output;
    std::istringstream lines(input.text);
    bool dropped = false, plain = false;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string mark, how, rest;
        words >> mark >> how;
        if (mark != "//toy") continue;
        smt::rewriter::source::RewrittenKernel kernel;
        if (how == "managed") {
            words >> kernel.symbol >> kernel.managed >> rest;
            kernel.name = kernel.symbol;
            if (rest == "single") kernel.reuse = smt::Reuse::kNever;
            output.kernels.push_back(kernel);
        } else if (how == "refused") {
            words >> kernel.symbol >> std::ws;
            kernel.name = kernel.symbol;
            std::getline(words, kernel.reason);
            output.kernels.push_back(kernel);
        } else if (how == "error") {
            std::getline(words >> std::ws, output.error);
        } else if (how == "try") {
            std::string what;
            words >> what >> rest;
            output.error = what + ": " + (attempt(what, rest) ? "done" : std::strerror(errno));
        } else if (how == "plain") {
            plain = true;
        } else if (how == "drop") {
            dropped = true;
        } else {
            misbehave(how);
        }
    }
    if (plain)
        output.text = input.text;
    else if (!dropped)
        output.text = "#include \"smt_worker.h\"\n#define TOY_REWRITTEN 1\n" + input.text;
    return output;
}

smt::runtime::jit::Opened toy_open(const smt::runtime::jit::OpenOrder& asked, std::string_view image) {
    using namespace smt::runtime::jit;
    constexpr std::string_view kMark = "//toy ";
    if (!image.starts_with(kMark)) return open_image(asked, image);
    const std::string how(
        image.substr(kMark.size(), image.find_first_of(" \n", kMark.size()) - kMark.size()));
    misbehave(how);
    Opened opened = open_image(asked, image);
    if (how == "beyond") opened.bytes = image.size() + 1;
    if (how == "much") opened.unpacked.assign(1, 'x'), opened.bytes = ~0ull;
    return opened;
}

}  // namespace

int main(int count, char** arguments) {
    return smt::runtime::jit::worker_main(count, arguments, toy, toy_open);
}
