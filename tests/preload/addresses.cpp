// addresses ADDRESS...: calls that name memory of other sessions and of the server are refused, whatever
// carries the address; calls that name memory of this session are not. The addresses are hexadecimal; that of
// the words which the server keeps in the session's own arena is one more.
#include <cinttypes>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/protocol/layout.h"
#include "tests/preload/program.h"

namespace {

constexpr char kImage[] = "FAKE\nkernel fill params 8,4,4\nglobal table 4096\n";
constexpr size_t kBytes = 64;

CUcontext context;
CUstream stream;
CUdeviceptr mine;

// The error of a call that does not wait comes with the next one.
CUresult settle(CUresult status) {
    const CUresult later = cuStreamSynchronize(stream);
    return status != CUDA_SUCCESS ? status : later;
}

CUDA_MEMSET_NODE_PARAMS bytes_at(CUdeviceptr address) {
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.dst = address;
    fill.elementSize = 1;
    fill.width = kBytes;
    fill.height = 1;
    return fill;
}

CUresult set_in_graph(CUdeviceptr address, bool executable) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUgraphNode node = nullptr;
    CUDA_MEMSET_NODE_PARAMS good = bytes_at(mine), other = bytes_at(address);
    CHECK(cuGraphCreate(&graph, 0));
    CHECK(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &good, context));
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    const CUresult status = executable ? cuGraphExecMemsetNodeSetParams(exec, node, &other, context)
                                       : cuGraphMemsetNodeSetParams(node, &other);
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
    return status;
}

CUresult add_to_graph(const std::function<CUresult(CUgraph, CUgraphNode*)>& add) {
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CHECK(cuGraphCreate(&graph, 0));
    const CUresult status = add(graph, &node);
    CHECK(cuGraphDestroy(graph));
    return status;
}

CUresult batch(CUdeviceptr address) {
    CUstreamBatchMemOpParams operation{};
    operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operation.writeValue.address = address;
    return settle(cuStreamBatchMemOp(stream, 1, &operation, 0));
}

CUresult texture(CUdeviceptr address) {
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear = {address, CU_AD_FORMAT_FLOAT, 1, kBytes};
    CUDA_TEXTURE_DESC how{};
    CUtexObject object = 0;
    CUresult status = cuTexObjectCreate(&object, &resource, &how, nullptr);
    if (status == CUDA_SUCCESS) status = cuTexObjectDestroy(object);
    return status;
}

CUresult copy_node(CUdeviceptr address) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = mine;
    copy.dstDevice = address;
    copy.WidthInBytes = kBytes;
    copy.Height = copy.Depth = 1;
    return add_to_graph([&](CUgraph graph, CUgraphNode* node) {
        return cuGraphAddMemcpyNode(node, graph, nullptr, 0, &copy, context);
    });
}

CUresult memset_node(CUdeviceptr address) {
    CUDA_MEMSET_NODE_PARAMS fill = bytes_at(address);
    return add_to_graph([&](CUgraph graph, CUgraphNode* node) {
        return cuGraphAddMemsetNode(node, graph, nullptr, 0, &fill, context);
    });
}

using Carrier = std::pair<const char*, CUresult (*)(CUdeviceptr)>;
const Carrier kCarriers[] = {
    {"a fill", [](CUdeviceptr at) { return cuMemsetD8(at, 0, kBytes); }},
    {"an asynchronous fill",
     [](CUdeviceptr at) { return settle(cuMemsetD32Async(at, 0, kBytes / 4, stream)); }},
    {"a fill of rows", [](CUdeviceptr at) { return settle(cuMemsetD2D8Async(at, 32, 0, 16, 2, stream)); }},
    {"a copy to", [](CUdeviceptr at) { return settle(cuMemcpyDtoDAsync(at, mine, kBytes, stream)); }},
    {"a copy from", [](CUdeviceptr at) { return settle(cuMemcpyDtoDAsync(mine, at, kBytes, stream)); }},
    {"a value written", [](CUdeviceptr at) { return settle(cuStreamWriteValue32(stream, at, 0, 0)); }},
    {"a value waited for",
     [](CUdeviceptr at) { return settle(cuStreamWaitValue32(stream, at, 0, CU_STREAM_WAIT_VALUE_GEQ)); }},
    {"a batch of operations", batch},
    {"a texture object", texture},
    {"a node that fills", memset_node},
    {"a node's new parameters", [](CUdeviceptr at) { return set_in_graph(at, false); }},
    {"an executable node's new parameters", [](CUdeviceptr at) { return set_in_graph(at, true); }},
    {"a node that copies", copy_node},
};

void expect(CUdeviceptr address, const char* whose, CUresult expected) {
    for (const auto& [what, carry] : kCarriers) {
        const CUresult status = carry(address);
        if (status == expected) continue;
        std::fprintf(stderr, "%s at %s (%llx): error %d, not %d\n", what, whose, address,
                     static_cast<int>(status), static_cast<int>(expected));
        std::exit(1);
    }
}

CUdeviceptr arena() {
    std::FILE* maps = std::fopen("/proc/self/maps", "r");
    REQUIRE(maps != nullptr);
    char line[512];
    uint64_t start = 0;
    while (!start && std::fgets(line, sizeof line, maps))
        if (std::strstr(line, "smt-arena")) std::sscanf(line, "%" SCNx64, &start);
    std::fclose(maps);
    REQUIRE(start != 0);
    return start;
}

CUdeviceptr mapped() {
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access{};
    access.location = wanted.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUmemGenericAllocationHandle physical = 0;
    CUdeviceptr address = 0;
    const size_t bytes = 2u << 20;
    CHECK(cuMemAddressReserve(&address, bytes, 0, 0, 0));
    CHECK(cuMemCreate(&physical, bytes, &wanted, 0));
    CHECK(cuMemMap(address, bytes, 0, physical, 0));
    CHECK(cuMemSetAccess(address, bytes, &access, 1));
    return address;
}

}  // namespace

int main(int count, char** arguments) {
    context = preload::start();
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&mine, 1 << 20));
    expect(mine, "own memory", CUDA_SUCCESS);
    void* pinned = nullptr;
    CUdeviceptr managed = 0, global = 0;
    size_t bytes = 0;
    CHECK(cuMemHostAlloc(&pinned, 4096, 0));
    CHECK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    expect(reinterpret_cast<CUdeviceptr>(pinned), "pinned memory", CUDA_SUCCESS);
    expect(managed, "managed memory", CUDA_SUCCESS);
    expect(mapped(), "mapped memory", CUDA_SUCCESS);
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetGlobal(&global, &bytes, module, "table"));
    expect(global, "a variable", CUDA_SUCCESS);
    CHECK(cuModuleUnload(module));
    expect(global, "a variable that is gone", CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemsetD8Async(0, 0, 0, stream));  // nothing is touched

    expect(arena() + smt::protocol::kWordsOffset, "the server's words", CUDA_ERROR_INVALID_VALUE);
    for (int i = 1; i < count; ++i)
        expect(std::strtoull(arguments[i], nullptr, 16), "an address given", CUDA_ERROR_INVALID_VALUE);
    std::puts("refused");
}
