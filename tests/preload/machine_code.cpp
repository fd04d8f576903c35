// PTX and the linker's inputs, in a server whose driver takes cubins alone: what it refuses has come past the
// compile worker.
#include <cstring>
#include <string>

#include "program.h"

namespace {

const std::string kHead = ".version 8.0\n.target sm_90\n.address_size 64\n";
const std::string kCaller = kHead +
                            ".extern .func (.param .b32 r) twice (.param .b32 x);\n"
                            ".visible .entry k() { .reg .b32 %r<2>; { .param .b32 a, b; st.param.b32 [a], "
                            "21; call.uni (b), twice, (a); } ret; }\n";
const std::string kCallee =
    kHead +
    ".visible .func (.param .b32 r) twice (.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x];\n"
    "add.s32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }\n";

struct Logs {
    char info[4096] = {}, error[4096] = {};
    CUjit_option names[6] = {CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                             CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                             CU_JIT_LOG_VERBOSE,      CU_JIT_MAX_REGISTERS};
    void* values[6] = {info,
                       reinterpret_cast<void*>(sizeof info),
                       error,
                       reinterpret_cast<void*>(sizeof error),
                       reinterpret_cast<void*>(1),
                       reinterpret_cast<void*>(40)};
};

CUresult load(const std::string& text, Logs& logs) {
    CUmodule module = nullptr;
    CUresult status = cuModuleLoadDataEx(&module, text.c_str(), 6, logs.names, logs.values);
    if (status == CUDA_SUCCESS) CHECK(cuModuleUnload(module));
    return status;
}

void add(CUlinkState state, const std::string& text, CUresult expected = CUDA_SUCCESS) {
    REQUIRE(cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(text.c_str()), text.size() + 1, "text",
                          0, nullptr, nullptr) == expected);
}

}  // namespace

int main() {
    preload::start();
    Logs good, bad, newer, link;
    REQUIRE(load(kHead + ".visible .entry k() { ret; }\n", good) == CUDA_SUCCESS);
    REQUIRE(std::strstr(good.info, "Used") && good.error[0] == '\0');
    REQUIRE(load(kHead + ".visible .entry k() { mov.u32 %r1, 5; ret; }\n", bad) == CUDA_ERROR_INVALID_PTX);
    REQUIRE(std::strstr(bad.error, "line 4; error") && std::strstr(bad.error, "Unknown symbol '%r1'"));
    REQUIRE(load(".version 99.9\n.target sm_90\n.address_size 64\n", newer) ==
            CUDA_ERROR_UNSUPPORTED_PTX_VERSION);

    CUlinkState state = nullptr;
    void* image = nullptr;
    size_t bytes = 0;
    CHECK(cuLinkCreate(4, link.names, link.values, &state));
    add(state, kCaller);
    add(state, "// " + kCaller + " nonsense", CUDA_ERROR_INVALID_PTX);
    REQUIRE(cuLinkComplete(state, &image, &bytes) == CUDA_ERROR_UNKNOWN);
    REQUIRE(std::strstr(link.error, "Undefined reference to 'twice'"));
    add(state, kCallee);
    CHECK(cuLinkComplete(state, &image, &bytes));
    REQUIRE(bytes > 4 && std::memcmp(image, "\177ELF", 4) == 0);
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, image));
    CHECK(cuLinkDestroy(state));
    CHECK(cuModuleUnload(module));
    std::printf("right\n");
    return 0;
}
