// A launch's parameters with a door behind them, and what launch attributes say of its units.
#include "runtime/server/handlers/code/launch_parameters.h"

#include <catch2/catch.hpp>
#include <new>
#include <string>
#include <vector>

#include "runtime/server/handlers/code/launch_attributes.h"

namespace smt::runtime::server::handlers {

namespace {

// Parameters of those sizes, one behind the other; the door behind them at a multiple of 16.
void describe_parameters(LoadedKernel& kernel, std::initializer_list<uint32_t> sizes, bool door) {
    for (const uint32_t bytes : sizes) {
        kernel.parameters.push_back({kernel.parameter_bytes, bytes});
        kernel.parameter_bytes += bytes;
    }
    kernel.door = {door, (kernel.parameter_bytes + 15) / 16 * 16, false};
}

std::string own_bytes(const LoadedKernel& kernel) {
    std::string bytes;
    for (uint32_t i = 0; i < kernel.parameter_bytes; ++i) bytes += static_cast<char>('a' + i % 26);
    return bytes;
}

std::string buffer_of(void** data) {
    REQUIRE(data[0] == CU_LAUNCH_PARAM_BUFFER_POINTER);
    REQUIRE(data[2] == CU_LAUNCH_PARAM_BUFFER_SIZE);
    REQUIRE(data[4] == CU_LAUNCH_PARAM_END);
    return {static_cast<const char*>(data[1]), *static_cast<size_t*>(data[3])};
}

// Where there were other bytes before, as on a stack.
struct DirtyBuffer {
    DirtyBuffer(const LoadedKernel& kernel, char* own) : memory(::operator new(sizeof(ParameterBuffer))) {
        volatile char* const bytes = static_cast<char*>(memory);
        for (size_t i = 0; i < sizeof(ParameterBuffer); ++i) bytes[i] = '\xa5';
        buffer = new (memory) ParameterBuffer(kernel, own);
    }
    ~DirtyBuffer() {
        buffer->~ParameterBuffer();
        ::operator delete(memory);
    }
    DirtyBuffer(const DirtyBuffer&) = delete;

    void* memory;
    ParameterBuffer* buffer;
};

CUlaunchAttribute sized_attribute(CUlaunchAttributeID id, unsigned x, unsigned y, unsigned z) {
    CUlaunchAttribute attribute{};
    attribute.id = id;
    attribute.value.clusterDim.x = x;
    attribute.value.clusterDim.y = y;
    attribute.value.clusterDim.z = z;
    return attribute;
}

}  // namespace

TEST_CASE("a kernel without a door gets the program's parameters, where they are") {
    LoadedKernel kernel;
    describe_parameters(kernel, {8, 4}, false);
    std::string own = own_bytes(kernel);
    ParameterBuffer buffer(kernel, own.data());
    CHECK(buffer.data()[1] == own.data());
    CHECK(buffer_of(buffer.data()) == own);
    ParameterList list(kernel, own.data());
    CHECK(list.data()[0] == own.data());
    CHECK(list.data()[1] == own.data() + 8);

    const LoadedKernel none;
    CHECK(ParameterBuffer(none, nullptr).data() == nullptr);
}

TEST_CASE("behind the program's parameters a kernel with a door gets zeros") {
    for (const std::initializer_list<uint32_t>& sizes :
         {std::initializer_list<uint32_t>{}, {8, 4}, {16}, {4096}, {4, 4100}, {8, 4292}}) {
        LoadedKernel kernel;
        describe_parameters(kernel, sizes, true);
        INFO(kernel.parameter_bytes << " bytes");
        std::string own = own_bytes(kernel);
        const std::string before = own;
        const DirtyBuffer dirty(kernel, own.data());
        ParameterBuffer& buffer = *dirty.buffer;
        const std::string expected =
            own + std::string(kernel.door.offset - own.size() + sizeof(smt::DoorLaunch), '\0');
        REQUIRE(buffer.data());
        CHECK(buffer_of(buffer.data()) == expected);
        ParameterList list(kernel, own.data());
        for (size_t i = 0; i < sizes.size(); ++i)
            CHECK(list.data()[i] == own.data() + kernel.parameters[i].offset);
        const std::string door(static_cast<char*>(list.data()[sizes.size()]), sizeof(smt::DoorLaunch));
        CHECK(door == std::string(sizeof(smt::DoorLaunch), '\0'));
        CHECK(own == before);
    }
}

TEST_CASE("a unit of the door is a cluster of the launch, else of the kernel") {
    using Attributes = std::vector<CUlaunchAttribute>;
    constexpr auto kCluster = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    const auto blocks = [](const Attributes& attributes, uint32_t own) {
        return cluster_blocks(attributes.data(), attributes.size(), own);
    };
    CHECK(blocks({}, 1) == 1);
    CHECK(blocks({}, 4) == 4);
    CHECK(blocks({sized_attribute(kCluster, 2, 3, 1)}, 1) == 6);
    CHECK(blocks({sized_attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY, 2, 3, 1)}, 1) == 1);
    CHECK(blocks({sized_attribute(kCluster, 0, 3, 1)}, 1) == 0);
    CHECK(blocks({sized_attribute(kCluster, 1u << 16, 1u << 16, 1)}, 1) == 0);
    CHECK(blocks({sized_attribute(kCluster, ~0u, ~0u, ~0u)}, 1) == 0);
    CHECK(blocks({sized_attribute(kCluster, (1u << 31) + 1, 4, 1)}, 1) == 0);  // 4, in 32 bits
    // Its clusters are numbered in two ways.
    CHECK(blocks({sized_attribute(kCluster, 2, 1, 1),
                  sized_attribute(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, 4, 1, 1)},
                 1) == 0);
}

}  // namespace smt::runtime::server::handlers
