// See code_table.h.
#include "runtime/server/code/code_table.h"

#include <optional>
#include <utility>

#include "rewriter/device/managed_names.h"
#include "rewriter/device/smt_worker.h"
#include "runtime/dispatch/quiesce.h"
#include "runtime/protocol/try.h"
#include "runtime/server/code/spare_images.h"
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

using protocol::ImageOwner;

namespace {

constexpr size_t kMaxParameters = 4096;
constexpr size_t kMaxImages = 64u << 10;
constexpr uint32_t kUseSleepMs = 1000;  // the last user normally wakes the thread earlier

}  // namespace

CodeTable::CodeTable(dispatch::Dispatcher& dispatcher, const dispatch::Tenant& tenant, TenantMemory& memory,
                     journal::Writer& journal, profiles::ProfileCache& book, Handles& handles,
                     SpareImages& spare)
    : dispatcher_(dispatcher),
      tenant_(tenant),
      memory_(memory),
      driver_(dispatcher.driver()),
      journal_(journal),
      profile_cache_(book),
      handles_(handles),
      spare_(spare),
      exceptions_(journal),
      times_(driver_),
      limits_(driver_),
      links_(driver_) {}

CodeTable::~CodeTable() {
    clear();
    for (auto& page : pages_) delete[] page.load();
}

// Loads a library's module on the first use of its contents. The driver would load it implicitly, at a
// moment when that may deadlock (context_wide.h).
CUresult CodeTable::load(Image& image) const {
    return image.module ? CUDA_SUCCESS : driver_.cuLibraryGetModule(&image.module, image.library);
}

CUresult CodeTable::module(uint32_t id, CUmodule* module) const {
    ImagePointer found = image(id);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    std::lock_guard lock(found->mutex);
    return this->module(*found, module);
}

CUresult CodeTable::module(Image& image, CUmodule* module) const {
    if (image.gone) return CUDA_ERROR_INVALID_HANDLE;
    if (!image.module) {
        const dispatch::Quiesce others(dispatcher_, tenant_);
        SMT_TRY(load(image));
    }
    *module = image.module;
    return CUDA_SUCCESS;
}

uint32_t CodeTable::add(ImageOwner owner, CUmodule module, CUlibrary library, image::Printing printing,
                        std::set<std::string, std::less<>> system_atomics, std::string identity,
                        ManagedVariables managed, jit::Decision form, std::vector<jit::Door> doors,
                        Charge charge) {
    auto image = std::make_shared<Image>();
    image->owner = owner;
    image->charge = std::move(charge);
    image->module = module;
    image->library = library;
    image->printing = std::move(printing);
    image->system_atomics = std::move(system_atomics);
    image->identity = std::move(identity);
    image->managed = std::move(managed);
    image->form = std::move(form);
    for (jit::Door& door : doors) {
        std::string name = door.kernel;
        image->doors.emplace(std::move(name), std::move(door));
    }
    std::lock_guard lock(mutex_);
    if (images_.size() >= kMaxImages) return 0;
    while (next_image_ == 0 || images_.contains(next_image_)) ++next_image_;
    image->number = next_image_;
    images_[next_image_] = std::move(image);
    return next_image_++;
}

ImagePointer CodeTable::image(uint32_t id) const {
    std::lock_guard lock(mutex_);
    auto found = images_.find(id);
    return found == images_.end() ? nullptr : found->second;
}

ImagePointer CodeTable::withdraw(uint32_t id) {
    ImagePointer image;
    {
        std::lock_guard lock(mutex_);
        auto found = images_.find(id);
        if (found == images_.end()) return nullptr;
        image = std::move(found->second);
        images_.erase(found);
    }
    withdraw(*image);
    return image;
}

void CodeTable::withdraw(Image& image) {
    std::lock_guard lock(image.mutex);
    image.gone = true;
    for (auto& [name, kernel] : image.kernels) {
        kernel->live.store(false);
        // A launch may wait as long as other tenants are more urgent.
        while (const uint32_t users = kernel->users.load()) futex_wait(kernel->users, users, kUseSleepMs);
    }
}

// Its kernels' attributes become what they were.
bool CodeTable::becomes_spare(Image& image) {
    if (image.spare_key.empty() || image.beside.module) return false;
    const std::lock_guard lock(attributes_);
    for (const auto& [name, kernel] : image.kernels) {
        if (kernel->set.empty()) continue;
        if (kernel->managed.load()) return false;  // whose attributes were others
        for (const auto& [attribute, value] : kernel->before) {
            const auto each = static_cast<CUfunction_attribute>(attribute);
            if (driver_.cuFuncSetAttribute(kernel->function, each, value) != CUDA_SUCCESS) return false;
        }
    }
    return true;
}

CUresult CodeTable::unload(Image& image) {
    Beside beside;
    bool spare = false;
    {
        const std::lock_guard lock(image.mutex);
        spare = becomes_spare(image);
    }
    {
        std::scoped_lock lock(image.mutex, mutex_);
        for (auto& [name, kernel] : image.kernels) {
            by_handle_.erase(kernel->function);
            if (kernel->kernel) by_handle_.erase(kernel->kernel);
            free_kernels_.push_back(kernel->id);
        }
        image.kernels.clear();
        beside = std::exchange(image.beside, {});  // name_in() reads it
        image.late.reset();
    }
    memory_.own().forget(&image);  // before the driver may reuse the addresses
    for (const auto& [name, constant] : std::exchange(image.constants, {})) memory_.free(constant.copy);
    if (image.module) handles_.forget_module(image.module);
    image.charge = {};
    std::vector<SpareImage> leave;
    if (spare) {
        leave = spare_.keep({std::move(image.spare_key), image.spare_bytes, image.module, image.library,
                             std::move(image.loaded)});
        if (leave.empty()) return CUDA_SUCCESS;
    }
    const dispatch::Quiesce others(dispatcher_, tenant_, dispatch::Quiesce::For::kFree);
    server::unload(driver_, leave);
    if (spare) return CUDA_SUCCESS;
    if (beside.module) driver_.cuModuleUnload(beside.module);
    return image.library ? driver_.cuLibraryUnload(image.library) : driver_.cuModuleUnload(image.module);
}

CUresult CodeTable::fetch(uint32_t image_id, const char* name, LoadedKernel** kernel) {
    ImagePointer found = image(image_id);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    std::lock_guard lock(found->mutex);
    if (found->gone) return CUDA_ERROR_INVALID_HANDLE;
    if (auto known = found->kernels.find(name); known != found->kernels.end()) {
        *kernel = known->second;
        return CUDA_SUCCESS;
    }
    LoadedKernel fresh;
    std::string treatment;
    {
        std::optional<dispatch::Quiesce> others;
        if (!found->loaded.contains(name)) others.emplace(dispatcher_, tenant_);
        SMT_TRY(describe(*found, name, fresh, &treatment));
    }
    found->loaded.insert(name);
    std::lock_guard table_lock(mutex_);
    LoadedKernel* entry = new_kernel();
    if (!entry) return CUDA_ERROR_OUT_OF_MEMORY;
    entry->prints = found->printing.may(name);
    entry->system_atomics = found->system_atomics.contains(name) || found->form.system_atomics(name);
    entry->refused = why_refused(*found, name);
    entry->set.clear();
    entry->before.clear();
    entry->function = fresh.function;
    entry->kernel = fresh.kernel;
    entry->image = image_id;
    entry->name = name;
    entry->parameters = std::move(fresh.parameters);
    entry->parameter_bytes = fresh.parameter_bytes;
    entry->registers = fresh.registers;
    entry->static_shared = fresh.static_shared;
    entry->local_bytes = fresh.local_bytes;
    entry->door = fresh.door;
    entry->form.known = profile_cache_.open(name, found->identity);
    entry->managed.store(nullptr);
    const bool awaits = found->late && !fresh.form.function;
    entry->looked.store(awaits ? LoadedKernel::kNeverLooked : LoadedKernel::kSettled);
    entry->treatment.store(journal_.name(treatment));
    if (fresh.form.function) publish(*entry, fresh, treatment);
    give_door(*entry);
    entry->journal_name = journal_.name(name);
    entry->live.store(true);
    by_handle_[entry->function] = entry;
    if (entry->kernel) by_handle_[entry->kernel] = entry;
    found->kernels[name] = entry;
    *kernel = entry;
    return CUDA_SUCCESS;
}

CUresult CodeTable::look_up(const Image& image, const char* name, CUfunction* function,
                            CUkernel* kernel) const {
    if (!image.library) return driver_.cuModuleGetFunction(function, image.module, name);
    CUresult status = driver_.cuLibraryGetKernel(kernel, image.library, name);
    return status == CUDA_SUCCESS ? driver_.cuKernelGetFunction(function, *kernel) : status;
}

// Reads a kernel's properties from the driver, which loads it.
CUresult CodeTable::describe(Image& image, const char* name, LoadedKernel& kernel,
                             std::string* treatment) const {
    CUresult status = load(image);
    if (status == CUDA_SUCCESS) status = look_up(image, name, &kernel.function, &kernel.kernel);
    if (status) return status;
    size_t offset = 0, bytes = 0;
    for (size_t i = 0; i < kMaxParameters; ++i) {
        if (driver_.cuFuncGetParamInfo(kernel.function, i, &offset, &bytes) != CUDA_SUCCESS) break;
        kernel.parameters.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes)});
        kernel.parameter_bytes = static_cast<uint32_t>(offset + bytes);
    }
    int value = 0;
    if (driver_.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel.function) == CUDA_SUCCESS)
        kernel.registers = static_cast<uint32_t>(value);
    find_door(image, name, kernel);
    if (driver_.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel.function) ==
        CUDA_SUCCESS)
        kernel.static_shared = static_cast<uint32_t>(value);
    if (driver_.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel.function) ==
        CUDA_SUCCESS)
        kernel.local_bytes = static_cast<uint32_t>(value);
    *treatment = find_managed(image, name, kernel);
    if (!kernel.form.function) add_door(image, name, kernel, treatment);
    if (!image.holder && driver_.cuFuncGetModule) driver_.cuFuncGetModule(&image.holder, kernel.function);
    return CUDA_SUCCESS;
}

// The last parameter of a kernel with the door is the door's, of which the program knows nothing. Where it
// is, the worker and the driver must say alike.
void CodeTable::find_door(const Image& image, const char* name, LoadedKernel& kernel) {
    auto found = image.doors.find(name);
    if (found == image.doors.end() || !found->second.reason.empty() || kernel.parameters.empty()) return;
    const protocol::ParameterInfo& last = kernel.parameters.back();
    if (last.offset != found->second.offset || last.bytes != sizeof(smt::DoorLaunch)) return;
    kernel.door = {true, found->second.offset, found->second.waits};
    if (found->second.registers) kernel.registers = found->second.registers;
    kernel.parameters.pop_back();
    kernel.parameter_bytes =
        kernel.parameters.empty() ? 0 : kernel.parameters.back().offset + kernel.parameters.back().bytes;
}

// The treatment of a kernel without a managed form: that it has a door, or why it has none.
void CodeTable::add_door(const Image& image, const char* name, const LoadedKernel& kernel,
                         std::string* treatment) {
    constexpr std::string_view kUnmanaged = "unmanaged: ";
    auto door = image.doors.find(name);
    if (door == image.doors.end()) door = image.doors.find("");
    if (door == image.doors.end() || image.printing.may(name)) return;
    if (kernel.door.present)
        *treatment = "has a door: " + treatment->substr(std::min(treatment->size(), kUnmanaged.size()));
    else
        *treatment += "; no door: " + door->second.reason;
}

// What is launched where a launch may be stopped at the door. A kernel that prints is not: the server must
// know when it has completed.
void CodeTable::give_door(LoadedKernel& kernel) const {
    dispatch::ManagedFunction& form = kernel.at_door;
    form.forget();
    form.function = kernel.door.present && !kernel.prints ? kernel.function : nullptr;
    form.form = dispatch::Form::kDoor;
    form.launch_offset = kernel.door.offset;
    form.waits = kernel.door.waits;
    form.registers = kernel.registers;
    form.static_shared = kernel.static_shared;
    form.known = kernel.form.known;
    form.cluster = form.function ? required_cluster(driver_, kernel.function) : 1;
}

uint32_t CodeTable::required_cluster(const DriverApi& driver, CUfunction function) {
    constexpr CUfunction_attribute kSizes[] = {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                                               CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
                                               CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH};
    uint32_t blocks = 1;
    int size = 0;
    for (const CUfunction_attribute each : kSizes)
        if (driver.cuFuncGetAttribute(&size, each, function) == CUDA_SUCCESS && size > 0)
            blocks *= static_cast<uint32_t>(size);
    return blocks;
}

// Sets the kernel's managed form if its image has one. An image made by the compile worker lists its forms.
// Returns the kernel's treatment: managed by source or PTX, or unmanaged and why.
std::string CodeTable::find_managed(const Image& image, const char* name, LoadedKernel& kernel) const {
    const bool beside = image.beside.module != nullptr;
    const jit::Decision& decided = beside ? image.beside.form : image.form;
    if (!decided.compiled) return find_written(image, name, kernel);
    for (const jit::CompiledKernel& form : decided.compiled->kernels) {
        if (form.symbol != name ||
            !take_managed(beside ? image.beside.module : image.module, form.managed, form.reuse, kernel))
            continue;
        if (form.checked) kernel.checked = {decided.compiled, &*form.checked};
        kernel.form.checked = form.checked.has_value();
        kernel.form.waits = form.waits;
        return decided.by_ptx() ? "managed by PTX" : "managed by source";
    }
    const std::string why = decided.why_unmanaged(name);
    return "unmanaged: " + (why.empty() ? "the driver does not take its managed form" : why);
}

// Finds the managed forms of a program that was built with them, by their symbol names.
std::string CodeTable::find_written(const Image& image, const char* name, LoadedKernel& kernel) const {
    for (const Reuse reuse : kReuses) {
        if (take_managed(image.module, managed_symbol(name, reuse), reuse, kernel))
            return "managed by source";
    }
    return "unmanaged: " + image.form.why_unmanaged(name);
}

// The managed form's parameters must be the kernel's own followed by smt::Launch.
bool CodeTable::take_managed(CUmodule module, const std::string& symbol, Reuse reuse,
                             LoadedKernel& kernel) const {
    CUfunction function = nullptr;
    size_t offset = 0, bytes = 0;
    if (symbol.empty() || driver_.cuModuleGetFunction(&function, module, symbol.c_str()) != CUDA_SUCCESS)
        return false;
    if (driver_.cuFuncGetParamInfo(function, kernel.parameters.size(), &offset, &bytes) != CUDA_SUCCESS)
        return false;
    if (bytes != sizeof(smt::Launch) || offset < kernel.parameter_bytes) return false;
    kernel.form.function = function;
    kernel.form.launch_offset = static_cast<uint32_t>(offset);
    kernel.form.reuse = reuse;
    int value = 0;
    if (driver_.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function) == CUDA_SUCCESS)
        kernel.form.registers = static_cast<uint32_t>(value);
    if (driver_.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function) == CUDA_SUCCESS)
        kernel.form.static_shared = static_cast<uint32_t>(value);
    return true;
}

LoadedKernel* CodeTable::find(CUfunction function, CUkernel kernel) const {
    std::lock_guard lock(mutex_);
    auto found = by_handle_.find(function);
    if (found == by_handle_.end()) found = by_handle_.find(kernel);
    return found == by_handle_.end() ? nullptr : found->second;
}

// Returns an entry that is not live yet; null: the table is full. Caller holds mutex_.
LoadedKernel* CodeTable::new_kernel() {
    uint32_t id = wanted_kernel_;
    if (id != 0) {
        if (id / kPageKernels >= kPages) return nullptr;
    } else if (!free_kernels_.empty()) {
        id = free_kernels_.back();
        free_kernels_.pop_back();
    } else {
        id = next_kernel_;
        if (id / kPageKernels >= kPages) return nullptr;
        ++next_kernel_;
    }
    std::atomic<LoadedKernel*>& page = pages_[id / kPageKernels];
    if (!page.load()) page.store(new LoadedKernel[kPageKernels], std::memory_order_release);
    LoadedKernel* kernel = find(id);
    kernel->id = id;
    return kernel;
}

std::string CodeTable::name_in(CUmodule module, const std::string& symbol) const {
    std::vector<ImagePointer> images;
    {
        std::lock_guard lock(mutex_);
        for (const auto& [id, image] : images_) images.push_back(image);
    }
    for (const ImagePointer& image : images) {
        // try_to_lock: a thread that fetches a kernel may be in a driver call that never returns.
        const std::unique_lock lock(image->mutex, std::try_to_lock);
        if (!lock || !module || (image->holder != module && image->beside.module != module)) continue;
        const jit::Decision& decided = image->beside.module == module ? image->beside.form : image->form;
        if (decided.compiled)
            for (const jit::CompiledKernel& form : decided.compiled->kernels)
                if (form.managed == symbol) return form.symbol;
        for (const auto& [name, kernel] : image->kernels)
            for (const Reuse reuse : kReuses)
                if (managed_symbol(name, reuse) == symbol) return name;
        return symbol;
    }
    return {};
}

void CodeTable::clear() {
    times_.clear();
    links_.clear();
    std::map<uint32_t, ImagePointer> images;
    {
        std::lock_guard lock(mutex_);
        images.swap(images_);
    }
    for (auto& [id, image] : images) {
        withdraw(*image);
        unload(*image);
    }
    graphs_print_.store(false);
    limits_.clear();
    preferences_.clear();
}

}  // namespace smt::runtime::server
