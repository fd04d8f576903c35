// load GOOD: loads the files whose names come in, one a line, in four ways, and says what came of each:
//
//   from a file, as a module | from a file, as a library | from memory, as a module | through the linker
//
// What loads is asked for its kernel k. Behind each file the good image is loaded and its kernel run.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "tests/preload/program.h"

namespace {

// In memory an image says itself how long it is. Behind it are zeros for as long as it may say.
constexpr size_t kWindow = (4ull << 30) + (1 << 20);

char* window() {
    static char* place = [] {
        void* got = mmap(nullptr, kWindow, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REQUIRE(got != MAP_FAILED);
        return static_cast<char*>(got);
    }();
    return place;
}

CUresult module_of(CUresult status, const CUmodule& module) {
    if (status != CUDA_SUCCESS) return status;
    CUfunction function = nullptr;
    status = cuModuleGetFunction(&function, module, "k");
    CHECK(cuModuleUnload(module));
    return status;
}

CUresult as_library(const char* path) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUresult status = cuLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (status != CUDA_SUCCESS) return status;
    status = cuLibraryGetKernel(&kernel, library, "k");
    CUfunction function = nullptr;
    if (status == CUDA_SUCCESS) status = cuKernelGetFunction(&function, kernel);
    CHECK(cuLibraryUnload(library));
    return status;
}

CUresult from_memory(const char* path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    static size_t used = 0;  // of the image before
    std::memset(window(), 0, used);
    std::memcpy(window(), bytes.data(), bytes.size());
    used = bytes.size();
    CUmodule module = nullptr;
    const CUresult status = cuModuleLoadData(&module, window());
    return module_of(status, module);
}

CUjitInputType type_of(const std::string& bytes) {
    if (bytes.starts_with("\x50\xed\x55\xba")) return CU_JIT_INPUT_FATBINARY;
    return bytes.starts_with("\177ELF") ? CU_JIT_INPUT_CUBIN : CU_JIT_INPUT_PTX;
}

CUresult linked(const char* path) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    CUlinkState state = nullptr;
    CUmodule module = nullptr;
    void* image = nullptr;
    size_t size = 0;
    CHECK(cuLinkCreate(0, nullptr, nullptr, &state));
    CUresult status =
        cuLinkAddData(state, type_of(bytes), bytes.data(), bytes.size(), "it", 0, nullptr, nullptr);
    if (status == CUDA_SUCCESS) status = cuLinkComplete(state, &image, &size);
    if (status == CUDA_SUCCESS) status = module_of(cuModuleLoadData(&module, image), module);
    CHECK(cuLinkDestroy(state));
    return status;
}

void run_good(const char* path, CUdeviceptr word) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    unsigned value = 0;
    CHECK(cuModuleLoad(&module, path));
    CHECK(cuModuleGetFunction(&function, module, "k"));
    CHECK(cuMemsetD32(word, 0, 1));
    void* parameters[] = {&word};
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(cuMemcpyDtoH(&value, word, sizeof value));
    REQUIRE(value == 1);
    CHECK(cuModuleUnload(module));
}

}  // namespace

int main(int, char** arguments) {
    preload::start();
    CUdeviceptr word = 0;
    CHECK(cuMemAlloc(&word, sizeof(unsigned)));
    for (std::string path; std::getline(std::cin, path);) {
        CUmodule module = nullptr;
        const CUresult loaded = cuModuleLoad(&module, path.c_str());
        const CUresult as_module = module_of(loaded, module);
        std::printf("%s %s %s %s\n", preload::name_of(as_module), preload::name_of(as_library(path.c_str())),
                    preload::name_of(from_memory(path.c_str())), preload::name_of(linked(path.c_str())));
        std::fflush(stdout);
        run_good(arguments[1], word);
    }
}
