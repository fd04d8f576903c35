#include "rewriter/source/extract/compile_commands.h"

#include <fmt/format.h>
#include <llvm/Support/Allocator.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/JSON.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/StringSaver.h>

#include <filesystem>

namespace smt::rewriter::source {

namespace {

constexpr int kMostNesting = 8;  // of files of options

std::vector<std::string> split(llvm::StringRef line) {
    llvm::BumpPtrAllocator memory;
    llvm::StringSaver saver(memory);
    llvm::SmallVector<const char*, 64> words;
    llvm::cl::TokenizeGNUCommandLine(line, saver, words);
    return {words.begin(), words.end()};
}

void append(std::vector<std::string>& all, const std::vector<std::string>& arguments,
            const std::string& directory, int depth) {
    for (size_t at = 0; at < arguments.size(); ++at) {
        std::string name;
        if (arguments[at].starts_with("@")) name = arguments[at].substr(1);
        for (const char* option : {"--options-file", "-optf"}) {
            if (arguments[at] == option && at + 1 < arguments.size())
                name = arguments[++at];
            else if (arguments[at].starts_with(std::string(option) + "="))
                name = arguments[at].substr(arguments[at].find('=') + 1);
        }
        auto file = name.empty() || depth == kMostNesting
                        ? nullptr
                        : llvm::MemoryBuffer::getFile((std::filesystem::path(directory) / name).string());
        if (file && *file)
            append(all, split((*file)->getBuffer()), directory, depth + 1);
        else
            all.push_back(arguments[at]);
    }
}

std::string text_of(const llvm::json::Object& object, llvm::StringRef name) {
    return object.getString(name).value_or("").str();
}

}  // namespace

std::vector<CompileCommand> read_compile_commands(const std::string& path, std::string& problem) {
    std::vector<CompileCommand> commands;
    auto file = llvm::MemoryBuffer::getFile(path);
    if (!file) {
        problem = fmt::format("{}: {}", path, file.getError().message());
        return commands;
    }
    llvm::Expected<llvm::json::Value> value = llvm::json::parse((*file)->getBuffer());
    if (!value) {
        problem = fmt::format("{}: {}", path, llvm::toString(value.takeError()));
        return commands;
    }
    const llvm::json::Array* list = value->getAsArray();
    if (!list) problem = path + ": it is not a list of commands";
    for (size_t i = 0; list && i < list->size(); ++i) {
        const llvm::json::Object* entry = (*list)[i].getAsObject();
        std::vector<std::string> arguments;
        if (const llvm::json::Array* words = entry ? entry->getArray("arguments") : nullptr) {
            for (const llvm::json::Value& word : *words)
                arguments.push_back(word.getAsString().value_or("").str());
        } else if (entry) {
            arguments = split(entry->getString("command").value_or(""));
        }
        if (!entry || arguments.empty() || text_of(*entry, "file").empty()) {
            problem = fmt::format("{}: entry {} has no file or no command", path, i);
            return commands;
        }
        CompileCommand command{
            text_of(*entry, "directory"), text_of(*entry, "file"), {}, text_of(*entry, "output")};
        append(command.arguments, arguments, command.directory, 0);
        commands.push_back(std::move(command));
    }
    return commands;
}

}  // namespace smt::rewriter::source
