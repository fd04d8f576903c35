#include "runtime/server/handlers/code/late_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/dispatch/quiesce.h"
#include "runtime/image/elf_file.h"
#include "runtime/protocol/try.h"
#include "runtime/server/handlers/code/fencing.h"
#include "runtime/server/handlers/code/machine_code.h"
#include "runtime/server/handlers/code/managed_image.h"
#include "runtime/server/handlers/code/opening.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

using namespace std::chrono_literals;
using jit::Service;

namespace {

constexpr auto kAskAgain = 1ms;  // whether the session's streams are idle
constexpr auto kBetweenMoments = 500us;
constexpr auto kLoadAgain = 100ms;  // after other tenants were stopped for nothing

enum class Step { kWaits, kReady, kNever };

std::string error_of_driver(CUresult status) {
    return fmt::format("its managed form is error {} of the driver", static_cast<int>(status));
}

CUresult prepare(Call& call, LateForm& late, const jit::Result& result) {
    SMT_TRY(late.bytes.take(call.session.host_account(), result.image.size() + 1) ? CUDA_SUCCESS
                                                                                  : CUDA_ERROR_OUT_OF_MEMORY);
    std::vector<char> code(result.image.begin(), result.image.end());
    jit::Opened opened;
    SMT_TRY(open(call, {code.data(), code.size()}, nullptr, &opened));
    SMT_TRY(take_code(call, opened, code));
    code.push_back(0);  // the driver reads text up to its NUL
    late.code = std::move(code);
    late.variable_bytes = opened.variable_bytes;
    return CUDA_SUCCESS;
}

Step prepared(Call& call, LateForm& late, const jit::Result& result, std::string* reason) {
    const CUresult status = prepare(call, late, result);
    if (status == CUDA_SUCCESS) return Step::kReady;
    *reason = error_of_driver(status);
    return Step::kNever;
}

// Of a form that is known: what is loaded. Source of PTX makes PTX, which the worker assembles.
Step find_code(Call& call, LateForm& late, std::string* reason) {
    const jit::ResultPointer& form = late.form.compiled;
    if (image::is_elf(form->image) || call.session.device().properties().keeps_sessions_apart)
        return prepared(call, late, *form, reason);
    if (!worker_makes_machine_code(call)) {
        *reason = "the driver would compile its managed form while launches wait";
        return Step::kNever;
    }
    if (late.machine_code.empty()) {
        jit::Opened opened;
        if (open(call, form->image, nullptr, &opened) != CUDA_SUCCESS) {
            *reason = "its managed form cannot be opened";
            return Step::kNever;
        }
        late.machine_code =
            ask_for_machine_code(call, opened, std::string(form->image), late.options, late.target, late.own);
    }
    const Service::Answer answer =
        call.session.server().compiler().wait_for(call.session.id(), late.machine_code, 0ms);
    if (answer.state == Service::State::kPending) return Step::kWaits;
    if (!answer.result || answer.result->image.empty()) {
        *reason = "its managed form cannot be assembled" +
                  (answer.result ? ": " + answer.result->reason : std::string());
        return Step::kNever;
    }
    return prepared(call, late, *answer.result, reason);
}

Step advance(Call& call, LateForm& late, std::string* reason) {
    if (!late.code.empty()) return Step::kReady;
    if (!late.form.compiled) {
        jit::Decision found = find_managed_again(call, std::move(late.awaited));
        if (found.awaited) {
            late.awaited = std::move(*found.awaited);
            return Step::kWaits;
        }
        late.form = std::move(found);
        late.awaited = {};
        late.text = {};
    }
    if (late.form.compiled) return find_code(call, late, reason);
    *reason = late.form.reason.empty() ? "nothing is known of its managed form any more" : late.form.reason;
    return Step::kNever;
}

// Whether the driver's load would wait for nothing of this session.
bool is_idle(Call& call) {
    Streams& streams = call.session.streams();
    return !streams.captures() && streams.query_all() == CUDA_SUCCESS;
}

// A moment for the load, if there is one.
class QuietMoment {
public:
    explicit QuietMoment(device::Device& device) : device_(device), begun_(device.begin_quiet()) {}
    ~QuietMoment() {
        if (begun_) device_.end_quiet();
    }
    QuietMoment(const QuietMoment&) = delete;
    QuietMoment& operator=(const QuietMoment&) = delete;
    explicit operator bool() const { return begun_; }

private:
    device::Device& device_;
    const bool begun_;
};

// Before other tenants are stopped for it.
bool may_load(Call& call, LateForm& late) {
    const auto now = std::chrono::steady_clock::now();
    if (now < late.try_again) return false;
    late.try_again = now + kAskAgain;
    return is_idle(call) && QuietMoment(call.session.device());
}

// NOT_READY: something is under way again. Launches of other lanes may come until the driver has the call.
CUresult load_beside(Call& call, Image& image) {
    LateForm& late = *image.late;
    Beside beside;
    SMT_TRY(call.session.memory().charge(late.variable_bytes, &beside.charge));
    const dispatch::Quiesce others(call.session.server().dispatcher(), call.session.dispatched());
    const bool idle = is_idle(call);  // no lock of another folder is taken in the moment
    // Launches that were stopped may end meanwhile.
    std::optional<QuietMoment> quiet;
    for (const auto until = std::chrono::steady_clock::now() + dispatch::QuiesceWindows::kWindow;
         idle && !quiet.emplace(call.session.device()) && std::chrono::steady_clock::now() < until;)
        std::this_thread::sleep_for(kBetweenMoments);
    if (!idle || !*quiet) {
        late.try_again = std::chrono::steady_clock::now() + kLoadAgain;
        return CUDA_ERROR_NOT_READY;
    }
    SMT_TRY(call.driver.cuModuleLoadDataEx(&beside.module, late.code.data(), 0, nullptr, nullptr));
    if (const CUresult status = give_fence(call, beside.module, image.number); status != CUDA_SUCCESS) {
        call.driver.cuModuleUnload(beside.module);
        return status;
    }
    beside.form = std::move(late.form);
    call.session.code().take_form(image, std::move(beside));
    return CUDA_SUCCESS;
}

void give_up(Call& call, Image& image, const std::string& reason) {
    call.session.note("an image stays as the program made it: " + reason);
    jit::ResultPointer refused = std::move(image.late->form.refused);
    call.session.code().give_up_form(image, reason, std::move(refused));
}

void upgrade(Call& call, Image& image) {
    const CUresult status = load_beside(call, image);
    if (status == CUDA_ERROR_NOT_READY) return;
    if (status != CUDA_SUCCESS) return give_up(call, image, error_of_driver(status));
    const jit::Decision& form = image.beside.form;
    call.session.note(fmt::format("an image's managed form is ready: {} kernels{}",
                                  managed_kernels(*form.compiled), form.by_ptx() ? ", managed by PTX" : ""));
}

}  // namespace

void await_form(Call& call, uint32_t object, jit::Decision form, const jit::OwnForm& own,
                const JitOptions& jit) {
    auto late = std::make_unique<LateForm>();
    const MemoryAccountPointer& account = call.session.host_account();
    if (form.awaited) late->awaited = *std::exchange(form.awaited, std::nullopt);
    if (!late->text.take(account, late->awaited.choice.text.size()) ||
        !late->own_text.take(account, own.ptx.size()))
        return;
    late->form = std::move(form);
    late->own = own;
    late->options = jit.compiler_options();
    late->target = jit.target();
    call.session.code().await_form(object, std::move(late));
}

void look_for_form(Call& call, const LoadedKernel& kernel) {
    const uint64_t compiled = call.session.server().compiler().compiled();
    if (kernel.looked.load(std::memory_order_relaxed) == compiled) return;
    const ImagePointer image = call.session.code().image(kernel.image);
    if (!image) return;
    // withdraw() has it while it waits for the end of this launch, a fetch while it is in the driver.
    const std::unique_lock lock(image->mutex, std::try_to_lock);
    if (!lock || image->gone || !image->late) return;
    std::string reason;
    switch (advance(call, *image->late, &reason)) {
        case Step::kWaits:
            kernel.looked.store(compiled, std::memory_order_relaxed);
            return;
        case Step::kNever:
            return give_up(call, *image, reason);
        case Step::kReady:
            if (may_load(call, *image->late)) upgrade(call, *image);
    }
}

}  // namespace smt::runtime::server::handlers
