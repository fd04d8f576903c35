// Handles of the server: pools, arrays, textures, user objects, functions. What a program does not own does
// not exist.
#include <unistd.h>

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "tests/preload/program.h"

constexpr uint64_t kWild = 0x1230;

void pools(CUstream stream) {
    CUmemoryPool pool = nullptr, standard = nullptr, now = nullptr;
    CHECK(cuDeviceGetDefaultMemPool(&standard, 0));
    CHECK(cuDeviceGetMemPool(&now, 0));
    REQUIRE(now == standard);
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CHECK(cuMemPoolCreate(&pool, &properties));

    cuuint64_t threshold = 1 << 20, back = 0;
    CHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &back));
    REQUIRE(back == threshold);
    int reuse[2] = {7, 7};  // this attribute is an int: the second stays
    CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, reuse));
    REQUIRE(reuse[0] == 1 && reuse[1] == 7);

    CUdeviceptr memory = 0;
    CHECK(cuDeviceSetMemPool(0, pool));
    CHECK(cuMemAllocAsync(&memory, 1 << 16, stream));
    CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &back));
    REQUIRE(back >= 1 << 16);
    CHECK(cuMemFreeAsync(memory, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemPoolDestroy(pool));
    CHECK(cuDeviceGetMemPool(&now, 0));
    REQUIRE(now == standard);
    FAILS(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_HANDLE);
}

CUarray make_array() {
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    shape.Width = 16;
    shape.Height = 8;
    shape.Format = CU_AD_FORMAT_FLOAT;
    shape.NumChannels = 1;
    CUarray array = nullptr;
    CHECK(cuArray3DCreate(&array, &shape));
    CUDA_ARRAY_DESCRIPTOR flat{};
    CHECK(cuArrayGetDescriptor(&flat, array));
    REQUIRE(flat.Width == 16 && flat.Height == 8);
    return array;
}

void arrays() {
    CUarray array = make_array();
    std::vector<float> there(128, 2.5f), back(128);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = there.data();
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.WidthInBytes = 64;
    copy.Height = 8;
    CHECK(cuMemcpy2D(&copy));
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = array;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = back.data();
    CHECK(cuMemcpy2D(&copy));
    REQUIRE(back == there);

    CUDA_RESOURCE_DESC resource{}, same{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    const CUDA_TEXTURE_DESC texture{};
    CUtexObject object = 0;
    CHECK(cuTexObjectCreate(&object, &resource, &texture, nullptr));
    CHECK(cuTexObjectGetResourceDesc(&same, object));
    REQUIRE(same.res.array.hArray == array);
    CHECK(cuTexObjectDestroy(object));
    FAILS(cuTexObjectDestroy(object), CUDA_ERROR_INVALID_HANDLE);
    resource.res.array.hArray = reinterpret_cast<CUarray>(kWild);
    FAILS(cuTexObjectCreate(&object, &resource, &texture, nullptr), CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuArrayDestroy(array));
    FAILS(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
}

void mipmapped_arrays() {
    CUDA_ARRAY3D_DESCRIPTOR shape{}, smaller{};
    shape.Width = shape.Height = 16;
    shape.Format = CU_AD_FORMAT_FLOAT;
    shape.NumChannels = 1;
    CUmipmappedArray mipmapped = nullptr;
    CUarray level = nullptr;
    CHECK(cuMipmappedArrayCreate(&mipmapped, &shape, 3));
    CHECK(cuMipmappedArrayGetLevel(&level, mipmapped, 1));
    CHECK(cuArray3DGetDescriptor(&smaller, level));
    REQUIRE(smaller.Width == 8);
    CHECK(cuMipmappedArrayDestroy(mipmapped));
}

std::atomic<int> destroyed{0};
void destroy(void* data) { destroyed = static_cast<int>(reinterpret_cast<intptr_t>(data)); }

void user_objects() {
    CUuserObject object = nullptr;
    CHECK(cuUserObjectCreate(&object, reinterpret_cast<void*>(77), destroy, 2,
                             CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CHECK(cuUserObjectRetain(object, 1));
    CHECK(cuUserObjectRelease(object, 2));
    REQUIRE(destroyed == 0);
    CHECK(cuUserObjectRelease(object, 1));
    for (int i = 0; i < 5000 && destroyed == 0; ++i) usleep(1000);
    REQUIRE(destroyed == 77);
    FAILS(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_HANDLE);
}

void values(CUstream stream) {
    CUdeviceptr memory = 0;
    CUstream other = nullptr;
    CHECK(cuMemAlloc(&memory, 64));
    CHECK(cuMemsetD8(memory, 0, 64));
    CHECK(cuCtxSynchronize());  // the other stream waits for no other
    CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CUstreamBatchMemOpParams operations[2] = {};
    operations[0].waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_64, memory, {0}, 0, 0};
    operations[0].waitValue.value64 = 3;
    operations[1].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, memory + 8, {0}, 0, 0};
    operations[1].writeValue.value = 11;
    CHECK(cuStreamBatchMemOp(stream, 2, operations, 0));
    FAILS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CHECK(cuStreamWriteValue64(other, memory, 3, 0));
    CUstreamBatchMemOpParams unaligned{};
    unaligned.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, memory + 2, {1}, 0, 0};
    CHECK(cuStreamBatchMemOp(other, 1, &unaligned, 0));  // a record, whose error comes with a later call
    FAILS(cuStreamSynchronize(other), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuStreamSynchronize(stream));
    unsigned words[4] = {};
    CHECK(cuMemcpyDtoH(words, memory, sizeof words));
    REQUIRE(words[0] == 3 && words[2] == 11);
    CHECK(cuStreamDestroy(other));
    CHECK(cuMemFree(memory));
}

// More functions than names fit in one reply of the server.
void many_functions() {
    constexpr unsigned kCount = 700;
    std::string image = "FAKE\n";
    for (unsigned i = 0; i < kCount; ++i)
        image += "kernel " + std::string(600, 'n') + std::to_string(i) + " params 4\n";
    CUmodule module = nullptr;
    CUlibrary library = nullptr;
    unsigned count = 0;
    std::vector<CUfunction> functions(kCount + 1), few(kCount - 1);
    std::vector<CUkernel> kernels(kCount);
    std::set<std::string> names;
    CHECK(cuModuleLoadData(&module, image.c_str()));
    CHECK(cuModuleGetFunctionCount(&count, module));
    REQUIRE(count == kCount);
    CHECK(cuModuleEnumerateFunctions(functions.data(), kCount + 1, module));
    REQUIRE(functions[kCount] == nullptr);
    for (unsigned i = 0; i < kCount; ++i) {
        const char* name = nullptr;
        CHECK(cuFuncGetName(&name, functions[i]));
        names.insert(name);
    }
    REQUIRE(names.size() == kCount);
    CHECK(cuModuleEnumerateFunctions(few.data(), kCount - 1, module));
    for (unsigned i = 0; i < kCount - 1; ++i) REQUIRE(few[i] == functions[i]);
    CHECK(cuModuleUnload(module));

    CHECK(cuLibraryLoadData(&library, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(cuLibraryEnumerateKernels(kernels.data(), kCount, library));
    for (CUkernel kernel : kernels) REQUIRE(kernel != nullptr);
    CHECK(cuLibraryUnload(library));
}

int main() {
    preload::start();
    CUstream stream = nullptr;
    CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    pools(stream);
    arrays();
    mipmapped_arrays();
    user_objects();
    values(stream);
    many_functions();
    CHECK(cuStreamDestroy(stream));
}
