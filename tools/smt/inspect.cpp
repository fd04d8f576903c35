// smt inspect: which images a file holds, and how smt can manage their kernels; or in front of which the door
// can be put.
#include <fmt/core.h>

#include <charconv>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "rewriter/device/managed_names.h"
#include "runtime/image/survey.h"
#include "runtime/jit/decision.h"
#include "tools/smt/command.h"
#include "tools/smt/inspect_door.h"
#include "tools/smt/inspect_view.h"
#include "tools/smt/mapped_file.h"

namespace smt::tools {
namespace {

namespace jit = runtime::jit;

// sm_90, sm_90a, compute_90 or 90; the letter is the code's, not the device's.
int parse_architecture(const std::string& text) {
    std::string_view rest = text;
    for (std::string_view prefix : {"sm_", "compute_"})
        if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
    int architecture = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), architecture);
    std::string_view letter(end, static_cast<size_t>(rest.data() + rest.size() - end));
    if (error != std::errc() || architecture < 10 || (!letter.empty() && letter != "a" && letter != "f"))
        throw Misuse("--arch takes an architecture like sm_90, not '" + text + "'");
    return architecture;
}

constexpr std::chrono::minutes kLeaveTimeout{10};  // the worker has a time limit of its own

image::Verdict verdict_of(const jit::Decision& decision, const std::string& kernel) {
    if (std::string why = decision.why_unmanaged(kernel); !why.empty())
        return {image::Management::kUnmanaged, std::move(why)};
    if (decision.by_ptx()) return {image::Management::kPtx, ""};
    return {image::Management::kSource, "its source is known, captured or indexed"};
}

// What the server would decide, found out in its way: by the index, the cache and the compile worker.
image::Judge judge_for(jit::Service& service, int architecture) {
    return [&service, architecture](std::string_view bytes) -> image::ImageVerdict {
        const jit::Deciding how{[&](const std::string& identity) {
                                    return service.wait_for(jit::kNoTenant, identity, kLeaveTimeout);
                                },
                                [](const std::string&) {}, jit::kNoTenant};
        const jit::Target target{architecture, false};
        jit::Choices choices = jit::choices_of(bytes, target, service.settings().ptx_bytes);
        auto decision = std::make_shared<const jit::Decision>(
            jit::decide(service, bytes, std::move(choices), target, how));
        return [decision](const std::string& kernel) { return verdict_of(*decision, kernel); };
    };
}

// A program may have been built with managed forms (smt rewrite): their names say so.
void find_written_forms(image::Survey& survey) {
    std::set<std::pair<size_t, std::string>> names;
    for (const image::SurveyedKernel& kernel : survey.kernels) names.emplace(kernel.image, kernel.facts.name);
    for (image::SurveyedKernel& kernel : survey.kernels) {
        if (kernel.verdict.management != image::Management::kUnmanaged) continue;
        for (const Reuse reuse : kReuses) {
            const std::string form = managed_symbol(kernel.facts.name, reuse);
            if (!form.empty() && names.contains({kernel.image, form}))
                kernel.verdict = {image::Management::kSource, "it was built with a managed form"};
        }
    }
}

// By the compile worker, as the server makes machine code of PTX.
machine_code::Assembler assembler_of(jit::Service& service) {
    return [&service](const std::string& ptx,
                      const std::string& architecture) -> std::variant<std::string, image::Problem> {
        constexpr uint32_t kPtxInput = 1;  // CU_JIT_INPUT_PTX
        jit::Order order;
        order.language = jit::Language::kAssembly;
        order.form = jit::Form::kCubin;
        order.architecture = architecture;
        order.inputs.push_back({kPtxInput, 0, ptx.size(), "", ptx});
        const std::string identity = service.make_machine_code(jit::kNoTenant, std::move(order));
        const auto answer = service.wait_for(jit::kNoTenant, identity, kLeaveTimeout);
        if (!answer.result) return image::Problem{"the compile worker does not answer"};
        if (answer.result->image.empty()) return image::Problem{answer.result->reason};
        return std::string(answer.result->image.begin(), answer.result->image.end());
    };
}

int inspect_door(const std::string& path, const image::Container& file, int architecture, bool as_json) {
    if (!jit::Service::has_ptx_compiler())
        throw Failure("this build has no nvPTXCompiler, which assembles what stands at the door");
    jit::Service service(jit::read_settings(jit::own_folder()), [](const std::string&) {});
    const DoorRows rows = door_rows(file, architecture, assembler_of(service));
    if (rows.empty())
        throw Failure(architecture == 0
                          ? path + " has no machine code"
                          : fmt::format("{} has no machine code for sm_{}", path, architecture));
    fmt::print("{}", (as_json ? door_json : door_text)(path, rows));
    return 0;
}

int run_inspect(const Arguments& arguments) {
    Options options = parse_options(arguments, {"--json", "--door"}, {"--arch"}, Operands::kMixed);
    if (options.operands.size() != 1) throw Misuse("it takes one file");
    const std::string& path = options.operands[0];
    int architecture = options.has("--arch") ? parse_architecture(*options.value("--arch")) : 0;
    MappedFile file(path);
    if (!file.problem().empty())
        throw Failure(
            fmt::format("cannot read {}: {}. It takes a program, library, object, fatbin, cubin or PTX text",
                        path, file.problem()));
    auto found = image::find_images(file.bytes());
    if (auto* problem = std::get_if<image::Problem>(&found)) throw Failure(path + " is " + problem->text);
    if (options.has("--door"))
        return inspect_door(path, std::get<image::Container>(found), architecture, options.has("--json"));
    if (architecture == 0)
        architecture = image::newest_architecture(std::get<image::Container>(found).images);
    if (architecture == 0)
        throw Failure(path + " names no architecture: say for which with --arch, like --arch sm_90");
    jit::Service service(jit::read_settings(jit::own_folder()), [](const std::string&) {});
    auto survey = image::survey_file(file.bytes(), image::device_from_environment(architecture),
                                     judge_for(service, architecture));
    if (auto* problem = std::get_if<image::Problem>(&survey)) throw Failure(path + " is " + problem->text);
    auto& all = std::get<image::Survey>(survey);
    find_written_forms(all);
    const std::string text = (options.has("--json") ? inspect_json : inspect_text)(path, architecture, all);
    fmt::print("{}", text);
    size_t broken = 0;
    for (const image::SurveyedImage& image : all.images) broken += image.problem.has_value();
    if (broken)
        throw Failure(fmt::format("{} of {} broken: build or fetch the file anew",
                                  broken == 1 ? "an image" : fmt::format("{} images", broken),
                                  path + (broken == 1 ? " is" : " are")));
    return 0;
}

}  // namespace

const Command inspect_command = {
    "inspect",
    "smt inspect FILE [--arch sm_90] [--door] [--json]\n"
    "\n"
    "  FILE         a program, shared or static library, object, fatbin, cubin or PTX text\n"
    "  --arch sm_N  the device that is asked about (default: the newest that the file has code for).\n"
    "               CUDA_FORCE_PTX_JIT and CUDA_DISABLE_PTX_JIT count as they do for the driver\n"
    "  --door       only in front of which kernels of machine code a check of each block can be put, why not "
    "of\n"
    "               the others, and how fast that goes; of all architectures, or of the one of --arch",
    "lists the images and kernels of a file, and how smt can manage them", run_inspect};

}  // namespace smt::tools
