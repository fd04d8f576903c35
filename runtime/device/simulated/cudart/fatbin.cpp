#include "runtime/device/simulated/cudart/fatbin.h"

#include "runtime/device/simulated/cudart/runtime.h"

namespace smt::cudart {

namespace {

struct FatbinHeader {
    static constexpr uint32_t kMagic = 0xba55ed50;

    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t payload_bytes;
};

CUresult load(const void* image, CUlibrary* library) {
    return driver().cuLibraryLoadData(library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

CUresult add_part(CUlinkState link, const void* part) {
    const auto* header = static_cast<const FatbinHeader*>(part);
    if (header->magic != FatbinHeader::kMagic) return CUDA_ERROR_INVALID_IMAGE;
    size_t bytes = header->header_bytes + header->payload_bytes;
    return driver().cuLinkAddData_v2(link, CU_JIT_INPUT_FATBINARY, const_cast<void*>(part), bytes, "", 0,
                                     nullptr, nullptr);
}

CUresult link_and_load(const FatbinWrapper& wrapper, CUlibrary* library) {
    CUlinkState link = nullptr;
    CUresult status = driver().cuLinkCreate_v2(0, nullptr, nullptr, &link);
    if (status != CUDA_SUCCESS) return status;
    for (const void* const* part = wrapper.parts; *part && status == CUDA_SUCCESS; ++part)
        status = add_part(link, *part);
    void* image = nullptr;  // owned by the link state
    size_t bytes = 0;
    if (status == CUDA_SUCCESS) status = driver().cuLinkComplete(link, &image, &bytes);
    if (status == CUDA_SUCCESS) status = load(image, library);
    driver().cuLinkDestroy(link);
    return status;
}

}  // namespace

CUresult load_fatbin(const FatbinWrapper* wrapper, CUlibrary* library) {
    bool relocatable = wrapper->version == FatbinWrapper::kLinked && wrapper->parts;
    if (relocatable && link_and_load(*wrapper, library) == CUDA_SUCCESS) return CUDA_SUCCESS;
    return load(wrapper, library);
}

}  // namespace smt::cudart
