#include "tools/index/indexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "runtime/image/image.h"
#include "runtime/jit/exports.h"
#include "tools/index/extraction.h"

namespace smt::tools::index {

namespace fs = std::filesystem;
using runtime::jit::Indexed;
using runtime::jit::ResultPointer;

namespace {

constexpr auto kWorkerTimeout = std::chrono::minutes(10);  // the worker has a limit of its own

std::string code_of(const image::Entry& entry) {
    std::string code =
        fmt::format("{}_{}", entry.kind == image::Kind::kCubin ? "sm" : "compute", entry.architecture);
    if (entry.variant) code += entry.variant;
    return code;
}

std::vector<image::Entry> entries_of(const std::string& image) {
    auto read = image::read(image);
    auto* entries = std::get_if<std::vector<image::Entry>>(&read);
    if (!entries) return {};
    std::erase_if(*entries, [](const image::Entry& entry) {
        return entry.kind == image::Kind::kOther || entry.architecture == 0;
    });
    return *entries;
}

// The image's codes by the virtual architecture that they were made from, as the command says, or their own.
std::map<std::string, std::vector<std::string>> codes_by_base(const CommandLine& line,
                                                              const std::string& image) {
    std::map<std::string, std::vector<std::string>> bases;
    for (const image::Entry& entry : entries_of(image)) {
        const std::string code = code_of(entry);
        std::string base = "compute_" + code.substr(code.find('_') + 1);
        for (const auto& [name, from] : line.codes)
            if (name == code) base = from;
        std::vector<std::string>& codes = bases[base];
        if (std::count(codes.begin(), codes.end(), code) == 0) codes.push_back(code);
    }
    return bases;
}

// Empty: none of them changed after the object was made.
std::string newer_than(const std::string& object, const std::vector<std::string>& files,
                       const std::string& directory) {
    std::error_code error;
    const auto made = fs::last_write_time(object, error);
    for (const std::string& file : files) {
        const auto changed = fs::last_write_time(fs::path(directory) / file, error);
        if (!error && changed > made) return file;
    }
    return "";
}

// Counts what is managed of the image's kernels, and says why the others are not.
void summarize(const runtime::jit::Result& result, const std::vector<std::string>& symbols,
               Outcome& outcome) {
    std::string others;
    for (const std::string& symbol : symbols) {
        const runtime::jit::CompiledKernel* found = nullptr;
        for (const runtime::jit::CompiledKernel& kernel : result.kernels)
            if (kernel.symbol == symbol) found = &kernel;
        if (found && !found->managed.empty())
            ++outcome.managed;
        else if (found)
            others += fmt::format("; {} is not: {}", found->name, found->reason);
        else
            others += fmt::format("; {} is not: Clang does not understand all of it", symbol);
    }
    outcome.kernels = symbols.size();
    outcome.text = fmt::format("{} of {} kernels managed{}", outcome.managed, outcome.kernels, others);
}

}  // namespace

std::string Indexer::make(const CommandLine& line, const std::string& directory, const Object& object,
                          Indexed& indexed) {
    const runtime::jit::Symbols symbols = runtime::jit::symbols_of(object.image);
    if (!symbols.problem.empty()) return "its image: " + symbols.problem;
    rewriter::source::Wanted wanted{symbols.kernels, {}};
    for (const std::string& name : symbols.variables)
        if (std::binary_search(object.strings.begin(), object.strings.end(), name))
            wanted.variables.push_back(name);
    const auto limit = std::chrono::duration_cast<std::chrono::seconds>(service_.settings().time);
    for (const auto& [base, codes] : codes_by_base(line, object.image)) {
        rewriter::source::Input input;
        input.name = line.file;
        input.dialect = rewriter::source::Dialect::kNvcc;
        input.options = line.options;
        input.options.push_back("-arch=" + base);
        input.toolkit = toolkit_;
        rewriter::source::Extract part = extract_apart(input, &wanted, directory, limit);
        if (!part.error.empty()) return part.error;
        if (std::string newer = newer_than(line.object, part.files, directory); !newer.empty())
            return fmt::format("its object is older than {}: build first", newer);
        indexed.variables = part.variables;  // the same for each
        runtime::jit::Source source{line.file, std::move(part.text), {}, line.nvrtc, {}};
        indexed.variants.push_back({std::move(source), codes});
    }
    return indexed.variants.empty() ? "its image has neither PTX nor machine code" : "";
}

// The form of its newest PTX, or of its newest machine code; null: it has none.
ResultPointer Indexer::try_out(const std::string& image, bool text_only) {
    int newest = 0;
    for (const image::Entry& entry : entries_of(image))
        if ((entry.kind == image::Kind::kPtx) == text_only) newest = std::max(newest, entry.architecture);
    if (newest == 0) return nullptr;
    const runtime::jit::Choices choices =
        runtime::jit::choices_of(image, {newest, text_only}, service_.settings().ptx_bytes);
    const std::string identity = service_.request(runtime::jit::kNoTenant, image, choices);
    return identity.empty() ? nullptr
                            : service_.wait_for(runtime::jit::kNoTenant, identity, kWorkerTimeout).result;
}

Outcome Indexer::index(const rewriter::source::CompileCommand& command) {
    Outcome outcome;
    CommandLine line;
    outcome.cuda = read_command_line(command, toolkit_, line);
    if (!outcome.cuda) return outcome;
    auto refuse = [&](const std::string& why) { return outcome.text = "not indexed: " + why, outcome; };
    if (!line.refusal.empty()) return refuse(line.refusal);
    const Object object = read_object(line.object);
    if (!object.problem.empty()) return refuse(object.problem);
    Indexed indexed;
    if (std::string why = make(line, command.directory, object, indexed); !why.empty()) {
        index_.remove(object.image);  // of an earlier smt
        return refuse(why);
    }
    if (!index_.store(object.image, indexed))
        return refuse("the index cannot be written: " + index_.folder());
    // PTX says more about what may be missing; machine code is what a GPU will be given.
    ResultPointer result = try_out(object.image, true), machine_code;
    if (!result || !result->image.empty()) machine_code = try_out(object.image, false);
    if (!result || (machine_code && machine_code->image.empty())) result = machine_code;
    if (!result) return index_.remove(object.image), refuse("the compile worker did not answer");
    if (result->image.empty()) return index_.remove(object.image), refuse(result->reason);
    summarize(*result, runtime::jit::symbols_of(object.image).kernels, outcome);
    outcome.indexed = true;
    return outcome;
}

}  // namespace smt::tools::index
