#include "runtime/server/handlers/code/opening.h"

#include <utility>

#include "runtime/jit/text_doors.h"
#include "runtime/server/image_opener.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

using jit::Opener;

namespace {

bool worker_opens_images(Call& call) {
    return workers_open_images(call.session.device(), call.session.server().compiler().settings());
}

CUresult refuse(Call& call, const std::string& reason, JitOptions* jit, CUresult status) {
    call.session.note("an image cannot be loaded: " + reason);
    if (jit) jit->keep("", reason, 0);
    return status;
}

CUresult open_as(Call& call, const jit::OpenOrder& asked, std::string_view image, JitOptions* jit,
                 jit::Opened* opened) {
    if (image.empty()) return CUDA_ERROR_INVALID_IMAGE;
    if (jit::is_no_image(image) || !worker_opens_images(call)) {
        *opened = jit::open_image(asked, image, asked.target.text_only ? jit::put_doors_into_text : nullptr);
    } else {
        Opener::Answer answer = call.session.server().opener().open(call.session.id(), asked, image);
        if (answer.outcome == Opener::Outcome::kNoWorker)
            return refuse(call, answer.reason, jit, CUDA_ERROR_OPERATING_SYSTEM);
        if (answer.outcome == Opener::Outcome::kLost)
            return refuse(call, answer.reason, jit, CUDA_ERROR_INVALID_IMAGE);
        *opened = std::move(answer.opened);
    }
    return opened->problem.empty() ? CUDA_SUCCESS
                                   : refuse(call, opened->problem, nullptr, CUDA_ERROR_INVALID_IMAGE);
}

}  // namespace

int architecture_of(const Call& call) { return server::architecture_of(call.session.device()); }

namespace {

CUresult open_image(Call& call, const jit::OpenOrder& asked, std::string_view image, JitOptions* jit,
                    jit::Opened* opened) {
    const CUresult status = open_as(call, asked, image, jit, opened);
    if (status == CUDA_SUCCESS && opened->printing.all)
        call.session.note("all kernels of an image are taken for kernels that print: " +
                          opened->printing.why);
    return status;
}

}  // namespace

CUresult open(Call& call, std::string_view image, JitOptions* jit, jit::Opened* opened) {
    return open_image(call, order_to_open(call.session), image, jit, opened);
}

CUresult open_given(Call& call, std::string_view image, JitOptions* jit, jit::Opened* opened) {
    jit::OpenOrder asked = order_to_open(call.session);
    asked.fences = call.session.fence() != nullptr;
    const CUresult status = open_image(call, asked, image, jit, opened);
    return status == CUDA_ERROR_INVALID_IMAGE && asked.fences ? CUDA_ERROR_NOT_SUPPORTED : status;
}

CUresult open_link_input(Call& call, std::string_view input, JitOptions& jit, jit::Opened* opened) {
    jit::OpenOrder asked = order_to_open(call.session);
    asked.links = true;
    asked.prints = false;
    return open_as(call, asked, input, &jit, opened);
}

CUresult take_code(Call& call, jit::Opened& opened, std::vector<char>& image) {
    if (call.session.device().properties().keeps_sessions_apart && opened.doors.empty())
        return CUDA_SUCCESS;  // it chooses for itself
    if (opened.code == jit::Code::kNone) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    const std::string_view code = jit::code_of(opened, {image.data(), image.size()});
    if (opened.unpacked.empty() && code.size() == image.size()) return CUDA_SUCCESS;
    std::vector<char> taken;
    taken.reserve(code.size() + 1);  // the driver reads text up to its NUL
    taken.assign(code.begin(), code.end());
    image = std::move(taken);
    std::string().swap(opened.unpacked);
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server::handlers
