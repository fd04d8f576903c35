#include "runtime/server/handlers/code/machine_code.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "runtime/image/elf_file.h"
#include "runtime/jit/service.h"
#include "runtime/protocol/try.h"
#include "runtime/server/handlers/code/opening.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

using namespace std::chrono_literals;
using jit::Service;

namespace {

constexpr std::string_view kArchive = "!<arch>\n";
constexpr auto kClosingCheck = 100ms;  // interval of checks whether the session ends

// Waits without a limit of its own: each compile has a time limit.
jit::ResultPointer made(Call& call, jit::Order order) {
    Service& compiler = call.session.server().compiler();
    const std::string identity = compiler.make_machine_code(call.session.id(), std::move(order));
    while (!call.session.closing()) {
        Service::Answer answer = compiler.wait_for(call.session.id(), identity, kClosingCheck);
        if (answer.state != Service::State::kPending) return answer.result;
    }
    return nullptr;
}

// `invalid`: what the driver says of such an input.
CUresult status_of(const jit::ResultPointer& result, CUresult invalid) {
    if (!result) return CUDA_ERROR_UNKNOWN;  // the session is over
    if (!result->image.empty()) return CUDA_SUCCESS;
    return result->trouble == jit::Trouble::kTooNew ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : invalid;
}

float milliseconds_since(std::chrono::steady_clock::time_point began) {
    return std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - began).count();
}

std::string code_for(Call& call, const jit::Opened& opened, const std::string& target) {
    return target.empty() ? jit::machine_code_for(architecture_of(call), opened.architecture, opened.variant)
                          : target;
}

jit::Order order_of_text(Call& call, const jit::Opened& opened, std::string text,
                         std::vector<std::string> options, const std::string& target,
                         const jit::OwnForm& own) {
    jit::Order order =
        Service::assembly_of(std::move(text), code_for(call, opened, target), std::move(options));
    order.registers = own.registers;
    order.ptx = own.ptx;
    return order;
}

}  // namespace

bool worker_makes_machine_code(Call& call) {
    const jit::Settings& settings = call.session.server().compiler().settings();
    return !call.session.device().properties().keeps_sessions_apart && Service::has_ptx_compiler() &&
           settings.compiles_ptx && !settings.compiler.empty();
}

std::string ask_for_machine_code(Call& call, const jit::Opened& opened, std::string text,
                                 std::vector<std::string> options, const std::string& target,
                                 const jit::OwnForm& own) {
    return call.session.server().compiler().make_machine_code(
        call.session.id(), order_of_text(call, opened, std::move(text), std::move(options), target, own));
}

CUresult to_machine_code(Call& call, const jit::Opened& opened, std::vector<char>& image, JitOptions& jit,
                         const jit::OwnForm& own) {
    jit::Order order = order_of_text(call, opened, std::string(image.data(), image.size()),
                                     jit.compiler_options(), jit.target(), own);
    const auto began = std::chrono::steady_clock::now();
    const jit::ResultPointer result = made(call, std::move(order));
    if (CUresult status = status_of(result, CUDA_ERROR_INVALID_PTX)) {
        if (result) jit.keep("", result->reason, milliseconds_since(began));
        return status;
    }
    jit.keep(result->log, "", milliseconds_since(began));
    image.assign(result->image.begin(), result->image.end());
    return CUDA_SUCCESS;
}

bool is_being_assembled(Call& call, const jit::Opened& opened, std::string_view image, const JitOptions& jit,
                        const jit::OwnForm& own) {
    if (opened.code != jit::Code::kPtx || !worker_makes_machine_code(call)) return false;
    const std::string identity = ask_for_machine_code(call, opened, std::string(jit::code_of(opened, image)),
                                                      jit.compiler_options(), jit.target(), own);
    return call.session.server().compiler().wait_for(call.session.id(), identity, 0ms).state ==
           Service::State::kPending;
}

bool is_link_input(std::string_view bytes, const jit::Opened& opened) {
    return opened.code != jit::Code::kOther || image::is_elf(bytes) || bytes.starts_with(kArchive);
}

CUresult to_link_input(Call& call, const jit::Opened& opened, jit::Input& input, JitOptions& jit,
                       const JitOptions& more) {
    if (input.type != CU_JIT_INPUT_PTX) return CUDA_SUCCESS;
    if (opened.code != jit::Code::kPtx) return CUDA_ERROR_INVALID_PTX;
    std::vector<std::string> options = jit.compiler_options();
    for (std::string& option : more.compiler_options()) options.push_back(std::move(option));
    options.push_back("--compile-only");
    jit::Order order =
        Service::assembly_of(std::move(input.data), code_for(call, opened, jit.target()), std::move(options));
    order.inputs.front().name = input.name;
    const auto began = std::chrono::steady_clock::now();
    const jit::ResultPointer result = made(call, std::move(order));
    if (result) jit.keep(result->log, result->image.empty() ? result->reason : "", milliseconds_since(began));
    SMT_TRY(status_of(result, CUDA_ERROR_INVALID_PTX));
    input = {CU_JIT_INPUT_CUBIN, 0, result->image.size(), std::move(input.name), result->image};
    return CUDA_SUCCESS;
}

CUresult link_inputs(Call& call, std::vector<jit::Input> inputs, JitOptions& jit, std::vector<char>* image,
                     bool* missing) {
    jit::Order order;
    order.language = jit::Language::kLink;
    order.form = jit::Form::kCubin;
    order.architecture = jit.target().empty() ? fmt::format("sm_{}", architecture_of(call)) : jit.target();
    order.source.options = jit.linker_options();
    order.inputs = std::move(inputs);
    const auto began = std::chrono::steady_clock::now();
    const jit::ResultPointer result = made(call, std::move(order));
    *missing = result && result->trouble == jit::Trouble::kMissing;
    if (*missing) return CUDA_SUCCESS;
    if (result) jit.keep(result->log, result->image.empty() ? result->reason : "", milliseconds_since(began));
    SMT_TRY(status_of(result, CUDA_ERROR_UNKNOWN));  // as the driver answers, whatever the linker finds
    image->assign(result->image.begin(), result->image.end());
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server::handlers
