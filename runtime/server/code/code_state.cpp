// What another process needs of a session's code to take it over.
#include <algorithm>

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

void save_constants(protocol::StateWriter& out, const Image& image) {
    out.scalar<uint64_t>(image.constants.size());
    for (const auto& [name, constant] : image.constants) {
        out.text(name);
        out.scalar(SavedConstant{constant.given, constant.bytes, constant.copy});
    }
}

}  // namespace

// What stands in the image's memory and not in the session's is watched if it is a constant. Nothing writes
// to it until the program has the address.
CUresult CodeTable::give_out(Image& image, const std::string& name, CUdeviceptr* address, uint64_t bytes) {
    if (image.gone) return CUDA_ERROR_INVALID_HANDLE;
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

// The image was loaded a moment ago, and its constants have their first values.
CUresult CodeTable::restore_constants(protocol::Reader& in, Image& image) {
    for (uint64_t left = in.scalar<uint64_t>(); left > 0; --left) {
        const std::string name = protocol::take_text(in);
        const auto saved = in.scalar<SavedConstant>();
        if (!in.good() || memory_.find(saved.copy).base != saved.copy ||
            memory_.find(saved.copy).bytes < saved.bytes)
            return CUDA_ERROR_INVALID_VALUE;
        std::lock_guard lock(image.mutex);
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
    }
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

CUresult CodeTable::restore(protocol::Reader& in, const Loading& loading) {
    if (!protocol::take_part(in, kCodePart)) return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t left = in.scalar<uint64_t>(); left > 0; --left) {
        const auto id = in.scalar<uint32_t>();
        const std::string record = protocol::take_text(in), bytes = protocol::take_text(in);
        const auto memory = in.scalar<uint64_t>();
        if (!in.good() || (memory != 0 && memory_.find(memory).base != memory))
            return CUDA_ERROR_INVALID_VALUE;
        taken_variables_.emplace(memory, protocol::take_text(in));
        next_image_ = id;
        const CUresult loaded = loading.load(record, {bytes.begin(), bytes.end()});
        taken_variables_.reset();
        SMT_TRY(loaded);
        const ImagePointer made = image(id);
        if (!made) return CUDA_ERROR_INVALID_IMAGE;
        SMT_TRY(restore_constants(in, *made));
    }
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
