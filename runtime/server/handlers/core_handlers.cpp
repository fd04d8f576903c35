// Handlers of the session's own objects: streams, events, the context, host functions, device printf. The
// contract of a handler is in call.h.
#include <iterator>
#include <vector>

#include "coverage.gen.h"
#include "cudart_coverage.gen.h"
#include "runtime/protocol/try.h"
#include "runtime/server/call.h"
#include "runtime/server/lane.h"
#include "runtime/server/printf.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

namespace {

template <typename Request>
bool decode(Call& call, Request& request) {
    request = call.in.scalar<Request>();
    return call.in.good();
}

CUresult open_staging(Call& call) {
    CUresult status = call.lane.open_staging();
    if (status != CUDA_SUCCESS) return status;
    const Arena::Staging& staging = call.lane.staging();
    call.out.scalar(
        protocol::StagingOpened{staging.address - call.session.arena().base(), staging.first_word, 0});
    return CUDA_SUCCESS;
}

CUresult new_thread(Call& call) {
    call.lane.new_thread();
    return CUDA_SUCCESS;
}

CUresult event_create(Call& call) {
    protocol::EventCreate request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    return call.session.events().create(request.event, request.flags);
}

CUresult event_destroy(Call& call) {
    protocol::EventRef request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    return call.session.events().destroy(request.event);
}

CUresult record(Call& call, const protocol::EventRecord& request, bool* captured) {
    CUevent event = nullptr;
    CUstream stream = nullptr;
    CUresult status = call.event(request.event, &event);
    if (status == CUDA_SUCCESS) status = call.stream(request.stream, &stream);
    if (status != CUDA_SUCCESS) return status;
    *captured = call.session.streams().capturing(stream);
    status = request.flags ? call.driver.cuEventRecordWithFlags(event, stream, request.flags)
                           : call.driver.cuEventRecord(event, stream);
    if (status != CUDA_SUCCESS) return status;
    if (!*captured)
        call.session.events().recorded(event, call.lane.held(stream)->pending_wait());
    else if (request.flags & CU_EVENT_RECORD_EXTERNAL)
        call.session.graph_waits().expect_nodes();
    else
        call.session.events().recorded(event, {});
    if (*captured || !request.watched) return status;
    Stream& used = *call.lane.held(stream);
    used.in_flight.ends_at(call.session.arena().word(request.event), request.value, used.uses.load());
    // The word follows the event: a client that reads the word may query the elapsed time at once.
    return call.driver.cuStreamWriteValue64_v2(stream, call.session.arena().word_address(request.event),
                                               request.value, CU_STREAM_WRITE_VALUE_DEFAULT);
}

CUresult event_record(Call& call) {
    protocol::EventRecord request;
    if (!decode(call, request) || request.event >= protocol::kEventWords) return CUDA_ERROR_INVALID_VALUE;
    bool captured = false;
    CUresult status = record(call, request, &captured);
    // A failed record completes the word at once, else its waiters would never return.
    if (status != CUDA_SUCCESS && !captured && !call.lane.leaves_open(status))
        call.session.arena().word(request.event).store(request.value);
    return status;
}

CUresult event_synchronize(Call& call) {
    protocol::EventRef request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    CUevent event = nullptr;
    CUresult status = call.event(request.event, &event);
    if (status != CUDA_SUCCESS) return status;
    if (request.flags & protocol::kEventQueryOnly) {
        return call.driver.cuEventQuery ? call.driver.cuEventQuery(event) : CUDA_ERROR_NOT_SUPPORTED;
    }
    status = call.driver.cuEventSynchronize(event);
    call.session.device_printf().collect(call.session);
    return status;
}

CUresult event_elapsed(Call& call) {
    protocol::EventPair request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    CUevent start = nullptr;
    CUevent end = nullptr;
    CUresult status = call.event(request.start, &start);
    if (status == CUDA_SUCCESS) status = call.event(request.end, &end);
    if (status != CUDA_SUCCESS) return status;
    float milliseconds = 0;
    status = call.driver.cuEventElapsedTime_v2(&milliseconds, start, end);
    if (status == CUDA_SUCCESS) call.out.scalar(milliseconds);
    return status;
}

// Of an event that other sessions have, too. What it waits for may be work of theirs that is held back for
// this session, so this one must not count as at work meanwhile.
dispatch::WaitWord unknown_wait() {
    static const auto pending = std::make_shared<const std::atomic<uint64_t>>(1);
    return {pending, 0};
}

CUresult stream_wait_event(Call& call) {
    protocol::StreamWaitEvent request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    CUevent event = nullptr;
    StreamPointer stream;
    CUresult status = call.event(request.event, &event);
    if (status == CUDA_SUCCESS) status = call.launch_stream(request.stream, &stream);
    if (status == CUDA_SUCCESS) status = stream->guard();
    if (status != CUDA_SUCCESS) return status;
    if (request.flags & CU_EVENT_WAIT_EXTERNAL) call.session.graph_waits().expect_nodes();
    std::lock_guard lock(stream->host_function_mutex);  // the event may be one of a capture
    const dispatch::WaitWord behind =
        call.session.events().shared(event) ? unknown_wait() : call.session.events().recorded_behind(event);
    return call.session.streams().wait_event(*stream, event, request.flags, behind);
}

CUresult stream_create(Call& call) {
    protocol::StreamCreate request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    StreamPointer stream;
    const uint32_t most = call.session.server().quotas().streams;
    CUresult status = call.session.streams().create(request.flags, request.priority, most, &stream);
    if (status == CUDA_ERROR_OUT_OF_MEMORY && call.session.streams().count() >= most)
        call.session.note_quota("streams", most, settings::Id::kSessionStreams);
    if (status != CUDA_SUCCESS) return status;
    unsigned long long id = 0;
    call.driver.cuStreamGetId(stream->handle, &id);
    call.out.scalar(protocol::StreamCreated{stream->reference, stream->priority, id});
    return CUDA_SUCCESS;
}

CUresult stream_destroy(Call& call) {
    protocol::StreamRef request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    StreamPointer stream;
    SMT_TRY(call.find_stream(request.stream, &stream));
    call.session.drop_capture(stream->handle, call.uses);
    return call.session.streams().destroy(request.stream);
}

// The legacy stream is idle only if the streams that it waits for are. So the order is established first. A
// query does not count as a use of the stream.
CUresult find_ordered(Call& call, StreamPointer* stream) {
    protocol::StreamRef request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    CUresult status = call.find_stream(request.stream, stream);
    return status == CUDA_SUCCESS ? call.session.streams().order(**stream) : status;
}

CUresult stream_synchronize(Call& call) {
    StreamPointer stream;
    CUresult status = find_ordered(call, &stream);
    if (status != CUDA_SUCCESS) return status;
    status = call.session.streams().synchronize(*stream);
    call.session.device_printf().collect(call.session);
    return status;
}

CUresult stream_query(Call& call) {
    StreamPointer stream;
    CUresult status = find_ordered(call, &stream);
    return status == CUDA_SUCCESS ? call.session.streams().query(*stream) : status;
}

CUresult context_synchronize(Call& call) {
    CUresult status = call.session.streams().synchronize_all();
    call.session.device_printf().collect(call.session);
    return status;
}

CUresult context_reset(Call& call) { return call.session.reset(); }

CUresult fetch_output(Call& call) {
    // Leaves space for the array's count and its padding.
    std::vector<char> text(protocol::kReplyBytes / 2);
    size_t bytes = 0;
    bool more = call.session.take_output(text.data(), text.size(), &bytes);
    call.out.array(text.data(), bytes);
    return more ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult host_function(Call& call) {
    protocol::HostFunction request;
    if (!decode(call, request) || request.function == 0) return CUDA_ERROR_INVALID_VALUE;
    Streams& streams = call.session.streams();
    StreamPointer stream;
    CUresult status = call.find_stream(request.stream, &stream);
    if (status == CUDA_SUCCESS) status = streams.prepare(*stream);
    if (status != CUDA_SUCCESS) return status;
    call.lane.uses(*stream);
    if (streams.capturing(stream->handle)) call.session.graph_waits().expect_nodes();
    auto kind = static_cast<protocol::CallbackKind>(request.kind);
    Callbacks& callbacks = call.session.callbacks();
    std::lock_guard lock(stream->host_function_mutex);  // until then the stream does not begin to capture
    return streams.capturing(stream->handle)
               ? callbacks.capture(stream->handle, request.function, request.user_data, request.client_stream,
                                   kind)
               : callbacks.enqueue(*stream, request.function, request.user_data, request.client_stream, kind);
}

CUresult unsupported(Call& call) {
    constexpr uint32_t kDriverFunctions = std::size(kCoverage);
    uint32_t index = call.in.scalar<uint32_t>();
    if (!call.in.good() || index >= kDriverFunctions + std::size(kRuntimeCoverage))
        return CUDA_ERROR_INVALID_VALUE;
    call.session.count_unsupported(index < kDriverFunctions
                                       ? kCoverage[index].symbol
                                       : kRuntimeCoverage[index - kDriverFunctions].symbol);
    return CUDA_SUCCESS;
}

}  // namespace

Handler core_handler(protocol::Op op) {
    using protocol::Op;
    switch (op) {
        case Op::kOpenStaging:
            return open_staging;
        case Op::kNewThread:
            return new_thread;
        case Op::kEventCreate:
            return event_create;
        case Op::kEventDestroy:
            return event_destroy;
        case Op::kEventRecord:
            return event_record;
        case Op::kEventSynchronize:
            return event_synchronize;
        case Op::kEventElapsed:
            return event_elapsed;
        case Op::kStreamWaitEvent:
            return stream_wait_event;
        case Op::kStreamCreate:
            return stream_create;
        case Op::kStreamDestroy:
            return stream_destroy;
        case Op::kStreamSynchronize:
            return stream_synchronize;
        case Op::kStreamQuery:
            return stream_query;
        case Op::kContextSynchronize:
            return context_synchronize;
        case Op::kContextReset:
            return context_reset;
        case Op::kFetchOutput:
            return fetch_output;
        case Op::kHostFunction:
            return host_function;
        case Op::kUnsupported:
            return unsupported;
        default:
            return nullptr;
    }
}

}  // namespace smt::runtime::server
