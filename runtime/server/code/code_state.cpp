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

}  // namespace

std::string CodeTable::why_not_carried() const {
    std::lock_guard lock(mutex_);
    for (const auto& [id, image] : images_) {
        if (!image->origin) return "an image of it is not kept";
        if (image->managed.memory()) return "it has __managed__ variables";
        if (image->uses_variables)
            return "its kernels use variables (__device__, __constant__, printf's texts)";
    }
    if (memory_.own().any_elsewhere()) return "it has the address of a variable";
    return {};
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
        if (!in.good()) return CUDA_ERROR_INVALID_VALUE;
        next_image_ = id;
        SMT_TRY(loading.load(record, {bytes.begin(), bytes.end()}));
        if (!image(id)) return CUDA_ERROR_INVALID_IMAGE;
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
