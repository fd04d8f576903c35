#include "runtime/server/handlers/memory/constant_write.h"

#include "runtime/protocol/try.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

ConstantWrite::ConstantWrite(Call& call, CUdeviceptr* address)
    : call_(call), constant_(call.session.memory().own().constants().find(*address)) {
    if (constant_) *address += constant_->actual - constant_->given;
}

ConstantWrite::ConstantWrite(Call& call, PlannedEnd* end) : call_(call) {
    if (end->type != CU_MEMORYTYPE_DEVICE) return;
    constant_ = call.session.memory().own().constants().find(end->address);
    if (constant_) end->address += constant_->actual - constant_->given;
}

CUresult ConstantWrite::follow(Stream& stream, CUresult status) const {
    if (!constant_ || status != CUDA_SUCCESS || call_.session.streams().capturing(stream.handle))
        return status;
    SMT_TRY(call_.driver.cuMemcpyDtoDAsync_v2(constant_->copy, constant_->actual, constant_->bytes,
                                              stream.handle));
    call_.session.memory().own().constants().follow();
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server::handlers
