#include "runtime/server/handlers/machine_code.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>
#include <variant>

#include "runtime/image/choice.h"
#include "runtime/image/container.h"
#include "runtime/image/elf_file.h"
#include "runtime/jit/service.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

using namespace std::chrono_literals;
using jit::Service;

namespace {

constexpr std::string_view kArchive = "!<arch>\n";
constexpr auto kClosingCheck = 100ms;   // interval of checks whether the session ends

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
    if (!result) return CUDA_ERROR_UNKNOWN;   // the session is over
    if (!result->image.empty()) return CUDA_SUCCESS;
    return result->trouble == jit::Trouble::kTooNew ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : invalid;
}

float milliseconds_since(std::chrono::steady_clock::time_point began) {
    return std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - began).count();
}

jit::Order order_for(Call& call, jit::Language language, const JitOptions& jit, char variant) {
    jit::Order order;
    order.language = language;
    order.form = jit::Form::kCubin;
    order.architecture = jit.target().empty() ? fmt::format("sm_{}", architecture_of(call)) : jit.target();
    if (variant && jit.target().empty()) order.architecture += variant;
    return order;
}

// Its variant is the device's where it is the device's architecture, or a family's.
char variant_for(const image::Entry& entry, int architecture) {
    return entry.variant == 'a' && entry.architecture != architecture ? '\0' : entry.variant;
}

}  // namespace

int architecture_of(Call& call) {
    const device::Properties& device = call.session.device().properties();
    return 10 * device.compute_major + device.compute_minor;
}

bool worker_makes_machine_code(Call& call) {
    const jit::Settings& settings = call.session.server().compiler().settings();
    return !call.session.device().properties().keeps_sessions_apart && Service::has_ptx_compiler() && settings.compiles_ptx && !settings.compiler.empty();
}

CUresult to_machine_code(Call& call, std::vector<char>& image, JitOptions& jit) {
    if (!worker_makes_machine_code(call)) return CUDA_SUCCESS;
    const std::string_view bytes(image.data(), image.size());
    auto read = image::read(bytes);
    auto* entries = std::get_if<std::vector<image::Entry>>(&read);
    if (!entries) return CUDA_SUCCESS;
    const image::Device device = image::device_from_environment(architecture_of(call));
    const image::Entry* entry = image::choose(*entries, device);
    // A text is compiled for better or worse; of a fatbin's, those that are not for the device are not looked at.
    if (!entry && device.takes_ptx && !image::is_fatbin(bytes) && entries->front().kind == image::Kind::kPtx) entry = &entries->front();
    if (!entry || entry->kind != image::Kind::kPtx) return CUDA_SUCCESS;
    jit::Order order = order_for(call, jit::Language::kAssembly, jit, variant_for(*entry, device.architecture));
    order.source.options = jit.compiler_options();
    order.inputs.push_back({CU_JIT_INPUT_PTX, static_cast<uint32_t>(entry->compression), entry->bytes, "", std::string(entry->stored)});
    const auto began = std::chrono::steady_clock::now();
    const jit::ResultPointer result = made(call, std::move(order));
    if (CUresult status = status_of(result, CUDA_ERROR_INVALID_PTX)) {
        if (result) jit.keep("", result->reason, milliseconds_since(began));
        return status;
    }
    jit.keep(result->log, "", milliseconds_since(began));
    image.assign(result->image.begin(), result->image.end());
    return image::check(result->image) ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}

bool is_link_input(std::string_view bytes) {
    return image::is_elf(bytes) || bytes.starts_with(kArchive) || std::holds_alternative<std::vector<image::Entry>>(image::read(bytes));
}

CUresult to_link_input(Call& call, jit::Input& input, JitOptions& jit, const JitOptions& more) {
    if (input.type != CU_JIT_INPUT_PTX) return CUDA_SUCCESS;
    auto read = image::read(input.data);
    auto* entries = std::get_if<std::vector<image::Entry>>(&read);
    if (!entries || entries->front().kind != image::Kind::kPtx) return CUDA_ERROR_INVALID_PTX;
    jit::Order order = order_for(call, jit::Language::kAssembly, jit, variant_for(entries->front(), architecture_of(call)));
    order.source.options = jit.compiler_options();
    for (std::string& option : more.compiler_options()) order.source.options.push_back(std::move(option));
    order.source.options.push_back("--compile-only");
    order.inputs.push_back({CU_JIT_INPUT_PTX, 0, input.data.size(), input.name, std::move(input.data)});
    const auto began = std::chrono::steady_clock::now();
    const jit::ResultPointer result = made(call, std::move(order));
    if (result) jit.keep(result->log, result->image.empty() ? result->reason : "", milliseconds_since(began));
    if (CUresult status = status_of(result, CUDA_ERROR_INVALID_PTX)) return status;
    input = {CU_JIT_INPUT_CUBIN, 0, result->image.size(), std::move(input.name), result->image};
    return CUDA_SUCCESS;
}

CUresult link_inputs(Call& call, std::vector<jit::Input> inputs, JitOptions& jit, std::vector<char>* image, bool* missing) {
    jit::Order order = order_for(call, jit::Language::kLink, jit, '\0');
    order.source.options = jit.linker_options();
    order.inputs = std::move(inputs);
    const auto began = std::chrono::steady_clock::now();
    const jit::ResultPointer result = made(call, std::move(order));
    *missing = result && result->trouble == jit::Trouble::kMissing;
    if (*missing) return CUDA_SUCCESS;
    if (result) jit.keep(result->log, result->image.empty() ? result->reason : "", milliseconds_since(began));
    if (CUresult status = status_of(result, CUDA_ERROR_UNKNOWN)) return status;   // as the driver answers, whatever the linker finds
    image->assign(result->image.begin(), result->image.end());
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server::handlers
