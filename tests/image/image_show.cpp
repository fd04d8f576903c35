// Shows what is in an image, and writes its entries:   image_show IMAGE FOLDER
//
//   entry 0 ptx 90 - zstd          FOLDER/0 has its bytes
//   facts 1 _Z5scalePffi kernel registers 10 stack 0 shared 0 barriers 0
//   prints 90 _Z4sayPi             a kernel that may print on sm_90; `*`: every one, and why
//   variables 90 used              its code for sm_90 refers to variables of the image
//   atomics 90 _Z3addPi            a kernel with atomics for the whole system
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "runtime/image/kernel_facts.h"
#include "runtime/image/printing.h"
#include "runtime/jit/opened.h"

namespace {

using namespace smt::image;

constexpr const char* kKinds[] = {"ptx", "cubin", "other"};
constexpr const char* kCompressions[] = {"none", "lz4", "zstd"};

int fail(const Problem& problem) {
    fmt::print(stderr, "{}\n", problem.text);
    return 1;
}

int show_facts(size_t index, const std::string& cubin) {
    auto facts = kernel_facts(cubin);
    if (auto* problem = std::get_if<Problem>(&facts)) return fail(*problem);
    for (const KernelFacts& fact : std::get<std::vector<KernelFacts>>(facts))
        fmt::print("facts {} {} {} registers {} stack {} shared {} barriers {}\n", index, fact.name,
                   fact.kernel ? "kernel" : "function", fact.registers, fact.stack_bytes,
                   fact.shared_bytes ? fmt::format("{}", *fact.shared_bytes) : "unlinked", fact.barriers);
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return fail({"usage: image_show IMAGE FOLDER"});
    std::ostringstream text;
    text << std::ifstream(arguments[1], std::ios::binary).rdbuf();
    const std::string image = text.str();
    auto read_image = read(image);
    if (auto* problem = std::get_if<Problem>(&read_image)) return fail(*problem);
    const auto& entries = std::get<std::vector<Entry>>(read_image);
    for (size_t i = 0; i < entries.size(); ++i) {
        const Entry& entry = entries[i];
        fmt::print("entry {} {} {} {} {}\n", i, kKinds[static_cast<int>(entry.kind)], entry.architecture,
                   entry.variant ? entry.variant : '-', kCompressions[static_cast<int>(entry.compression)]);
        if (entry.kind == Kind::kOther) continue;
        auto bytes = expand(entry);
        if (auto* problem = std::get_if<Problem>(&bytes)) return fail(*problem);
        const std::string& content = std::get<std::string>(bytes);
        std::ofstream(fmt::format("{}/{}", arguments[2], i), std::ios::binary) << content;
        if (entry.kind == Kind::kCubin && show_facts(i, content)) return 1;
    }
    const Printing printing = printing_kernels(image, {90});
    if (printing.all) fmt::print("prints 90 * {}\n", printing.why);
    for (const std::string& kernel : printing.kernels) fmt::print("prints 90 {}\n", kernel);
    smt::runtime::jit::OpenOrder asked{{90}, {90}, 1 << 20};
    asked.moves = true;
    const smt::runtime::jit::Opened opened = smt::runtime::jit::open_image(asked, image);
    fmt::print("variables 90 {}\n", opened.uses_variables ? "used" : "unused");
    for (const auto& [name, variable] : opened.moved.variables) fmt::print("moved 90 {}\n", name);
    if (!opened.stays.empty()) fmt::print("stays 90 {}\n", opened.stays);
    asked.tables = true;
    const smt::runtime::jit::Opened with_tables = smt::runtime::jit::open_image(asked, image);
    for (const auto& [name, variable] : with_tables.moved.variables)
        if (!opened.moved.variables.contains(name)) fmt::print("table 90 {}\n", name);
    if (with_tables.stays != opened.stays) fmt::print("table-stays 90 {}\n", with_tables.stays);
    for (const std::string& kernel : opened.system_atomics) fmt::print("atomics 90 {}\n", kernel);
    return 0;
}
