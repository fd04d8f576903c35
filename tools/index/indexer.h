// From one file of a build to an entry of the index.
//
// The file is parsed in a child process, which may crash or hang. Then the entry is stored, and tried at
// once: the service makes the managed forms as it will for the server, and an entry that leads to none is
// removed again. They stay in the cache, so the first run of the program waits for nothing.
#pragma once

#include <string>

#include "rewriter/source/extract/compile_commands.h"
#include "runtime/jit/index.h"
#include "runtime/jit/service.h"
#include "tools/index/command_line.h"
#include "tools/index/object.h"

namespace smt::tools::index {

struct Outcome {
    bool cuda = false;  // it is no file of ours otherwise
    bool indexed = false;
    size_t kernels = 0, managed = 0;
    std::string text;  // for a person
};

class Indexer {
public:
    Indexer(std::string toolkit, runtime::jit::SourceIndex& index, runtime::jit::Service& service)
        : toolkit_(std::move(toolkit)), index_(index), service_(service) {}

    Outcome index(const rewriter::source::CompileCommand& command);

private:
    // Why there is none; empty: it is in `indexed`.
    std::string make(const CommandLine& line, const std::string& directory, const Object& object,
                     runtime::jit::Indexed& indexed);
    runtime::jit::ResultPointer try_out(const std::string& image, bool text_only);

    const std::string toolkit_;
    runtime::jit::SourceIndex& index_;
    runtime::jit::Service& service_;
};

}  // namespace smt::tools::index
