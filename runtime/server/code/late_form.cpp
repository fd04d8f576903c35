// CodeTable's part of late forms (late_form.h): managed forms are given to kernels that launches may be
// using.
#include "runtime/server/code/late_form.h"

#include <utility>

#include "runtime/server/code/code_table.h"

namespace smt::runtime::server {

namespace {

// Attributes that a program sets and that the managed form has too.
constexpr CUfunction_attribute kSettable[] = {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                              CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT};

void copy_attributes(const DriverApi& driver, CUfunction from, CUfunction to) {
    for (const CUfunction_attribute attribute : kSettable) {
        int wanted = 0, set = 0;
        if (driver.cuFuncGetAttribute(&wanted, attribute, from) == CUDA_SUCCESS &&
            driver.cuFuncGetAttribute(&set, attribute, to) == CUDA_SUCCESS && set != wanted)
            driver.cuFuncSetAttribute(to, attribute, wanted);
    }
}

}  // namespace

void CodeTable::await_form(uint32_t id, std::unique_ptr<LateForm> late) {
    const ImagePointer found = image(id);
    if (!found) return;
    const std::lock_guard lock(found->mutex);
    if (!found->gone && found->kernels.empty()) found->late = std::move(late);
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
            if (found.form.function) {
                copy_attributes(driver_, kernel->function, found.form.function);
                publish(*kernel, found, treatment);
            } else {
                kernel->treatment.store(journal_.name(treatment));
            }
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
