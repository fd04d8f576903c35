// smt trace: the journal of a server for a trace viewer, while it runs or after it.
#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/journal/journal.h"
#include "tools/smt/command.h"
#include "tools/smt/places.h"
#include "tools/smt/trace_view.h"

namespace smt::tools {
namespace {

// False: it could not all be written, and errno says why.
bool write_all(const runtime::journal::Reader& journal, uint64_t last_ns, std::FILE* to, uint64_t* events) {
    *events = write_trace(journal, last_ns,
                          [&](std::string_view piece) { std::fwrite(piece.data(), 1, piece.size(), to); });
    return std::fflush(to) == 0 && !std::ferror(to);
}

uint64_t parse_nanoseconds(const std::string& text) {
    constexpr double kMost = 1e9;  // 30 years
    char* end = nullptr;
    const double seconds = std::strtod(text.c_str(), &end);
    if (text.empty() || *end || !(seconds > 0) || seconds > kMost)
        throw Misuse("--last wants seconds, more than 0, not '" + text + "'");
    return static_cast<uint64_t>(seconds * 1e9);
}

int run_trace(const Arguments& arguments) {
    const Options options = parse_options(arguments, {}, {"-o", "--last", "--server"});
    const std::string* last = options.value("--last");
    const uint64_t last_ns = last ? parse_nanoseconds(*last) : ~0ull;
    const std::string path = find_journal(options.value("--server"));
    const runtime::journal::Reader journal(path);
    if (!journal.error().empty()) throw Failure(journal.error());
    const std::string* name = options.value("-o");
    std::FILE* to = name ? std::fopen(name->c_str(), "we") : stdout;
    if (!to) throw Failure("cannot write " + *name + ": " + std::strerror(errno));
    uint64_t events = 0;
    errno = 0;
    bool whole = write_all(journal, last_ns, to, &events);
    if (name && std::fclose(to) != 0) whole = false;
    if (!whole) throw Failure("cannot write " + (name ? *name : "the trace") + ": " + std::strerror(errno));
    if (name)
        fmt::print("{}: {} events of {}; open it in https://ui.perfetto.dev or chrome://tracing\n", *name,
                   events, path);
    return 0;
}

}  // namespace

const Command trace_command = {"trace", "smt trace [-o FILE] [--last SECONDS] [--server KEY]",
                               "writes what the server did for a trace viewer (Perfetto, Chrome)", run_trace};

}  // namespace smt::tools
