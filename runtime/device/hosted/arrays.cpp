// Arrays are row-major host memory; mipmapped arrays a list of them; texture and surface objects
// remember their description and are good for nothing else.
#include <memory>
#include <unordered_map>

#include "runtime/device/hosted/backend.h"

namespace smt::runtime::device::hosted {

namespace {

struct Array {
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    uint64_t row_bytes = 0, rows = 0;
    std::vector<char> memory;
};
struct Mipmapped {
    std::vector<CUarray> levels;
};
struct Texture {
    CUDA_RESOURCE_DESC resource{};
    CUDA_TEXTURE_DESC texture{};
};

struct ArraysState {
    std::unordered_map<CUarray, std::unique_ptr<Array>> arrays;
    std::unordered_map<CUmipmappedArray, std::unique_ptr<Mipmapped>> mipmapped;
    std::unordered_map<uint64_t, Texture> textures;  // and surfaces
    uint64_t next_texture = 1;
};

ArraysState& arrays_state() {
    static ArraysState* state = new ArraysState;
    return *state;
}

// What block-compressed formats have for 4 x 4 texels; 0: another format.
unsigned block_bytes(CUarray_format format) {
    switch (format) {
        case CU_AD_FORMAT_BC1_UNORM:
        case CU_AD_FORMAT_BC1_UNORM_SRGB:
        case CU_AD_FORMAT_BC4_UNORM:
        case CU_AD_FORMAT_BC4_SNORM:
            return 8;
        default:
            return format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB ? 16 : 0;
    }
}

unsigned element_bytes(CUarray_format format) {
    switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
            return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
            return 2;
        default:
            return 4;
    }
}

uint64_t at_least_one(uint64_t extent) { return extent ? extent : 1; }

// A device that names no limit has none.
bool within(uint64_t extent, CUdevice_attribute which) {
    const int most = backend().attribute(which);
    return most == 0 || extent <= static_cast<uint64_t>(most);
}

bool addressable(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
    if (shape.NumChannels == 0 || shape.NumChannels > 4) return false;
    const bool layers = (shape.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    if (shape.Depth && !layers)
        return within(shape.Width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH) &&
               within(shape.Height, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT) &&
               within(shape.Depth, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH);
    if (shape.Height)
        return within(shape.Width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH) &&
               within(shape.Height, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT);
    return within(shape.Width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH);
}

// The memory goes when no copy is in it.
void destroy(std::vector<CUarray> handles) {
    std::vector<std::unique_ptr<Array>> gone;
    {
        Lock lock(world());
        for (CUarray handle : handles) {
            auto found = arrays_state().arrays.find(handle);
            if (found == arrays_state().arrays.end()) continue;
            gone.push_back(std::move(found->second));
            arrays_state().arrays.erase(found);
        }
    }
    backend().quietly([&] { gone.clear(); });
}

// Null: the device is not that large.
CUarray make_array(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
    auto array = std::make_unique<Array>();
    array->shape = shape;
    const unsigned block = block_bytes(shape.Format);
    array->rows = at_least_one(block ? (shape.Height + 3) / 4 : shape.Height);
    array->row_bytes = block ? (at_least_one(shape.Width) + 3) / 4 * block
                             : at_least_one(shape.Width) * element_bytes(shape.Format) * shape.NumChannels;
    const double bytes = 1.0 * array->row_bytes * array->rows * at_least_one(shape.Depth);
    if (shape.Width > backend().memory_bytes() || bytes > static_cast<double>(backend().memory_bytes()))
        return nullptr;
    array->memory.resize(static_cast<size_t>(bytes));
    backend().soil(array->memory.data(), array->memory.size());
    const auto handle = reinterpret_cast<CUarray>(array.get());
    arrays_state().arrays[handle] = std::move(array);
    return handle;
}

}  // namespace

// Null: the array does not have it, or is no more.
char* array_bytes(CUarray handle, uint64_t x, uint64_t y, uint64_t z, uint64_t bytes) {
    Lock lock(world());
    auto found = arrays_state().arrays.find(handle);
    if (found == arrays_state().arrays.end()) return nullptr;
    Array& array = *found->second;
    const bool inside = x <= array.row_bytes && bytes <= array.row_bytes - x && y < array.rows &&
                        z < at_least_one(array.shape.Depth);
    return inside ? array.memory.data() + (z * array.rows + y) * array.row_bytes + x : nullptr;
}

}  // namespace smt::runtime::device::hosted

using namespace smt::runtime::device::hosted;

DRIVER_EXPORT CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
    if (!array || !shape) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuArray3DCreate_v2, "%zux%zux%zu", shape->Width, shape->Height, shape->Depth);
    if (!addressable(*shape)) return CUDA_ERROR_INVALID_VALUE;
    Lock lock(world());
    *array = make_array(*shape);
    if (!*array) return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* shape) {
    if (!shape) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR whole{};
    whole.Width = shape->Width;
    whole.Height = shape->Height;
    whole.Format = shape->Format;
    whole.NumChannels = shape->NumChannels;
    return cuArray3DCreate_v2(array, &whole);
}
DRIVER_EXPORT CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* shape, CUarray array) {
    if (!shape) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuArray3DGetDescriptor_v2);
    Lock lock(world());
    auto found = arrays_state().arrays.find(array);
    if (found == arrays_state().arrays.end()) return CUDA_ERROR_INVALID_HANDLE;
    *shape = found->second->shape;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* shape, CUarray array) {
    if (!shape) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR whole{};
    if (CUresult status = cuArray3DGetDescriptor_v2(&whole, array); status != CUDA_SUCCESS) return status;
    *shape = {whole.Width, whole.Height, whole.Format, whole.NumChannels};
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuArrayDestroy(CUarray array) {
    DRIVER_ASKED(cuArrayDestroy);
    Lock lock(world());
    if (!arrays_state().arrays.contains(array)) return CUDA_ERROR_INVALID_HANDLE;
    lock.unlock();
    destroy({array});
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                              unsigned levels) {
    if (!handle || !shape || levels > 32) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMipmappedArrayCreate);
    if (!addressable(*shape)) return CUDA_ERROR_INVALID_VALUE;
    Lock lock(world());
    auto mipmapped = std::make_unique<Mipmapped>();
    for (unsigned level = 0; level < levels; ++level) {
        CUDA_ARRAY3D_DESCRIPTOR smaller = *shape;
        smaller.Width = at_least_one(shape->Width >> level);
        smaller.Height = shape->Height ? at_least_one(shape->Height >> level) : 0;
        const bool layers = (shape->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
        if (shape->Depth && !layers) smaller.Depth = at_least_one(shape->Depth >> level);
        mipmapped->levels.push_back(make_array(smaller));
        if (mipmapped->levels.back()) continue;
        lock.unlock();
        destroy(std::move(mipmapped->levels));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = reinterpret_cast<CUmipmappedArray>(mipmapped.get());
    arrays_state().mipmapped[*handle] = std::move(mipmapped);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMipmappedArrayGetLevel(CUarray* array, CUmipmappedArray handle, unsigned level) {
    if (!array) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMipmappedArrayGetLevel);
    Lock lock(world());
    auto found = arrays_state().mipmapped.find(handle);
    if (found == arrays_state().mipmapped.end()) return CUDA_ERROR_INVALID_HANDLE;
    if (level >= found->second->levels.size()) return CUDA_ERROR_INVALID_VALUE;
    *array = found->second->levels[level];
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle) {
    DRIVER_ASKED(cuMipmappedArrayDestroy);
    Lock lock(world());
    auto found = arrays_state().mipmapped.find(handle);
    if (found == arrays_state().mipmapped.end()) return CUDA_ERROR_INVALID_HANDLE;
    std::vector<CUarray> levels = std::move(found->second->levels);
    arrays_state().mipmapped.erase(found);
    lock.unlock();
    destroy(std::move(levels));
    return CUDA_SUCCESS;
}

DRIVER_EXPORT CUresult cuTexObjectCreate(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                                         const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC*) {
    if (!object || !resource || !texture) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuTexObjectCreate);
    Lock lock(world());
    *object = arrays_state().next_texture++;
    arrays_state().textures[*object] = {*resource, *texture};
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuTexObjectDestroy(CUtexObject object) {
    DRIVER_ASKED(cuTexObjectDestroy);
    Lock lock(world());
    return arrays_state().textures.erase(object) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
DRIVER_EXPORT CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject object) {
    if (!resource) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuTexObjectGetResourceDesc);
    Lock lock(world());
    auto found = arrays_state().textures.find(object);
    if (found == arrays_state().textures.end()) return CUDA_ERROR_INVALID_HANDLE;
    *resource = found->second.resource;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuSurfObjectCreate(CUsurfObject* object, const CUDA_RESOURCE_DESC* resource) {
    if (!object || !resource) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuSurfObjectCreate);
    Lock lock(world());
    *object = arrays_state().next_texture++;
    arrays_state().textures[*object] = {*resource, {}};
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuSurfObjectDestroy(CUsurfObject object) {
    DRIVER_ASKED(cuSurfObjectDestroy);
    Lock lock(world());
    return arrays_state().textures.erase(object) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
