// serial SHARED_BYTES BLOCKS BLOCK_US LAUNCHES: launches a kernel so often, one launch after the other, each
// waited for. Its blocks take so long, one at a time: a lock keeps the others waiting. So one CTA on one
// multiprocessor gets as much done as the whole device.
#include <cstdint>
#include <cstdlib>

#include "tests/preload/program.h"

namespace {

constexpr char kSerial[] = R"(
.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 4 .b8 room[];
.visible .entry serial(.param .u64 lock, .param .u64 nanoseconds)
{
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<5>;
    mov.u32 %r0, %tid.x;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra done;
    ld.param.u64 %rd3, [lock];
    ld.param.u64 %rd0, [nanoseconds];
    cvta.to.global.u64 %rd3, %rd3;
take:
    atom.global.cas.b32 %r1, [%rd3], 0, 1;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra taken;
    nanosleep.u32 1000;
    bra take;
taken:
    mov.u64 %rd1, %globaltimer;
again:
    nanosleep.u32 1000;
    mov.u64 %rd2, %globaltimer;
    sub.s64 %rd2, %rd2, %rd1;
    setp.lt.u64 %p2, %rd2, %rd0;
    @%p2 bra again;
    atom.global.exch.b32 %r2, [%rd3], 0;
done:
    ret;
}
)";

}  // namespace

int main(int count, char** arguments) {
    REQUIRE(count == 5);
    const auto blocks = static_cast<unsigned>(std::atoi(arguments[2])),
               shared = static_cast<unsigned>(std::atoi(arguments[1]));
    uint64_t nanoseconds = std::strtoull(arguments[3], nullptr, 10) * 1000;
    preload::start();
    CUmodule module = nullptr;
    CUfunction serial = nullptr;
    CUdeviceptr lock = 0;
    CHECK(cuModuleLoadData(&module, kSerial));
    CHECK(cuModuleGetFunction(&serial, module, "serial"));
    CHECK(cuFuncSetAttribute(serial, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                             static_cast<int>(shared)));
    CHECK(cuMemAlloc(&lock, 4));
    CHECK(cuMemsetD32(lock, 0, 1));
    for (int left = std::atoi(arguments[4]); left > 0; --left) {
        void* parameters[] = {&lock, &nanoseconds};
        CHECK(cuLaunchKernel(serial, blocks, 1, 1, 32, 1, 1, shared, nullptr, parameters, nullptr));
        CHECK(cuCtxSynchronize());
    }
    CHECK(cuMemFree(lock));
    CHECK(cuModuleUnload(module));
}
