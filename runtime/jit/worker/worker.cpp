#include "runtime/jit/worker/worker.h"

#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>

#include "runtime/jit/exports.h"
#include "runtime/jit/form.gen.h"
#include "runtime/jit/index.h"
#include "runtime/jit/messages.h"
#include "runtime/jit/options.h"
#include "runtime/jit/ptx.h"
#include "runtime/jit/shared.h"
#include "runtime/jit/toolkit.h"
#include "runtime/jit/worker/block_sizes.h"
#include "runtime/jit/worker/confinement.h"
#include "runtime/jit/worker/ptx_rewriter.h"
#include "runtime/jit/worker/registers.h"

namespace smt::runtime::jit {

namespace {

struct Arguments {
    int descriptor = -1, shared = -1;
    uint64_t memory = 0;
    std::chrono::seconds cpu{0};  // of an order
};

bool parse(int count, char** arguments, Arguments& result) {
    for (int i = 1; i + 1 < count; i += 2) {
        const std::string_view name = arguments[i];
        if (name == "--descriptor")
            result.descriptor = std::atoi(arguments[i + 1]);
        else if (name == "--shared")
            result.shared = std::atoi(arguments[i + 1]);
        else if (name == "--memory")
            result.memory = std::strtoull(arguments[i + 1], nullptr, 10);
        else if (name == "--cpu")
            result.cpu = std::chrono::seconds(std::strtoul(arguments[i + 1], nullptr, 10));
        else
            return false;
    }
    return result.descriptor >= 0 && result.cpu.count() > 0;
}

rewriter::source::Input input_of(const Order& order) {
    rewriter::source::Input input;
    input.name = order.source.name;
    input.text = order.source.text;
    input.dialect = rewriter::source::Dialect::kNvrtc;
    input.headers = order.source.headers;
    input.options = order.source.options;
    input.name_expressions = order.source.name_expressions;
    input.toolkit = find_toolkit();
    return input;
}

Source rewritten(const Order& order, rewriter::source::Output& output) {
    Source source = order.source;
    source.text = std::move(output.text);
    source.headers.emplace_back("smt_worker.h", kWorkerHeader);
    for (std::string& name : output.name_expressions) source.name_expressions.push_back(std::move(name));
    return source;
}

bool rewrites(Rewrite rewrite) { return has_source_rewriter || rewrite != rewrite_source; }

Order with_architecture(Order order) {
    if (order.architecture.empty()) return order;
    std::erase_if(order.source.options, is_architecture);
    order.source.options.push_back("--gpu-architecture=" + order.architecture);
    return order;
}

// Opened when it is needed: most sources keep to their registers.
const Assembler& assembler() {
    static const Assembler assembler;
    return assembler;
}

// NVRTC's machine code stays if it can: the driver need make none.
void keep_to_registers(Result& compiled, const std::string& ptx, const Order& order) {
    const std::string architecture = architecture_in(order.source.options);
    if (architecture.empty() || ptx.empty() || !exceeds(compiled.image, compiled.kernels, order.registers))
        return;
    compiled.image =
        hold_registers(ptx, compiled.kernels, order.registers, architecture, assembler(), compiled.log);
}

std::string architecture_of(const Order& order) {
    return order.architecture.empty() ? architecture_in(order.source.options) : order.architecture;
}

// `architecture`: empty: no machine code can be looked at.
void hold(Result& result, const Order& order, const std::string& architecture) {
    result.image = architecture.empty() ? hold_registers(result.image, result.kernels, order.registers)
                                        : hold_registers(result.image, result.kernels, order.registers,
                                                         architecture, assembler(), result.log);
}

const CompiledKernel* find(const std::vector<CompiledKernel>& kernels, const std::string& symbol) {
    auto found = std::find_if(kernels.begin(), kernels.end(),
                              [&](const CompiledKernel& each) { return each.symbol == symbol; });
    return found == kernels.end() ? nullptr : &*found;
}

// A source came with an image that it need not belong to: it is used where it makes that image, byte for
// byte. NVRTC gives the same bytes for the same text, options, folder and version. `ptx`: of the image, or of
// the same compile. Nothing: proven.
std::optional<Result> refute(const Order& order, const Nvrtc& nvrtc, std::string& ptx) {
    Result plain = nvrtc.compile(order.source, order.form, &ptx);
    if (!plain.image.empty() && identity_of(plain.image) == order.proves) return std::nullopt;
    plain.reason = fmt::format(
        "the source that was announced with the image does not make it: NVRTC {} of the compile worker {}",
        nvrtc.version(), plain.image.empty() ? "says: " + plain.reason : "makes another image of it");
    plain.image.clear();
    plain.refuted = plain.lasting;
    return plain;
}

// The managed forms of the image's own PTX, or of what NVRTC makes of the source as it is: with no loop
// around it a kernel is optimised as the program's own was (fdtd3d's addresses were computed anew in each
// step otherwise). None, where that would manage less than `wanted`, which are the kernels of the rewritten
// source, and are told what the PTX says of them.
std::optional<Result> by_own_ptx(const Order& order, std::string ptx, std::vector<CompiledKernel>& wanted) {
    if (ptx.empty()) return std::nullopt;
    Order text;
    text.source.text = std::move(ptx);
    text.inside = order.inside;
    Result result = rewrite_ptx(text);
    for (CompiledKernel& kernel : wanted)
        if (const CompiledKernel* read = find(result.kernels, kernel.symbol)) kernel.waits = read->waits;
    if (result.image.empty()) return std::nullopt;
    for (const CompiledKernel& kernel : wanted) {
        const CompiledKernel* made = kernel.managed.empty() ? nullptr : find(result.kernels, kernel.symbol);
        if (!kernel.managed.empty() && (!made || made->managed.empty() || made->reuse > kernel.reuse))
            return std::nullopt;
    }
    for (CompiledKernel& kernel : result.kernels)
        if (const CompiledKernel* written = find(wanted, kernel.symbol)) kernel.name = written->name;
    if (order.form == Form::kCubin) hold(result, order, architecture_of(order));
    result.shared = true;
    return result;
}

Result work_on_ptx(const Order& order) {
    Result result = rewrite_ptx(order);
    if (result.image.empty()) return result;
    hold(result, order, order.architecture);
    result.shared = true;
    return result;
}

// Sources include by paths that are relative to where their program was. Where that does not exist, it is not
// needed or missed.
void enter(const std::string& directory) {
    if (directory.empty() || chdir(directory.c_str()) != 0) static_cast<void>(chdir("/") == 0);
}

Result guarded_work(const Order& order, const Nvrtc& nvrtc, Rewrite rewrite) {
    enter(order.directory);
    try {
        return work(order, nvrtc, rewrite);
    } catch (const std::exception& failure) {  // memory
        Result result;
        result.reason = fmt::format("the compile worker failed: {}", failure.what());
        return result;
    }
}

Result work_on_source(const Order& order, const Nvrtc& nvrtc, Rewrite rewrite) {
    std::string ptx = order.ptx;
    if (!order.proves.empty()) {
        if (std::optional<Result> refuted = refute(order, nvrtc, ptx)) return *refuted;
    }
    rewriter::source::Output output = rewrite(input_of(order));
    Result result;
    size_t managed = 0;
    for (const rewriter::source::RewrittenKernel& kernel : output.kernels) {
        result.kernels.push_back({kernel.name, kernel.symbol, kernel.managed, kernel.reason, kernel.reuse});
        managed += !kernel.managed.empty();
    }
    result.lasting = rewrites(rewrite);
    if (!output.error.empty()) return result.reason = output.error, result;
    if (managed == 0) return result.reason = "no kernel of it can be managed", result;
    if (ptx.empty() && !order.architecture.empty()) ptx = nvrtc.compile(order.source, Form::kPtx).image;
    if (std::optional<Result> better = by_own_ptx(order, std::move(ptx), result.kernels)) return *better;
    Result compiled = nvrtc.compile(rewritten(order, output), order.form, &ptx);
    compiled.kernels = std::move(result.kernels);
    if (order.form == Form::kCubin && !compiled.image.empty()) keep_to_registers(compiled, ptx, order);
    return compiled;
}

constexpr int kKeptMemory = 32 << 20;  // the most that malloc takes for such a threshold

Opened guarded_open(const ImageOrder& asked, MappedMemory& shared, Open open) {
    Opened opened;
    try {
        opened = open(asked.asked, shared.image(asked.bytes));
        if (!opened.unpacked.empty())
            std::memcpy(shared.unpacked(opened.unpacked.size()), opened.unpacked.data(),
                        opened.unpacked.size());
    } catch (const std::exception& failure) {  // memory
        opened = {};
        opened.problem = fmt::format("the compile worker failed: {}", failure.what());
    }
    return opened;
}

int open_images(const Arguments& settings, const std::string& lacking, Open open) {
    mallopt(M_MMAP_THRESHOLD, kKeptMemory);  // what one image took is there for the next one
    mallopt(M_TRIM_THRESHOLD, 2 * kKeptMemory);
    MappedMemory shared(settings.shared);
    if (!write_message(settings.descriptor, Message::kReady, encode(Ready{"", "it opens images", lacking})))
        return 1;
    while (std::optional<std::string> bytes = read_message(settings.descriptor, Message::kOpen)) {
        const std::optional<ImageOrder> asked = decode_image_order(*bytes);
        if (!asked || asked->bytes > SharedMemory::kImageBytes) return 1;
        allow_cpu(settings.cpu);
        if (!write_message(settings.descriptor, Message::kOpened, encode(guarded_open(*asked, shared, open))))
            return 1;
    }
    return 0;
}

// "sm_90": 90; 0: none is named.
int number_in(const std::string& architecture) {
    const size_t digits = architecture.find_first_of("0123456789");
    return digits == std::string::npos ? 0 : std::atoi(architecture.c_str() + digits);
}

}  // namespace

Result work(const Order& given, const Nvrtc& nvrtc, Rewrite rewrite) {
    if (given.language == Language::kPtx) return work_on_ptx(given);
    if (given.language == Language::kAssembly) return compile_for_blocks(given);
    if (given.language == Language::kLink) return assembler().link(given);
    Order order = with_architecture(given);
    if (order.form == Form::kCubin && !order.image.empty())
        order.registers = own_registers(order.image, number_in(order.architecture));
    Result result = work_on_source(order, nvrtc, rewrite);
    if (result.image.empty() || order.image.empty()) return result;
    // An image that lacks anything is never loaded in place of the program's own.
    result.reason = missing_from(order.image, result.image);
    if (result.reason.empty()) result.reason = missing_variables(order.variables, result.image);
    if (!result.reason.empty()) result.image.clear();
    return result;
}

int worker_main(int count, char** arguments, Rewrite rewrite, Open open) {
    Arguments settings;
    if (!parse(count, arguments, settings)) {
        std::fprintf(
            stderr,
            "usage: smt-compile --descriptor N --memory BYTES --cpu SECONDS [--shared N] (smtd starts it)\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string lacking = confine(settings.memory);
    if (settings.shared >= 0) return open_images(settings, lacking, open);
    const Nvrtc nvrtc;
    const Ready ready{nvrtc.version(),
                      rewrites(rewrite) ? nvrtc.problem() : "this build of smt has no source rewriter",
                      lacking};
    if (!write_message(settings.descriptor, Message::kReady, encode(ready))) return 1;
    while (std::optional<std::string> bytes = read_message(settings.descriptor, Message::kOrder)) {
        std::optional<Order> order = decode_order(*bytes);
        if (!order) return 1;
        allow_cpu(settings.cpu);
        Result result = guarded_work(*order, nvrtc, rewrite);
        if (!write_message(settings.descriptor, Message::kResult, encode(result))) return 1;
    }
    return 0;
}

}  // namespace smt::runtime::jit
