// Residency against NVIDIA's own calculator, and the machine against both.
#include <cuda_occupancy.h>

#include <catch2/catch.hpp>

#include "tests/simulated/script.h"

using namespace smt::tests;

namespace {

cudaOccDeviceProp h200() {
    cudaOccDeviceProp device;
    device.computeMajor = 9;
    device.computeMinor = 0;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = 2048;
    device.regsPerBlock = 65536;
    device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 48 << 10;
    device.sharedMemPerMultiprocessor = 228 << 10;
    device.numSms = 132;
    device.sharedMemPerBlockOptin = 227 << 10;
    device.reservedSharedMemPerBlock = 1 << 10;
    return device;
}

int reference(const BlockNeeds& needs, uint32_t static_shared) {
    cudaOccDeviceProp device = h200();
    cudaOccFuncAttributes function;
    function.maxThreadsPerBlock = 1024;
    function.numRegs = static_cast<int>(needs.registers);
    function.sharedSizeBytes = static_shared;
    function.partitionedGCConfig = PARTITIONED_GC_OFF;
    function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    function.maxDynamicSharedSizeBytes = needs.shared_bytes - static_shared;
    function.numBlockBarriers = static_cast<int>(needs.barriers);
    cudaOccDeviceState state;
    cudaOccResult result{};
    const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state,
                                                                       static_cast<int>(needs.threads),
                                                                       needs.shared_bytes - static_shared);
    REQUIRE(error == CUDA_OCC_SUCCESS);
    return result.activeBlocksPerMultiprocessor;
}

// How many blocks the machine's multiprocessor really holds at once.
uint32_t most_resident(const BlockNeeds& needs) {
    Machine machine({.multiprocessors = 1});
    auto grid = script("resident", 40, needs, repeat(20, {{.unit = Unit::kSpecial, .writes = {1}}}));
    machine.launch(grid);
    run(machine);
    return grid->result.most_resident[0];
}

}  // namespace

TEST_CASE("residency is the occupancy calculator's", "[occupancy]") {
    int combinations = 0, different = 0;
    for (const uint32_t threads :
         {1u, 32u, 33u, 64u, 96u, 128u, 160u, 192u, 256u, 288u, 384u, 512u, 640u, 768u, 1000u, 1024u}) {
        for (const uint32_t registers :
             {8u, 16u, 24u, 32u, 40u, 48u, 56u, 64u, 72u, 96u, 128u, 168u, 200u, 255u}) {
            for (const uint32_t shared :
                 {0u, 1u, 1024u, 5000u, 16384u, 49152u, 65536u, 100000u, 115712u, 232448u}) {
                const BlockNeeds needs{threads, registers, shared, threads % 7 == 0 ? 16u : 1u};
                CAPTURE(threads, registers, shared);
                const auto blocks = static_cast<int>(blocks_per_multiprocessor(needs));
                if (blocks != reference(needs, shared < 49152 ? shared / 2 : 0)) ++different;
                CHECK(blocks == reference(needs, shared < 49152 ? shared / 2 : 0));
                ++combinations;
            }
        }
    }
    CHECK(combinations == 16 * 14 * 10);
    CHECK(different == 0);
}

TEST_CASE("the machine holds as many blocks as the calculator says", "[occupancy]") {
    int combinations = 0;
    for (const uint32_t threads : {32u, 96u, 128u, 256u, 320u, 512u, 1024u}) {
        for (const uint32_t registers : {16u, 32u, 48u, 64u, 128u, 255u}) {
            for (const uint32_t shared : {0u, 3000u, 49152u}) {
                const BlockNeeds needs{threads, registers, shared, 1};
                CAPTURE(threads, registers, shared);
                const int blocks = reference(needs, 0);
                if (blocks == 0) continue;
                CHECK(static_cast<int>(most_resident(needs)) == blocks);
                ++combinations;
            }
        }
    }
    CHECK(combinations >= 30);
}

TEST_CASE("what no multiprocessor can hold is refused", "[occupancy]") {
    CHECK_FALSE(BlockNeeds{1025, 32, 0, 1}.possible());
    CHECK_FALSE(BlockNeeds{1024, 65, 0, 1}.possible());
    CHECK_FALSE(BlockNeeds{32, 256, 0, 1}.possible());
    CHECK_FALSE(BlockNeeds{32, 32, (227u << 10) + 1, 1}.possible());
    CHECK(BlockNeeds{1024, 64, 227u << 10, 1}.possible());
}
