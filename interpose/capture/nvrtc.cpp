#include "interpose/capture/nvrtc.h"

#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "interpose/capture/library.h"
#include "interpose/capture/message.h"
#include "interpose/capture/programs.h"
#include "interpose/process/image_bytes.h"
#include "runtime/settings/read.h"

namespace smt::interpose::capture {

namespace {

nvrtcResult create(const Library& real, nvrtcProgram* program, const char* text, const char* name,
                   Headers headers) {
    nvrtcResult status = real.create(program, text, name, headers.count, headers.texts, headers.names);
    if (status == kSuccess && capturing()) note_created(*program, text, name, headers);
    return status;
}

nvrtcResult destroy(const Library& real, nvrtcProgram* program) {
    if (program && capturing()) forget_program(*program);  // before another may get the same handle
    return real.destroy(program);
}

nvrtcResult add_name_expression(const Library& real, nvrtcProgram program, const char* expression) {
    nvrtcResult status = real.add_name_expression(program, expression);
    if (status == kSuccess && capturing()) note_name_expression(program, expression);
    return status;
}

nvrtcResult compile(const Library& real, nvrtcProgram program, int count, const char* const* options) {
    nvrtcResult status = real.compile(program, count, options);
    if (status == kSuccess && capturing()) note_compiled(program, count, options);
    return status;
}

// What the program will load is measured as cuModuleLoadData does it, so that both are the same bytes.
void show_image(nvrtcProgram program, Taken taken, const char* image, size_t bytes) {
    if (!image || bytes < 8) return;
    ImageBytes whole = image_bytes(image);
    if (!whole.data || whole.bytes > bytes) return;
    Bytes message;
    if (describe_image(program, taken, whole.data, whole.bytes, message)) show(message);
}

nvrtcResult get_ptx(const Library& real, nvrtcProgram program, char* image) {
    nvrtcResult status = real.get_ptx(program, image);
    size_t bytes = 0;
    if (status == kSuccess && capturing() && real.get_ptx_size(program, &bytes) == kSuccess)
        show_image(program, Taken::kPtx, image, bytes);
    return status;
}

nvrtcResult get_cubin(const Library& real, nvrtcProgram program, char* image) {
    nvrtcResult status = real.get_cubin(program, image);
    size_t bytes = 0;
    if (status == kSuccess && capturing() && real.get_cubin_size(program, &bytes) == kSuccess)
        show_image(program, Taken::kCubin, image, bytes);
    return status;
}

// The same functions in front of one library.
template <int kIndex>
struct InFrontOf {
    static nvrtcResult create(nvrtcProgram* program, const char* text, const char* name, int count,
                              const char* const* headers, const char* const* names) {
        return capture::create(library(kIndex), program, text, name, {count, headers, names});
    }
    static nvrtcResult destroy(nvrtcProgram* program) { return capture::destroy(library(kIndex), program); }
    static nvrtcResult add_name_expression(nvrtcProgram program, const char* expression) {
        return capture::add_name_expression(library(kIndex), program, expression);
    }
    static nvrtcResult compile(nvrtcProgram program, int count, const char* const* options) {
        return capture::compile(library(kIndex), program, count, options);
    }
    static nvrtcResult get_ptx(nvrtcProgram program, char* image) {
        return capture::get_ptx(library(kIndex), program, image);
    }
    static nvrtcResult get_cubin(nvrtcProgram program, char* image) {
        return capture::get_cubin(library(kIndex), program, image);
    }
};

}  // namespace

// What the program calls when it links libnvrtc.so: we stand before it in the order of the loader. Where no
// library is behind us there was none for the program either.
#define EXPORT extern "C" __attribute__((visibility("default"))) nvrtcResult
#define REAL_OR_FAIL                                                \
    const Library* real = library_for(__builtin_return_address(0)); \
    if (!real) return kInternalError

EXPORT nvrtcCreateProgram(nvrtcProgram* program, const char* text, const char* name, int count,
                          const char* const* headers, const char* const* names) {
    REAL_OR_FAIL;
    return create(*real, program, text, name, {count, headers, names});
}
EXPORT nvrtcDestroyProgram(nvrtcProgram* program) {
    REAL_OR_FAIL;
    return destroy(*real, program);
}
EXPORT nvrtcAddNameExpression(nvrtcProgram program, const char* expression) {
    REAL_OR_FAIL;
    return add_name_expression(*real, program, expression);
}
EXPORT nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
    REAL_OR_FAIL;
    return compile(*real, program, count, options);
}
EXPORT nvrtcGetPTX(nvrtcProgram program, char* image) {
    REAL_OR_FAIL;
    return get_ptx(*real, program, image);
}
EXPORT nvrtcGetCUBIN(nvrtcProgram program, char* image) {
    REAL_OR_FAIL;
    return get_cubin(*real, program, image);
}

#undef REAL_OR_FAIL
#undef EXPORT

bool capturing() {
    static constinit std::atomic<int> known{-1};
    int value = known.load(std::memory_order_relaxed);
    if (value < 0) {
        value = settings::flag_of(settings::Id::kCapture);
        known.store(value, std::memory_order_relaxed);
    }
    return value != 0;
}

void* captured_function(const char* name, int index) {
    static_assert(kLibraries == 4);
#define ROW(function, exported)                                                                 \
    {                                                                                           \
        #exported, {                                                                            \
            reinterpret_cast<void*>(exported), reinterpret_cast<void*>(InFrontOf<0>::function), \
                reinterpret_cast<void*>(InFrontOf<1>::function),                                \
                reinterpret_cast<void*>(InFrontOf<2>::function),                                \
                reinterpret_cast<void*>(InFrontOf<3>::function)                                 \
        }                                                                                       \
    }
    static const struct {
        const char* name;
        void* functions[1 + kLibraries];
    } rows[] = {
        ROW(create, nvrtcCreateProgram),
        ROW(destroy, nvrtcDestroyProgram),
        ROW(add_name_expression, nvrtcAddNameExpression),
        ROW(compile, nvrtcCompileProgram),
        ROW(get_ptx, nvrtcGetPTX),
        ROW(get_cubin, nvrtcGetCUBIN),
    };
#undef ROW
    for (const auto& row : rows) {
        if (strcmp(row.name, name) == 0) return row.functions[1 + index];
    }
    return nullptr;
}

}  // namespace smt::interpose::capture
