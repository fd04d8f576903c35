#include "interpose/driver/session_work.h"

#include "driver.gen.h"
#include "interpose/driver/call_despite_error.h"
#include "interpose/driver/capture.h"
#include "interpose/driver/local_storage.h"
#include "interpose/driver/objects.h"
#include "interpose/driver/order.h"
#include "interpose/driver/ranges.h"
#include "interpose/driver/twins.h"
#include "interpose/process/session.h"
#include "interpose/transport/answers.h"
#include "interpose/transport/lane.h"
#include "interpose/transport/output.h"
#include "interpose/transport/remote_call.h"

namespace smt::interpose {

CUresult synchronize_session() {
    if (CUresult status = check_wait_for_all(); status != CUDA_SUCCESS) return status;
    if (CUresult status = order_after_all(); status != CUDA_SUCCESS) return status;
    RemoteCall call(protocol::Op::kContextSynchronize, 0);
    CUresult status = call.open() ? call.wait() : call.status();
    after_sync();
    return status == CUDA_SUCCESS ? pending_error() : status;
}

CUresult free_everything(CUcontext context) {
    drop_local_storage(context);
    if (!this_session().header()) return CUDA_SUCCESS;
    CUresult status = order_after_all();
    driver::release_memory();
    CUresult reset = call_despite_error(protocol::Op::kContextReset, status);
    forget_answers();
    forget_twins_here();
    release_all_objects();
    forget_captures();
    after_sync();
    return reset != CUDA_SUCCESS ? reset : status;
}

void destroy_streams_of(CUcontext context) {
    for_each_stream(
        [](Stream& stream, void* of) {
            if (stream.context == of) driver::cuStreamDestroy_v2(reinterpret_cast<CUstream>(&stream));
        },
        context);
}

}  // namespace smt::interpose
