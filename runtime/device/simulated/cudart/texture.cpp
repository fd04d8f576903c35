// Textures and surfaces: conversion of descriptors to the driver's form and back.
#include "cudart_written.gen.h"
#include "runtime/device/simulated/cudart/array.h"
#include "runtime/device/simulated/cudart/convert.h"

namespace smt::cudart {

namespace {

cudaError_t driver_resource(const cudaResourceDesc& from, CUDA_RESOURCE_DESC& made) {
    made = {};
    made.resType = static_cast<CUresourcetype>(from.resType);
    made.flags = from.flags;
    switch (from.resType) {
        case cudaResourceTypeArray:
            made.res.array.hArray = as_driver(from.res.array.array);
            return cudaSuccess;
        case cudaResourceTypeMipmappedArray:
            made.res.mipmap.hMipmappedArray = as_driver(from.res.mipmap.mipmap);
            return cudaSuccess;
        case cudaResourceTypeLinear: {
            auto& linear = made.res.linear;
            linear.devPtr = as_driver(from.res.linear.devPtr);
            linear.sizeInBytes = from.res.linear.sizeInBytes;
            return driver_channels(from.res.linear.desc, linear.format, linear.numChannels);
        }
        case cudaResourceTypePitch2D: {
            auto& pitched = made.res.pitch2D;
            pitched.devPtr = as_driver(from.res.pitch2D.devPtr);
            pitched.width = from.res.pitch2D.width;
            pitched.height = from.res.pitch2D.height;
            pitched.pitchInBytes = from.res.pitch2D.pitchInBytes;
            return driver_channels(from.res.pitch2D.desc, pitched.format, pitched.numChannels);
        }
    }
    return cudaErrorInvalidValue;
}

void runtime_resource(const CUDA_RESOURCE_DESC& from, cudaResourceDesc& made) {
    made = {};
    made.resType = static_cast<cudaResourceType>(from.resType);
    made.flags = from.flags;
    switch (from.resType) {
        case CU_RESOURCE_TYPE_ARRAY:
            made.res.array.array = as_driver(from.res.array.hArray);
            break;
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            made.res.mipmap.mipmap = as_driver(from.res.mipmap.hMipmappedArray);
            break;
        case CU_RESOURCE_TYPE_LINEAR:
            made.res.linear.devPtr = as_driver(from.res.linear.devPtr);
            made.res.linear.desc = runtime_channels(from.res.linear.format, from.res.linear.numChannels);
            made.res.linear.sizeInBytes = from.res.linear.sizeInBytes;
            break;
        case CU_RESOURCE_TYPE_PITCH2D:
            made.res.pitch2D.devPtr = as_driver(from.res.pitch2D.devPtr);
            made.res.pitch2D.desc = runtime_channels(from.res.pitch2D.format, from.res.pitch2D.numChannels);
            made.res.pitch2D.width = from.res.pitch2D.width;
            made.res.pitch2D.height = from.res.pitch2D.height;
            made.res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
            break;
    }
}

CUDA_TEXTURE_DESC driver_texture(const cudaTextureDesc& from) {
    CUDA_TEXTURE_DESC made{};
    for (int i = 0; i < 3; ++i) made.addressMode[i] = static_cast<CUaddress_mode>(from.addressMode[i]);
    made.filterMode = static_cast<CUfilter_mode>(from.filterMode);
    if (from.readMode == cudaReadModeElementType) made.flags |= CU_TRSF_READ_AS_INTEGER;
    if (from.normalizedCoords) made.flags |= CU_TRSF_NORMALIZED_COORDINATES;
    if (from.sRGB) made.flags |= CU_TRSF_SRGB;
    if (from.disableTrilinearOptimization) made.flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
    if (from.seamlessCubemap) made.flags |= CU_TRSF_SEAMLESS_CUBEMAP;
    made.maxAnisotropy = from.maxAnisotropy;
    made.mipmapFilterMode = static_cast<CUfilter_mode>(from.mipmapFilterMode);
    made.mipmapLevelBias = from.mipmapLevelBias;
    made.minMipmapLevelClamp = from.minMipmapLevelClamp;
    made.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
    for (int i = 0; i < 4; ++i) made.borderColor[i] = from.borderColor[i];
    return made;
}

void runtime_texture(const CUDA_TEXTURE_DESC& from, cudaTextureDesc& made) {
    made = {};
    for (int i = 0; i < 3; ++i)
        made.addressMode[i] = static_cast<cudaTextureAddressMode>(from.addressMode[i]);
    made.filterMode = static_cast<cudaTextureFilterMode>(from.filterMode);
    made.readMode =
        from.flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
    made.normalizedCoords = (from.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    made.sRGB = (from.flags & CU_TRSF_SRGB) != 0;
    made.disableTrilinearOptimization = (from.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
    made.seamlessCubemap = (from.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
    made.maxAnisotropy = from.maxAnisotropy;
    made.mipmapFilterMode = static_cast<cudaTextureFilterMode>(from.mipmapFilterMode);
    made.mipmapLevelBias = from.mipmapLevelBias;
    made.minMipmapLevelClamp = from.minMipmapLevelClamp;
    made.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
    for (int i = 0; i < 4; ++i) made.borderColor[i] = from.borderColor[i];
}

}  // namespace

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* description, const cudaResourceViewDesc* view) {
    if (!texture || !resource || !description) return cudaErrorInvalidValue;
    CUDA_RESOURCE_DESC driver_form;
    if (cudaError_t failed = driver_resource(*resource, driver_form)) return failed;
    CUDA_TEXTURE_DESC made = driver_texture(*description);
    return from_driver(driver().cuTexObjectCreate(as_driver(texture), &driver_form, &made, as_driver(view)));
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const cudaResourceDesc* resource) {
    if (!surface || !resource) return cudaErrorInvalidValue;
    CUDA_RESOURCE_DESC driver_form;
    if (cudaError_t failed = driver_resource(*resource, driver_form)) return failed;
    return from_driver(driver().cuSurfObjectCreate(as_driver(surface), &driver_form));
}

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t texture) {
    if (!resource) return cudaErrorInvalidValue;
    CUDA_RESOURCE_DESC driver_form{};
    if (CUresult status = driver().cuTexObjectGetResourceDesc(&driver_form, texture))
        return from_driver(status);
    runtime_resource(driver_form, *resource);
    return cudaSuccess;
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* description, cudaTextureObject_t texture) {
    if (!description) return cudaErrorInvalidValue;
    CUDA_TEXTURE_DESC driver_form{};
    if (CUresult status = driver().cuTexObjectGetTextureDesc(&driver_form, texture))
        return from_driver(status);
    runtime_texture(driver_form, *description);
    return cudaSuccess;
}

cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t surface) {
    if (!resource) return cudaErrorInvalidValue;
    CUDA_RESOURCE_DESC driver_form{};
    if (CUresult status = driver().cuSurfObjectGetResourceDesc(&driver_form, surface))
        return from_driver(status);
    runtime_resource(driver_form, *resource);
    return cudaSuccess;
}

}  // namespace smt::cudart
