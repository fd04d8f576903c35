// Stream attributes: a program sees its own priority. The driver's also depends on the tenant's.
#include "runtime/server/session.h"
#include "runtime/server/streams.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

CUresult cuStreamGetAttribute(Call& call, CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue* value) {
    if (!call.driver.cuStreamGetAttribute) return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = call.driver.cuStreamGetAttribute(stream, attribute, value);
    if (status == CUDA_SUCCESS && value && attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = call.session.streams().priority_of(stream);
    return status;
}

CUresult cuStreamSetAttribute(Call& call, CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
    if (!call.driver.cuStreamSetAttribute) return CUDA_ERROR_NOT_SUPPORTED;
    if (value && attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        return call.session.streams().set_priority(stream, value->priority);
    return call.driver.cuStreamSetAttribute(stream, attribute, value);
}

}  // namespace smt::runtime::server::served
