#include "runtime/server/handlers/code/fencing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/protocol/try.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/memory/fence.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

namespace {

CUresult unload(Call& call, uint32_t object) {
    if (const ImagePointer image = call.session.code().withdraw(object)) {
        call.session.code().unload(*image);
        if (image->managed.memory()) call.session.arena().free_host(image->managed.memory());
        if (image->moved.memory()) call.session.memory().free(image->moved.memory());
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

CUresult give_fence(Call& call, CUmodule module, uint64_t object) {
    Fence* const fence = call.session.fence();
    if (!fence) return CUDA_SUCCESS;
    CUdeviceptr constant = 0;
    size_t bytes = 0;
    SMT_TRY(call.driver.cuModuleGetGlobal_v2(&constant, &bytes, module, kFenceConstant));
    return bytes == sizeof(FenceConstant) ? fence->give_constant(constant, object) : CUDA_ERROR_INVALID_IMAGE;
}

CUresult close_fence(Call& call, Image& image, uint32_t object, std::vector<jit::FencedFunction> fenced) {
    if (!call.session.fence()) return CUDA_SUCCESS;
    if (!image.variables_stay.empty()) {
        call.session.note(
            fmt::format("an image cannot be loaded: the tenant is fenced, and the image has {}; "
                        "SMT_ISOLATION=strict takes it",
                        image.variables_stay));
        return unload(call, object);
    }
    for (const jit::FencedFunction& each : fenced)
        if (!each.reason.empty())
            call.session.note(fmt::format("{} cannot be fenced: it {}", each.name, each.reason));
    image.fenced = std::move(fenced);
    CUmodule module = nullptr;
    CUresult status = CUDA_SUCCESS;
    {
        std::lock_guard lock(image.mutex);
        status = call.session.code().module(image, &module);
    }
    if (status == CUDA_SUCCESS) status = give_fence(call, module, object);
    if (status == CUDA_SUCCESS) return status;
    call.session.note(fmt::format("an image cannot be loaded: its fence is error {} of the driver",
                                  static_cast<int>(status)));
    return unload(call, object);
}

CUresult may_launch_fenced(Call& call, const LoadedKernel& kernel) {
    if (!kernel.refused) return CUDA_SUCCESS;
    call.session.count_unsupported(kernel.refused->c_str());
    return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace smt::runtime::server::handlers
