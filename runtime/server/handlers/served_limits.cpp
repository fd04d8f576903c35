// Limits of the context: each tenant has its own view, limits.h keeps it.
#include "runtime/server/handlers/code_table.h"
#include "runtime/server/session.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

CUresult cuCtxSetLimit(Call& call, CUlimit limit, size_t value) {
    return call.session.code().limits().set(limit, value);
}

CUresult cuCtxGetLimit(Call& call, size_t* value, CUlimit limit) {
    return value ? call.session.code().limits().get(limit, value) : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace smt::runtime::server::served
