// beside few|many THREADS SHARED_BYTES BLOCKS BLOCK_US LAUNCHES: launches a kernel of that name so often, one
// launch after the other, each waited for. Its blocks are there for so long and do nothing, so that two
// kernels disturb each other by nothing but the room that they take.
#include <cstdint>
#include <cstdlib>

#include "tests/preload/program.h"
#include "tests/simulated/programs/spending.h"

int main(int count, char** arguments) {
    REQUIRE(count == 7);
    const auto number = [&](int i) { return static_cast<unsigned>(std::strtoul(arguments[i], nullptr, 10)); };
    const unsigned shared = number(3);
    uint64_t nanoseconds = 1000ull * number(5);
    preload::start();
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    const std::string image = spending::image_of({{"few", "", 5000}, {"many", "", 5000}});
    CHECK(cuModuleLoadData(&module, image.c_str()));
    CHECK(cuModuleGetFunction(&kernel, module, arguments[1]));
    CHECK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                             static_cast<int>(shared)));
    for (unsigned i = number(6); i > 0; --i) {
        void* parameters[] = {&nanoseconds};
        CHECK(cuLaunchKernel(kernel, number(4), 1, 1, number(2), 1, 1, shared, nullptr, parameters, nullptr));
        CHECK(cuCtxSynchronize());
    }
    std::printf("%u launches\n", number(6));
}
