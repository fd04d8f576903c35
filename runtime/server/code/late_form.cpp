// CodeTable's part of late forms (late_form.h): managed forms are given to kernels that launches may be
// using.
#include "runtime/server/code/late_form.h"

#include <algorithm>
#include <utility>

#include "runtime/server/code/code_table.h"

namespace smt::runtime::server {

namespace {

// Attributes that a program sets and that the managed form has too.
constexpr CUfunction_attribute kSettable[] = {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                              CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT};

}  // namespace

void CodeTable::await_form(uint32_t id, std::unique_ptr<LateForm> late) {
    const ImagePointer found = image(id);
    if (!found) return;
    const std::lock_guard lock(found->mutex);
    if (!found->gone && found->kernels.empty()) found->late = std::move(late);
}

// A form has more static shared memory than its kernel, so it may have less room for dynamic. It gets all of
// that; launches with more do not fit it (dispatch::fitting()), and run in the kernel's own form.
bool CodeTable::set_attribute(const dispatch::ManagedFunction& form, CUfunction_attribute attribute,
                              int value) const {
    CUdevice device = 0;
    int most = 0, now = 0;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
        driver_.cuCtxGetDevice(&device) == CUDA_SUCCESS &&
        driver_.cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device) ==
            CUDA_SUCCESS)
        value = std::min(value, most - static_cast<int>(form.static_shared));
    // Some programs set the attribute before each launch.
    if (driver_.cuFuncGetAttribute(&now, attribute, form.function) == CUDA_SUCCESS && now == value)
        return false;
    return driver_.cuFuncSetAttribute(form.function, attribute, value) == CUDA_SUCCESS;
}

// Launches read the form after `managed`, so it is whole before that is set.
void CodeTable::publish(LoadedKernel& kernel, const LoadedKernel& found, const std::string& treatment) {
    const dispatch::ManagedFunction& form = found.form;
    kernel.checked = found.checked;
    kernel.form.function = form.function;
    kernel.form.launch_offset = form.launch_offset;
    kernel.form.reuse = form.reuse;
    kernel.form.checked = form.checked;
    kernel.form.waits = form.waits;
    kernel.form.registers = form.registers;
    kernel.form.static_shared = form.static_shared;
    kernel.form.forget();
    for (const CUfunction_attribute attribute : kSettable) {
        int value = 0;
        if (driver_.cuFuncGetAttribute(&value, attribute, kernel.function) == CUDA_SUCCESS)
            set_attribute(kernel.form, attribute, value);
    }
    kernel.managed_treatment = journal_.name(treatment);
    kernel.managed.store(&kernel.form, std::memory_order_release);
}

void CodeTable::take_form(Image& image, Beside beside) {
    image.beside = std::move(beside);
    image.late.reset();
    for (auto& [name, kernel] : image.kernels) {
        if (!kernel->managed.load()) {
            LoadedKernel found;
            found.parameters = kernel->parameters;
            found.parameter_bytes = kernel->parameter_bytes;
            const std::string treatment = find_managed(image, name.c_str(), found);
            const std::lock_guard attributes(attributes_);
            if (found.form.function)
                publish(*kernel, found, treatment);
            else
                kernel->treatment.store(journal_.name(treatment));
        }
        kernel->looked.store(LoadedKernel::kSettled);
    }
}

void CodeTable::give_up_form(Image& image, const std::string& reason, jit::ResultPointer refused) {
    image.late.reset();
    image.form.reason = reason;
    image.form.refused = std::move(refused);
    for (auto& [name, kernel] : image.kernels) {
        kernel->treatment.store(journal_.name("unmanaged: " + image.form.why_unmanaged(name)));
        kernel->looked.store(LoadedKernel::kSettled);
    }
}

}  // namespace smt::runtime::server
