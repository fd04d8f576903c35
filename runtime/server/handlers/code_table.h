// A session's code: images (modules and libraries) and the kernels fetched from them, by the small
// numbers the client knows them by.
//
// Kernels stand in a table that never moves, so a launch finds its kernel without a lock; a launch
// holds its kernel (KernelUse) while it is handed to the driver or the dispatcher. So an unload has three steps: the image is
// withdrawn, all work of the session is waited for, and the driver unloads.
// Numbers are reused, entries are freed with the table.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/work.h"
#include "runtime/image/printing.h"
#include "runtime/jit/decision.h"
#include "runtime/journal/journal.h"
#include "runtime/profiles/profile_cache.h"
#include "runtime/protocol/record.h"
#include "runtime/server/futex.h"
#include "runtime/server/handlers/context_preferences.h"
#include "runtime/server/handlers/launch_times.h"
#include "runtime/server/handlers/limits.h"
#include "runtime/server/handlers/links.h"
#include "runtime/server/handlers/managed_variables.h"
#include "runtime/server/handlers/treatment.h"
#include "runtime/server/handles.h"
#include "runtime/server/memory_account.h"

namespace smt::runtime::server::handlers {

class TenantMemory;

struct LoadedKernel {
    // What a launch reads.
    std::atomic<uint32_t> users{0};
    std::atomic<bool> live{false};
    bool prints = false;  // may call printf
    bool system_atomics = false;   // for the whole system; known where PTX was read
    uint32_t id = 0;
    CUfunction function = nullptr;
    uint32_t parameter_bytes = 0;
    uint32_t journal_name = 0;
    uint32_t treatment = 0;   // in the journal's names: managed by what, or unmanaged and why
    uint32_t registers = 0;
    uint32_t static_shared = 0;
    uint32_t local_bytes = 0;
    mutable dispatch::ManagedFunction managed;
    // What the rest reads.
    CUkernel kernel = nullptr;  // null for a module's function
    uint32_t image = 0;
    std::string name;
    std::vector<protocol::ParameterInfo> parameters;
};

struct Image {
    protocol::ImageOwner owner;
    CUmodule module = nullptr;  // of a library: once it is asked for
    CUlibrary library = nullptr;
    CUmodule holder = nullptr;  // the driver's module of its kernels, of a library too; once one was fetched
    image::Printing printing;
    std::string identity;  // of the bytes that the program gave, for profiles (profiles/profile_cache.h)
    ManagedVariables managed;
    jit::Decision form;   // compiled: what this is the managed form of an image by
    Charge charge;        // of its variables
    std::mutex mutex;  // kernels, module; held while a kernel is fetched
    bool gone = false;
    std::unordered_map<std::string, LoadedKernel*> kernels;
};
using ImagePointer = std::shared_ptr<Image>;

class CodeTable {
public:
    CodeTable(dispatch::Dispatcher& dispatcher, const dispatch::Tenant& tenant, TenantMemory& memory, journal::Writer& journal,
              profiles::ProfileCache& book, Handles& handles);
    ~CodeTable();
    CodeTable(const CodeTable&) = delete;
    CodeTable& operator=(const CodeTable&) = delete;

    // The driver's handle behind a number, INVALID_HANDLE if there is none.
    CUresult module(uint32_t id, CUmodule* module) const;
    CUresult module(Image& image, CUmodule* module) const;   // with image.mutex held

    uint32_t add(protocol::ImageOwner owner, CUmodule module, CUlibrary library, image::Printing printing, std::string identity,
                 ManagedVariables managed, jit::Decision form, Charge charge = {});
    ImagePointer image(uint32_t id) const;  // null: none
    // No launch finds its kernels any more, and those that had found one are with the driver or the dispatcher. Null: there is none.
    ImagePointer withdraw(uint32_t id);
    CUresult unload(Image& image);          // withdrawn, and the session's work since then is over
    // The program has a variable's address from now on and may name it in calls, until the image goes. With
    // image.mutex held, as by Call::module().
    CUresult give_out(Image& image, CUdeviceptr address, uint64_t bytes);
    // The kernel of that name, fetched from the driver the first time. Stays until its image goes.
    CUresult fetch(uint32_t image_id, const char* name, LoadedKernel** kernel);

    LoadedKernel* find(uint32_t id) const {
        uint32_t page = id / kPageKernels;
        if (page >= kPages) return nullptr;
        LoadedKernel* kernels = pages_[page].load(std::memory_order_acquire);
        return kernels ? &kernels[id % kPageKernels] : nullptr;
    }
    // The kernel behind the driver's own handle, which a graph node tells; null: none of ours.
    LoadedKernel* find(CUfunction function, CUkernel kernel) const;

    // The program's own name of a kernel, from the symbol of that kernel or of its managed form. Empty: none of the
    // session's images is that module of the driver.
    std::string name_in(CUmodule module, const std::string& symbol) const;

    void clear();  // unloads everything
    LaunchTimes& times() { return times_; }
    Limits& limits() { return limits_; }
    ContextPreferences& preferences() { return preferences_; }
    Links& links() { return links_; }
    const ExceptionNames& exceptions() const { return exceptions_; }
    // Whether any graph of the session holds a kernel that prints.
    std::atomic<bool>& graphs_print() { return graphs_print_; }
    // Whether a kernel that prints was launched since somebody last asked.
    std::atomic<bool>& output_expected() { return output_expected_; }

private:
    static constexpr uint32_t kPageKernels = 256;
    static constexpr uint32_t kPages = 4096;

    LoadedKernel* new_kernel();
    CUresult load(Image& image) const;   // with image.mutex held
    CUresult describe(Image& image, const char* name, LoadedKernel& kernel, std::string* treatment) const;
    CUresult look_up(const Image& image, const char* name, CUfunction* function, CUkernel* kernel) const;
    std::string find_managed(const Image& image, const char* name, LoadedKernel& kernel) const;
    std::string find_written(const Image& image, const char* name, LoadedKernel& kernel) const;
    bool take_managed(const Image& image, const std::string& symbol, Reuse reuse, LoadedKernel& kernel) const;
    void withdraw(Image& image);

    dispatch::Dispatcher& dispatcher_;
    const dispatch::Tenant& tenant_;
    TenantMemory& memory_;
    const DriverApi& driver_;
    journal::Writer& journal_;
    profiles::ProfileCache& profile_cache_;
    Handles& handles_;
    const ExceptionNames exceptions_;
    std::array<std::atomic<LoadedKernel*>, kPages> pages_{};

    mutable std::mutex mutex_;
    std::map<uint32_t, ImagePointer> images_;
    std::unordered_map<void*, LoadedKernel*> by_handle_;  // CUfunction and CUkernel
    std::vector<uint32_t> free_kernels_;
    uint32_t next_kernel_ = 1;  // 0 is no kernel
    uint32_t next_image_ = 1;
    std::atomic<bool> graphs_print_{false};
    std::atomic<bool> output_expected_{false};
    LaunchTimes times_;
    Limits limits_;
    ContextPreferences preferences_;
    Links links_;
};

// A kernel that cannot be unloaded meanwhile. False: there is no such kernel.
class KernelUse {
public:
    KernelUse(const CodeTable& code, uint32_t id) : kernel_(code.find(id)) {
        if (!kernel_) return;
        kernel_->users.fetch_add(1);
        if (kernel_->live.load()) return;
        leave();
        kernel_ = nullptr;
    }
    ~KernelUse() {
        if (kernel_) leave();
    }
    KernelUse(const KernelUse&) = delete;
    KernelUse& operator=(const KernelUse&) = delete;

    explicit operator bool() const { return kernel_ != nullptr; }
    const LoadedKernel* operator->() const { return kernel_; }
    const LoadedKernel& operator*() const { return *kernel_; }

private:
    // An unload says that the kernel is not live, then looks at the users: it sees that we are gone, or we see that it waits.
    void leave() {
        if (kernel_->users.fetch_sub(1) == 1 && !kernel_->live.load()) futex_wake_all(kernel_->users);
    }

    LoadedKernel* kernel_;
};

}  // namespace smt::runtime::server::handlers
