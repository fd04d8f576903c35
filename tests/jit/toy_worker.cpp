// The compile worker with a toy in place of the source rewriter. Lines of the source say what it does:
//
//   //toy managed k smt_k [single]   k has a managed form; the text has it under #ifdef TOY_REWRITTEN
//   //toy refused k REASON           k is refused
//   //toy error TEXT                 the whole text is
//   //toy plain                      the text that comes out is the one that came in
//   //toy drop                       the text that comes out is empty
//   //toy crash, hang, exit, memory  what a compiler does with a text that it was not made for
//   //toy garbage, lie               it talks past its worker on the server's socket
//   //toy write PATH                 it tries to make a file with something in it
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/jit/messages.h"
#include "runtime/jit/worker/worker.h"

namespace {

using smt::rewriter::source::Input;
using smt::rewriter::source::Output;

constexpr int kServer = 3;

void misbehave(const std::string& how, const std::string& rest) {
    using namespace smt::runtime::jit;
    if (how == "crash") {
        std::signal(SIGSEGV, SIG_DFL);   // a sanitizer would report it and leave in its own way
        std::raise(SIGSEGV);
    }
    if (how == "hang") pause();
    if (how == "exit") _exit(7);
    if (how == "memory") {
        std::vector<std::vector<char>> all;
        while (true) all.emplace_back(64u << 20);
    }
    if (how == "garbage") {
        const std::string garbage(4096, 'x');
        if (send(kServer, garbage.data(), garbage.size(), 0) < 0) _exit(8);
    }
    if (how == "lie") {   // a whole message with nonsense in it
        if (!write_message(kServer, Message::kResult, "no result at all")) _exit(8);
    }
    if (how == "write") {
        std::FILE* file = std::fopen(rest.c_str(), "w");
        if (file && std::fputs("written", file) >= 0) std::fclose(file);
    }
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
        smt::rewriter::source::Kernel kernel;
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
        } else if (how == "plain") {
            plain = true;
        } else if (how == "drop") {
            dropped = true;
        } else {
            words >> rest;
            misbehave(how, rest);
        }
    }
    if (plain) output.text = input.text;
    else if (!dropped) output.text = "#include \"smt_worker.h\"\n#define TOY_REWRITTEN 1\n" + input.text;
    return output;
}

}  // namespace

int main(int count, char** arguments) { return smt::runtime::jit::worker_main(count, arguments, toy); }
