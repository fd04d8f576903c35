// Which launch stands for a fill or a copy.
#include "runtime/dispatch/moves.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <string>

namespace smt::runtime::dispatch {

namespace {

// Functions are numbered in the order in which they are asked for, from 1.
struct Planned {
    static inline std::map<std::string, uint64_t> functions;
    DriverApi driver{};
    mutable Moves moves{driver};

    Planned() {
        functions.clear();
        driver.cuModuleLoadDataEx = [](CUmodule*, const void*, unsigned, CUjit_option*, void**) {
            return CUDA_SUCCESS;
        };
        driver.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char* name) {
            *function = reinterpret_cast<CUfunction>(functions.size() + 1);
            functions[name] = functions.size() + 1;
            return CUDA_SUCCESS;
        };
        REQUIRE_FALSE(moves.loaded());
        REQUIRE(moves.load() == CUDA_SUCCESS);
        REQUIRE(moves.loaded());
    }
    // "smt_fill_16 4 of 4, 1 block"
    std::string said(CUresult status, const MoveLaunch& launch) const {
        if (status != CUDA_SUCCESS) return "none";
        for (const auto& [name, number] : functions)
            if (reinterpret_cast<CUfunction>(number) == launch.form->function)
                return name + " " + std::to_string(launch.count) + " in rows of " +
                       std::to_string(launch.width) + ", " + std::to_string(launch.blocks);
        return "?";
    }
    std::string fill(CUdeviceptr to, unsigned bytes, size_t width, size_t height, size_t pitch,
                     unsigned value = 0x1234, unsigned* filled = nullptr) const {
        CUDA_MEMSET_NODE_PARAMS node{};
        node.dst = to;
        node.elementSize = bytes;
        node.width = width;
        node.height = height;
        node.pitch = pitch;
        node.value = value;
        MoveLaunch launch;
        const CUresult status = moves.plan(node, &launch);
        if (filled) *filled = launch.value;
        return said(status, launch);
    }
    std::string copy(CUDA_MEMCPY3D node, MoveLaunch* launch) const {
        return said(moves.plan(node, [](CUdeviceptr address) { return address >= 0x1000; }, launch), *launch);
    }
};

CUDA_MEMCPY3D copy_of(CUdeviceptr to, CUdeviceptr from, size_t width, size_t height = 1) {
    CUDA_MEMCPY3D node{};
    node.srcMemoryType = node.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    node.srcDevice = from;
    node.dstDevice = to;
    node.WidthInBytes = width;
    node.Height = height;
    node.Depth = 1;
    return node;
}

}  // namespace

TEST_CASE("moves: launches are known by number, and what they touch by their parameters", "[dispatch]") {
    Planned planned;
    Moves& moves = planned.moves;
    for (uint32_t i = 0; i < Moves::kForms; ++i) {
        REQUIRE(moves.form(i));
        CHECK(moves.number(*moves.form(i)) == i);
    }
    CHECK_FALSE(moves.form(Moves::kForms));
    const ManagedFunction another;
    CHECK_FALSE(moves.number(another));

    MoveLaunch launch;
    CHECK(planned.copy(copy_of(0x2001, 0x4000, 100), &launch) == "smt_copy_1 100 in rows of 100, 1");
    const uint32_t copies = moves.number(*launch.form).value();
    auto parameters = launch.call().parameters;
    auto found = Moves::extents(copies, parameters);
    REQUIRE(found);
    CHECK((found->to.address == 0x2001 && found->to.bytes == 100));
    CHECK((found->from.address == 0x4000 && found->from.bytes == 100));

    CUDA_MEMCPY3D rows = copy_of(0x2000, 0x4000, 12, 3);  // 12 of 32 bytes, and of 64
    rows.dstPitch = 32, rows.srcPitch = 64;
    MoveLaunch box;
    planned.copy(rows, &box);
    found = Moves::extents(moves.number(*box.form).value(), box.call().parameters);
    REQUIRE(found);
    CHECK((found->to.bytes == 2 * 32 + 12 && found->from.bytes == 2 * 64 + 12));

    CUDA_MEMSET_NODE_PARAMS node{0x3000, 0, 7, 4, 1000, 1};
    MoveLaunch fill;
    REQUIRE(moves.plan(node, &fill) == CUDA_SUCCESS);
    found = Moves::extents(moves.number(*fill.form).value(), fill.call().parameters);
    REQUIRE(found);
    CHECK((found->to.address == 0x3000 && found->to.bytes == 4000 && found->from.bytes == 0));

    CHECK_FALSE(Moves::extents(Moves::kForms, parameters));
    const uint64_t wraps = ~0ull - 50;
    std::memcpy(parameters.data(), &wraps, sizeof wraps);
    CHECK_FALSE(Moves::extents(copies, parameters));
    parameters.pop_back();
    CHECK_FALSE(Moves::extents(copies, parameters));
}

TEST_CASE("moves: kernels that cannot be loaded are not tried again", "[dispatch]") {
    static int loads = 0;
    DriverApi driver{};
    driver.cuModuleLoadDataEx = [](CUmodule*, const void*, unsigned, CUjit_option*, void**) {
        ++loads;
        return CUDA_ERROR_INVALID_PTX;
    };
    Moves moves(driver);
    CHECK_FALSE(moves.failed());
    CHECK(moves.load() == CUDA_ERROR_INVALID_PTX);
    CHECK(moves.failed());
    CHECK(moves.load() == CUDA_ERROR_NOT_SUPPORTED);
    CHECK_FALSE(moves.loaded());
    CHECK(loads == 1);
}

TEST_CASE("moves: fills are made of the widest elements that fit", "[dispatch]") {
    const Planned it;
    unsigned value = 0;
    CHECK(it.fill(0x1000, 1, 64, 1, 0, 0x1234, &value) == "smt_fill_16 4 in rows of 4, 1");
    CHECK(value == 0x34343434);
    CHECK(it.fill(0x1000, 2, 64, 1, 0, 0x51234, &value) == "smt_fill_16 8 in rows of 8, 1");
    CHECK(value == 0x12341234);
    CHECK(it.fill(0x1004, 4, 64, 1, 0, 0x51234, &value) == "smt_fill_4 64 in rows of 64, 1");
    CHECK(value == 0x51234);
    CHECK(it.fill(0x1002, 1, 6, 1, 0) == "smt_fill_2 3 in rows of 3, 1");
    CHECK(it.fill(0x1001, 1, 64, 1, 0) == "smt_fill_1 64 in rows of 64, 1");
    CHECK(it.fill(0x1000, 4, 1 << 20, 1, 0) == "smt_fill_16 262144 in rows of 262144, 128");
}

TEST_CASE("moves: rows apart from each other are filled by their own elements", "[dispatch]") {
    const Planned it;
    unsigned value = 0;
    CHECK(it.fill(0x1000, 1, 64, 10, 64) == "smt_fill_16 40 in rows of 40, 1");
    CHECK(it.fill(0x1000, 1, 64, 10, 256, 0x1234, &value) == "smt_fill_1 640 in rows of 64, 1");
    CHECK((value & 0xff) == 0x34);
    CHECK(it.fill(0x1000, 4, 1000, 10, 4096) == "smt_fill_4 10000 in rows of 1000, 5");
    CHECK(it.fill(0x1000, 3, 8, 1, 0) == "none");
    CHECK(it.fill(0x1000, 1, 0, 1, 0) == "none");
    CHECK(it.fill(0x1000, 1, 1ull << 40, 1ull << 30, 1ull << 40) == "none");
}

TEST_CASE("moves: copies within device memory, by what both ends are aligned to", "[dispatch]") {
    const Planned it;
    MoveLaunch launch;
    CHECK(it.copy(copy_of(0x2000, 0x1000, 64), &launch) == "smt_copy_16 4 in rows of 4, 1");
    CHECK((launch.to == 0x2000 && launch.from == 0x1000));
    CHECK(it.copy(copy_of(0x2000, 0x1004, 64), &launch) == "smt_copy_4 16 in rows of 16, 1");
    CHECK(it.copy(copy_of(0x2000, 0x1000, 66), &launch) == "smt_copy_2 33 in rows of 33, 1");
    CUDA_MEMCPY3D rows = copy_of(0x2000, 0x1000, 32, 10);
    rows.srcPitch = 128, rows.dstPitch = 64;
    rows.srcXInBytes = 4, rows.srcY = 2, rows.dstXInBytes = 8, rows.dstY = 1;
    CHECK(it.copy(rows, &launch) == "smt_copy_4 80 in rows of 8, 1");
    CHECK((launch.from == 0x1000 + 2 * 128 + 4 && launch.to == 0x2000 + 64 + 8));
    CHECK((launch.from_pitch == 128 && launch.to_pitch == 64));
    rows.srcPitch = rows.dstPitch = 32;
    rows.srcXInBytes = rows.dstXInBytes = 0;
    CHECK(it.copy(rows, &launch) == "smt_copy_16 20 in rows of 20, 1");
}

TEST_CASE("moves: other copies have no kernel", "[dispatch]") {
    const Planned it;
    MoveLaunch launch;
    CUDA_MEMCPY3D node = copy_of(0x2000, 0x1000, 64);
    node.srcMemoryType = CU_MEMORYTYPE_HOST;
    CHECK(it.copy(node, &launch) == "none");
    node.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    CHECK(it.copy(node, &launch) == "none");
    node.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    CHECK(it.copy(node, &launch) == "smt_copy_16 4 in rows of 4, 1");
    node.srcDevice = 0x10;  // the host's
    CHECK(it.copy(node, &launch) == "none");
    node = copy_of(0x2000, 0x1000, 64, 4);
    node.Depth = 2;
    CHECK(it.copy(node, &launch) == "none");
    CHECK(it.copy(copy_of(0x2000, 0x1000, 0), &launch) == "none");
}

}  // namespace smt::runtime::dispatch
