// opened FILE...: loads each image and gives it to the linker, and prints what came of it: both errors'
// numbers and the first line of the load's error log. After each an image that is no file's must load.
#include <fstream>
#include <iterator>
#include <string>

#include "program.h"

namespace {

constexpr char kGood[] = "FAKE\nkernel scale params 8,4\n";

CUresult load(const char* image, char* log, size_t log_bytes) {
    CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(log_bytes)};
    CUmodule module = nullptr;
    const CUresult status = cuModuleLoadDataEx(&module, image, 2, names, values);
    if (status == CUDA_SUCCESS) CHECK(cuModuleUnload(module));
    return status;
}

CUresult add_to_link(const std::string& image) {
    CUlinkState state = nullptr;
    CHECK(cuLinkCreate(0, nullptr, nullptr, &state));
    const CUresult status = cuLinkAddData(state, CU_JIT_INPUT_FATBINARY, const_cast<char*>(image.data()),
                                          image.size(), "image", 0, nullptr, nullptr);
    CHECK(cuLinkDestroy(state));
    return status;
}

}  // namespace

int main(int count, char** files) {
    preload::start();
    for (int i = 1; i < count; ++i) {
        std::ifstream file(files[i], std::ios::binary);
        const std::string image{std::istreambuf_iterator<char>(file), {}};
        char log[1024] = {};
        std::printf("%d ", load(image.c_str(), log, sizeof log));
        std::printf("%d ", add_to_link(image));
        std::printf("%s\n", std::string(log, 0, std::string(log).find('\n')).c_str());
        REQUIRE(load(kGood, log, sizeof log) == CUDA_SUCCESS);
    }
    return 0;
}
