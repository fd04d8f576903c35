// The linker: inputs come through the lane's upload buffer, the image leaves through its download
// buffer. Every answer carries what stands in the logs by then.
#include "runtime/protocol/try.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/handlers/code/machine_code.h"
#include "runtime/server/handlers/code/opening.h"
#include "runtime/server/handlers/handlers.h"
#include "runtime/server/lane.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

namespace {

const protocol::JitOption* take_options(Call& call, uint32_t count) {
    return reinterpret_cast<const protocol::JitOption*>(
        call.in.take(uint64_t{count} * sizeof(protocol::JitOption)));
}

void answer(Call& call, const JitOptions& options, uint64_t image_bytes) {
    call.out.scalar(protocol::LinkResult{image_bytes, options.log_bytes(), options.error_log_bytes(),
                                         options.wall_time_ms(), 0});
    call.out.bytes(options.log(), options.log_bytes());
    call.out.bytes(options.error_log(), options.error_log_bytes());
}

// All inputs of a state go to the worker's linker, or all to the driver's.
bool is_for_worker(Call& call, CUlinkState state, std::string_view input, const jit::Opened& opened) {
    Links& links = call.session.code().links();
    if (links.has_inputs(state)) return !links.given_to_driver(state);
    return worker_makes_machine_code(call) && !links.given_to_driver(state) && is_link_input(input, opened);
}

CUresult add_to_driver(Call& call, CUlinkState state) {
    Links& links = call.session.code().links();
    links.give_to_driver(state);
    for (jit::Input& input : links.inputs(state)) {
        CUresult status =
            call.driver.cuLinkAddData_v2(state, static_cast<CUjitInputType>(input.type), input.data.data(),
                                         input.data.size(), input.name.c_str(), 0, nullptr, nullptr);
        if (status != CUDA_SUCCESS) return status;
    }
    return CUDA_SUCCESS;
}

}  // namespace

CUresult handle_link_create(Call& call) {
    auto request = call.in.scalar<protocol::LinkCreate>();
    auto* list = take_options(call, request.jit_option_count);
    if (!call.in.good()) return CUDA_ERROR_INVALID_VALUE;
    auto options = std::make_shared<JitOptions>();
    if (!options->read(list, request.jit_option_count, request.log_bytes, request.error_log_bytes))
        return CUDA_ERROR_INVALID_VALUE;
    CUlinkState state = nullptr;
    SMT_TRY(call.session.code().links().create(std::move(options), &state));
    call.adopt(HandleKind::kLink, state);
    call.out.scalar(reinterpret_cast<uint64_t>(state));
    return CUDA_SUCCESS;
}

CUresult handle_link_add(Call& call) {
    auto request = call.in.scalar<protocol::LinkAdd>();
    const char* name = request.name_bytes ? call.in.take(request.name_bytes) : nullptr;
    auto* list = take_options(call, request.jit_option_count);
    if (!call.in.good() || (name && name[request.name_bytes - 1] != 0)) return CUDA_ERROR_INVALID_VALUE;
    auto state = reinterpret_cast<CUlinkState>(request.state);
    call.uses.add(HandleKind::kLink, state);
    SMT_TRY(call.uses.begin());
    JitOptionsPointer logs = call.session.code().links().find(state);
    JitOptions options;
    if (!logs || !options.read(list, request.jit_option_count, 0, 0)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<char> input = std::move(call.lane.upload());
    call.lane.upload().clear();
    const Charge upload = std::move(call.lane.upload_charge());
    if (input.empty()) return CUDA_ERROR_INVALID_VALUE;
    size_t bytes = input.size();
    jit::Opened opened;
    CUresult status = open_link_input(call, {input.data(), bytes}, *logs, &opened);
    if (status != CUDA_SUCCESS) return status;
    if (is_for_worker(call, state, {input.data(), bytes}, opened)) {
        jit::Input ours{request.type, 0, bytes, name ? name : "", std::string(input.data(), bytes)};
        status = to_link_input(call, opened, ours, *logs, options);
        if (status == CUDA_SUCCESS && !call.session.code().links().add(state, std::move(ours)))
            status = CUDA_ERROR_OUT_OF_MEMORY;
        return answer(call, *logs, 0), status;
    }
    call.session.code().links().give_to_driver(state);
    input.push_back(0);  // the driver reads text up to its NUL
    status = call.driver.cuLinkAddData_v2(state, static_cast<CUjitInputType>(request.type), input.data(),
                                          bytes, name, options.count(), options.names(), options.values());
    answer(call, *logs, 0);
    return status;
}

CUresult handle_link_complete(Call& call) {
    CUlinkState state = nullptr;
    if (!decode(call, state)) return CUDA_ERROR_INVALID_VALUE;
    call.uses.add(HandleKind::kLink, state);
    SMT_TRY(call.uses.begin());
    JitOptionsPointer logs = call.session.code().links().find(state);
    if (!logs) return CUDA_ERROR_INVALID_VALUE;
    void* image = nullptr;
    size_t bytes = 0;
    std::vector<char>& download = call.lane.download();
    download.clear();
    Links& links = call.session.code().links();
    CUresult status = CUDA_SUCCESS;
    if (links.has_inputs(state) && !links.given_to_driver(state)) {
        bool missing = false;
        status = link_inputs(call, links.inputs(state), *logs, &download, &missing);
        if (!missing) return answer(call, *logs, download.size()), status;
        call.session.note(
            "the driver links: there is no nvJitLink for the compile worker (nvjitlink in SMT_COMPILE)");
        status = add_to_driver(call, state);
    }
    if (status == CUDA_SUCCESS) status = call.driver.cuLinkComplete(state, &image, &bytes);
    if (status == CUDA_SUCCESS) download.assign(static_cast<char*>(image), static_cast<char*>(image) + bytes);
    answer(call, *logs, download.size());
    return status;
}

CUresult handle_link_destroy(Call& call) {
    CUlinkState state = nullptr;
    if (!decode(call, state)) return CUDA_ERROR_INVALID_VALUE;
    call.uses.take(HandleKind::kLink, state);
    SMT_TRY(call.uses.begin());
    std::vector<char>().swap(call.lane.download());
    return call.session.code().links().destroy(state);
}

}  // namespace smt::runtime::server::handlers
