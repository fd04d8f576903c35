// The linker. Its inputs are uploaded like images. The linked image is copied back into memory that the link
// state owns, as in the driver. Log buffers and sizes are those passed to cuLinkCreate; they are updated
// after each call.
#include <cstdlib>
#include <cstring>

#include "driver.gen.h"
#include "interpose/driver/image.h"
#include "interpose/driver/lock.h"
#include "interpose/driver/refuse.h"
#include "runtime/protocol/layout.h"
#include "runtime/protocol/try.h"

namespace smt::interpose {

using namespace protocol;

namespace {

struct LinkState {
    LinkState* next;
    Session* session;
    uint64_t handle;  // that server's handle, which the application holds
    JitOptions jit;
    char* image;  // result of cuLinkComplete
};

// All link states of the process. The lock guards the list. A state belongs to the thread that uses it; the
// application must serialise its use.
constinit LinkState* link_states = nullptr;
constinit pthread_mutex_t link_lock = PTHREAD_MUTEX_INITIALIZER;

bool is(const LinkState& state, CUlinkState handle) {
    return state.session == thread_session && state.handle == reinterpret_cast<uint64_t>(handle);
}

LinkState* find_link(CUlinkState handle) {
    Lock lock(link_lock);
    LinkState* state = link_states;
    while (state && !is(*state, handle)) state = state->next;
    return state;
}

LinkState* take_link(CUlinkState handle) {
    Lock lock(link_lock);
    for (LinkState** at = &link_states; *at; at = &(*at)->next) {
        LinkState* state = *at;
        if (!is(*state, handle)) continue;
        *at = state->next;
        return state;
    }
    return nullptr;
}

void free_link(LinkState* state) {
    if (!state) return;
    std::free(state->image);
    std::free(state);
}

// Waits for a call that replies with LinkResult and the logs.
CUresult finish(RemoteCall& call, LinkState& state, LinkResult& result) {
    CUresult status = call.wait();
    if (call.reply().left() < sizeof(LinkResult)) return status == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : status;
    call.out(&result);
    const char* info = call.reply().take(result.log_bytes);
    const char* error = call.reply().take(result.error_log_bytes);
    state.jit.answer(info, info ? result.log_bytes : 0, error, error ? result.error_log_bytes : 0,
                     result.wall_time_ms);
    return status;
}

CUresult add_input(CUlinkState handle, CUjitInputType type, const void* data, uint64_t bytes,
                   const char* name, unsigned int option_count, CUjit_option* options, void** values) {
    LinkState* state = find_link(handle);
    if (!state) return CUDA_ERROR_INVALID_HANDLE;
    JitOptions jit;
    SMT_TRY(jit.read(option_count, options, values));
    SMT_TRY(upload(data, bytes));
    uint64_t name_bytes = name ? std::strlen(name) + 1 : 0;
    uint64_t options_bytes = jit.count() * sizeof(JitOption);
    if (name_bytes > kMaxRecordBytes / 2) return CUDA_ERROR_INVALID_VALUE;
    RemoteCall call(Op::kLinkAdd, sizeof(LinkAdd) + name_bytes + options_bytes + 16);
    if (!call.open()) return call.status();
    call.in(LinkAdd{state->handle, static_cast<uint32_t>(type), jit.count(),
                    static_cast<uint32_t>(name_bytes), 0});
    if (name_bytes) call.in_bytes(name, name_bytes);
    if (options_bytes) call.in_bytes(jit.scalars(), options_bytes);
    LinkResult result{};
    return finish(call, *state, result);
}

// Copies the finished image, piece by piece.
CUresult download(char* to, uint64_t bytes) {
    constexpr uint64_t kPiece = kReplyBytes / 2;
    for (uint64_t at = 0; at < bytes;) {
        uint64_t part = bytes - at < kPiece ? bytes - at : kPiece;
        RemoteCall call(Op::kDownload, sizeof(Download));
        if (!call.open()) return call.status();
        call.in(Download{at, part});
        SMT_TRY(call.wait());
        const char* from = call.reply().take(part);
        if (!from) return CUDA_ERROR_UNKNOWN;
        std::memcpy(to + at, from, part);
        at += part;
    }
    return CUDA_SUCCESS;
}

}  // namespace

namespace driver {

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option* options, void** optionValues,
                         CUlinkState* stateOut) {
    if (!stateOut) return CUDA_ERROR_INVALID_VALUE;
    auto* state = static_cast<LinkState*>(std::malloc(sizeof(LinkState)));
    if (!state) return CUDA_ERROR_OUT_OF_MEMORY;
    *state = LinkState{};
    state->session = thread_session;
    CUresult status = state->jit.read(numOptions, options, optionValues);
    if (status == CUDA_SUCCESS) {
        const JitOptions& jit = state->jit;
        RemoteCall call(Op::kLinkCreate, sizeof(LinkCreate) + jit.count() * sizeof(JitOption));
        if (call.open()) {
            call.in(LinkCreate{jit.count(), jit.log_bytes(), jit.error_log_bytes(), 0});
            if (jit.count()) call.in_bytes(jit.scalars(), jit.count() * sizeof(JitOption));
        }
        status = call.wait();
        if (status == CUDA_SUCCESS) call.out(&state->handle);
    }
    if (status != CUDA_SUCCESS) {
        free_link(state);
        return status == CUDA_ERROR_NOT_SUPPORTED ? refuse("cuLinkCreate_v2") : status;
    }
    *stateOut = reinterpret_cast<CUlinkState>(state->handle);
    Lock lock(link_lock);
    state->next = link_states;
    link_states = state;
    return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                          unsigned int numOptions, CUjit_option* options, void** optionValues) {
    if (!data || !size) return CUDA_ERROR_INVALID_VALUE;
    return add_input(state, type, data, size, name, numOptions, options, optionValues);
}

// The file is the application's, so its contents are sent, under its name.
CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int numOptions,
                          CUjit_option* options, void** optionValues) {
    if (!path) return CUDA_ERROR_INVALID_VALUE;
    char* data = nullptr;
    uint64_t bytes = 0;
    SMT_TRY(read_file(path, data, bytes));
    uint64_t terminator = type == CU_JIT_INPUT_PTX ? 1 : 0;
    CUresult status =
        add_input(state, type, data, bytes + terminator, path, numOptions, options, optionValues);
    std::free(data);
    return status;
}

CUresult cuLinkComplete(CUlinkState state, void** cubinOut, size_t* sizeOut) {
    LinkState* link = find_link(state);
    if (!link) return CUDA_ERROR_INVALID_HANDLE;
    if (!cubinOut) return CUDA_ERROR_INVALID_VALUE;
    LinkResult result{};
    {
        RemoteCall call(Op::kLinkComplete, sizeof(uint64_t));
        if (!call.open()) return call.status();
        call.in(link->handle);
        SMT_TRY(finish(call, *link, result));
    }
    auto* image = static_cast<char*>(std::malloc(result.image_bytes + 1));
    if (!image) return CUDA_ERROR_OUT_OF_MEMORY;
    if (CUresult status = download(image, result.image_bytes)) return std::free(image), status;
    std::free(link->image);
    link->image = image;
    *cubinOut = image;
    if (sizeOut) *sizeOut = result.image_bytes;
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
    LinkState* link = take_link(state);
    if (!link) return CUDA_ERROR_INVALID_HANDLE;
    RemoteCall call(Op::kLinkDestroy, sizeof(uint64_t));
    if (call.open()) call.in(link->handle);
    CUresult status = call.wait();
    free_link(link);
    return status;
}

}  // namespace driver

}  // namespace smt::interpose
