#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include "rewriter/source/extract/extract.h"
using namespace smt::rewriter::source;
int main(int argc, char** argv) {
    Input input; input.dialect = Dialect::kNvcc; input.name = argv[1]; input.toolkit = "/usr/local/cuda";
    std::ifstream f(argv[1]); input.text.assign(std::istreambuf_iterator<char>(f), {});
    for (int i = 2; i < argc; ++i) input.options.push_back(argv[i]);
    Extract e = extract(input, nullptr);
    if (!e.error.empty()) { fmt::print(stderr, "error: {}\n", e.error); return 1; }
    fmt::print("{}", e.text);
}
