// Asks the device about a feature through a private table of the driver, as cuSPARSELt does. Before, it looks
// the table's function up as a CUDA runtime does: of version 11 with an argument, else of version 12.
#include <dlfcn.h>

#include "tests/preload/program.h"

namespace {

void look_up_as_cuda_11_does() {
    using First = CUresult (*)(const char*, void**, int, cuuint64_t);
    const auto look_up = reinterpret_cast<First>(dlsym(RTLD_DEFAULT, "cuGetProcAddress"));
    void* found = nullptr;
    REQUIRE(look_up);
    for (int i = 0; i < 2; ++i) look_up("cuGetExportTable", &found, 11080, 0);
}

void look_up_as_cuda_12_does() {
    using Second = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult* found);
    const auto look_up = reinterpret_cast<Second>(dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2"));
    void* found = nullptr;
    REQUIRE(look_up);
    CHECK(look_up("cuGetExportTable", &found, 12000, 0, nullptr));
}

}  // namespace

int main(int count, char**) {
    preload::start();
    if (count > 1)
        look_up_as_cuda_11_does();
    else
        look_up_as_cuda_12_does();
    const CUuuid id = {{'\xcd', '\x3e', '\xa2', '\xc6', '\x70', '\x76', '\xdb', '\x4b', '\x88', '\x2e',
                        '\x52', '\xae', '\x6c', '\x2d', '\x86', '\xf7'}};
    const void* table = nullptr;
    CHECK(cuGetExportTable(&table, &id));
    const auto has = reinterpret_cast<int (*)(int, int, void*)>(
        const_cast<void*>(static_cast<const void* const*>(table)[1]));
    REQUIRE(has(0, 7, nullptr) == 0);
}
