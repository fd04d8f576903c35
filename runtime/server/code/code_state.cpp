// What another process needs of a session's code to take it over.
#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/protocol/try.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

namespace {

constexpr uint32_t kCodePart = 0x434f4445;

struct SavedKernel {
    uint32_t id;
    uint32_t image;
};

struct SavedConstant {
    uint64_t given, bytes, copy;
};

struct SavedImage {
    uint32_t id = 0;
    std::string record;
    std::vector<char> bytes;
    uint64_t memory = 0;  // of its variables
    std::string layout;
    std::vector<std::pair<std::string, SavedConstant>> constants;
};

void save_constants(protocol::StateWriter& out, const Image& image) {
    out.scalar<uint64_t>(image.constants.size());
    for (const auto& [name, constant] : image.constants) {
        out.text(name);
        out.scalar(SavedConstant{constant.given, constant.bytes, constant.copy});
    }
}

// A load adds a NUL.
std::vector<char> take_bytes(protocol::Reader& in) {
    uint64_t count = 0;
    const char* from = in.array<char>(count);
    std::vector<char> all;
    all.reserve(count + 1);
    all.assign(from, from + count);
    return all;
}

std::vector<SavedImage> take_images(protocol::Reader& in) {
    std::vector<SavedImage> all;
    for (uint64_t left = in.scalar<uint64_t>(); left > 0 && in.good(); --left) {
        SavedImage& image = all.emplace_back();
        image.id = in.scalar<uint32_t>();
        image.record = protocol::take_text(in);
        image.bytes = take_bytes(in);
        image.memory = in.scalar<uint64_t>();
        image.layout = protocol::take_text(in);
        for (uint64_t each = in.scalar<uint64_t>(); each > 0 && in.good(); --each) {
            std::string name = protocol::take_text(in);
            image.constants.emplace_back(std::move(name), in.scalar<SavedConstant>());
        }
    }
    return all;
}

}  // namespace

// What stands in the image's memory and not in the session's is watched if it is a constant. Nothing writes
// to it until the program has the address.
CUresult CodeTable::give_out(Image& image, const std::string& name, CUdeviceptr* address, uint64_t bytes) {
    if (image.gone) return CUDA_ERROR_INVALID_HANDLE;
    image.spare_key.clear();
    if (const auto known = image.constants.find(name); known != image.constants.end()) {
        *address = known->second.given;
        return CUDA_SUCCESS;
    }
    WatchedConstants::Constant constant{*address, bytes, *address, 0};
    CUdeviceptr copy = 0;
    if (bytes != 0 && image.constant_names.contains(name) && memory_.allocate(bytes, &copy) == CUDA_SUCCESS) {
        constant.copy = copy;
        if (memory_.copy(copy, *address, bytes) == CUDA_SUCCESS &&
            memory_.own().constants().add(constant, &image)) {
            image.constants[name] = constant;
            return CUDA_SUCCESS;
        }
        memory_.free(copy);
    }
    // After a takeover it may be what the program knows another constant by.
    if (memory_.own().constants().find(*address)) return CUDA_ERROR_NOT_SUPPORTED;
    memory_.own().add(*address, bytes, &image);
    return CUDA_SUCCESS;
}

// The image was loaded a moment ago, and the constant has its first value.
CUresult CodeTable::restore_constant(Image& image, const std::string& name,
                                     const WatchedConstants::Constant& saved) {
    if (memory_.find(saved.copy).base != saved.copy || memory_.find(saved.copy).bytes < saved.bytes)
        return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(image.mutex);
    image.spare_key.clear();
    CUdeviceptr address = 0;
    size_t bytes = 0;
    CUmodule handle = nullptr;
    SMT_TRY(module(image, &handle));
    SMT_TRY(image.library ? driver_.cuLibraryGetGlobal(&address, &bytes, image.library, name.c_str())
                          : driver_.cuModuleGetGlobal_v2(&address, &bytes, handle, name.c_str()));
    const WatchedConstants::Constant constant{saved.given, saved.bytes, address, saved.copy};
    if (bytes != saved.bytes || !memory_.own().constants().add(constant, &image))
        return CUDA_ERROR_INVALID_IMAGE;
    SMT_TRY(memory_.copy(address, saved.copy, bytes));
    image.constants[name] = constant;
    return CUDA_SUCCESS;
}

std::string CodeTable::why_not_carried() const {
    std::lock_guard lock(mutex_);
    for (const auto& [id, image] : images_) {
        if (!image->origin) return "an image of it is not kept";
        if (image->managed.memory()) return "it has __managed__ variables";
        if (!image->variables_stay.empty()) return "its kernels use " + image->variables_stay;
    }
    if (!memory_.own().constants().all_followed())
        return "it has used the address of a __constant__ variable otherwise";
    if (memory_.own().any_elsewhere())
        return "it has the address of a variable that is not in its own memory";
    return {};
}

std::variant<smt::image::Effects, smt::image::Problem> CodeTable::effects(uint32_t id) const {
    const ImagePointer found = image(id);
    if (!found || !found->origin) return smt::image::Problem{"an image of it is not kept"};
    const ImageOrigin& origin = *found->origin;
    return smt::image::effects({origin.bytes.data(), origin.bytes.size()}, origin.architecture);
}

void CodeTable::save(protocol::StateWriter& out) {
    std::scoped_lock lock(attributes_, mutex_);
    std::vector<const LoadedKernel*> kernels;
    out.part(kCodePart);
    size_t bytes = 0;
    for (const auto& [id, image] : images_) bytes += image->origin->bytes.size();
    out.reserve(bytes);
    out.scalar<uint64_t>(images_.size());
    for (const auto& [id, image] : images_) {
        out.scalar(id);
        out.text(image->origin->record);
        out.text({image->origin->bytes.data(), image->origin->bytes.size()});
        out.scalar(image->moved.memory());
        out.text(image->moved.layout());
        save_constants(out, *image);
        for (const auto& [name, kernel] : image->kernels) kernels.push_back(kernel);
    }
    out.scalar<uint64_t>(kernels.size());
    for (const LoadedKernel* kernel : kernels) {
        std::vector<protocol::FunctionAttribute> attributes;
        for (const auto& [attribute, value] : kernel->set)
            attributes.push_back({kernel->id, attribute, value, 0});
        out.scalar(SavedKernel{kernel->id, kernel->image});
        out.text(kernel->name);
        out.list(attributes);
    }
    out.scalar(next_image_);
    out.scalar(next_kernel_);
    out.list(free_kernels_);
    out.scalar(preferences_.cache.load());
    out.scalar(preferences_.banks.load());
}

const LoadedKernel* CodeTable::find(const dispatch::ManagedFunction& form) const {
    std::lock_guard lock(mutex_);
    for (const auto& [id, image] : images_)
        for (const auto& [name, kernel] : image->kernels)
            if (&kernel->form == &form || &kernel->at_door == &form) return kernel;
    return nullptr;
}

CUresult CodeTable::restore_images(protocol::Reader& in, const Loading& loading) {
    if (!protocol::take_part(in, kCodePart)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<SavedImage> images = take_images(in);
    if (!in.good()) return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::string_view> all;
    for (const SavedImage& each : images) all.emplace_back(each.bytes.data(), each.bytes.size());
    const std::shared_ptr<void> prepared = loading.prepare(all);
    for (SavedImage& each : images) {
        if (each.memory != 0 && memory_.find(each.memory).base != each.memory)
            return CUDA_ERROR_INVALID_VALUE;
        taken_variables_.emplace(each.memory, std::move(each.layout));
        next_image_ = each.id;
        const CUresult loaded = loading.load(each.record, std::move(each.bytes));
        taken_variables_.reset();
        SMT_TRY(loaded);
        const ImagePointer made = image(each.id);
        if (!made) return CUDA_ERROR_INVALID_IMAGE;
        for (const auto& [name, saved] : each.constants)
            SMT_TRY(restore_constant(*made, name, {saved.given, saved.bytes, 0, saved.copy}));
    }
    return CUDA_SUCCESS;
}

CUresult CodeTable::restore_kernels(protocol::Reader& in, const Loading& loading) {
    for (uint64_t left = in.scalar<uint64_t>(); left > 0; --left) {
        const auto saved = in.scalar<SavedKernel>();
        const std::string name = protocol::take_text(in);
        const auto attributes = protocol::take_list<protocol::FunctionAttribute>(in);
        if (!in.good() || saved.id == 0) return CUDA_ERROR_INVALID_VALUE;
        LoadedKernel* kernel = nullptr;
        wanted_kernel_ = saved.id;
        const CUresult status = fetch(saved.image, name.c_str(), &kernel);
        wanted_kernel_ = 0;
        SMT_TRY(status);
        for (const protocol::FunctionAttribute& each : attributes) SMT_TRY(loading.set(each));
    }
    std::lock_guard lock(mutex_);
    next_image_ = in.scalar<uint32_t>();
    next_kernel_ = in.scalar<uint32_t>();
    free_kernels_ = protocol::take_list<uint32_t>(in);
    preferences_.cache.store(in.scalar<CUfunc_cache>());
    preferences_.banks.store(in.scalar<CUsharedconfig>());
    return in.good() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace smt::runtime::server
