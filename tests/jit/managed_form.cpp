// managed_form FILE sm_N FOLDER: what a server would load in place of the images of FILE, each in a file
// FOLDER/N.image, for people and scripts to look at with NVIDIA's tools; and a line for each of their
// kernels:
//
//   N source|ptx SYMBOL MANAGED_SYMBOL
//
// Decided by the server's code, with the index, the cache and the worker that the environment names.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "runtime/image/container.h"
#include "runtime/jit/decision.h"

namespace {

using namespace smt;
namespace jit = runtime::jit;

void show(size_t number, const jit::Decision& decision, const std::string& folder) {
    if (!decision.compiled) return;
    std::ofstream(fmt::format("{}/{}.image", folder, number), std::ios::binary) << decision.compiled->image;
    for (const jit::CompiledKernel& kernel : decision.compiled->kernels)
        if (!kernel.managed.empty())
            fmt::print("{} {} {} {}\n", number, decision.by_ptx() ? "ptx" : "source", kernel.symbol,
                       kernel.managed);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 4 || std::string_view(arguments[2]).substr(0, 3) != "sm_") {
        fmt::print(stderr, "usage: managed_form FILE sm_N FOLDER\n");
        return 2;
    }
    std::ifstream input(arguments[1], std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(input), {}};
    auto found = image::find_images(file);
    if (auto* problem = std::get_if<image::Problem>(&found)) {
        fmt::print(stderr, "{} is {}\n", arguments[1], problem->text);
        return 1;
    }
    jit::Service service(jit::read_settings(jit::own_folder()),
                         [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
    const jit::Deciding how{[&](const std::string& identity) {
                                return service.wait_for(jit::kNoTenant, identity, std::chrono::minutes(10));
                            },
                            [](const std::string&) {}, jit::kNoTenant};
    const auto& images = std::get<image::Container>(found).images;
    const jit::Target target{std::atoi(arguments[2] + 3), false};
    for (size_t i = 0; i < images.size(); ++i)
        show(i,
             jit::decide(service, images[i].bytes,
                         jit::choices_of(images[i].bytes, target, service.settings().ptx_bytes), target, how),
             arguments[3]);
    return 0;
}
