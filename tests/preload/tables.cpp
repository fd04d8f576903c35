// Asks the device about a feature through a private table of the driver, as cuSPARSELt does.
#include "tests/preload/program.h"

int main() {
    preload::start();
    const CUuuid id = {{'\xcd', '\x3e', '\xa2', '\xc6', '\x70', '\x76', '\xdb', '\x4b', '\x88', '\x2e',
                        '\x52', '\xae', '\x6c', '\x2d', '\x86', '\xf7'}};
    const void* table = nullptr;
    CHECK(cuGetExportTable(&table, &id));
    const auto has = reinterpret_cast<int (*)(int, int, void*)>(
        const_cast<void*>(static_cast<const void* const*>(table)[1]));
    REQUIRE(has(0, 7, nullptr) == 0);
}
