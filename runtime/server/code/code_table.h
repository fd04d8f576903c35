// A session's code: images (modules and libraries) and the kernels fetched from them, by the numbers that the
// client uses. Any thread.
//
// The kernels' table never moves, so a launch finds its kernel without a lock. A launch holds its kernel
// (KernelUse) until the launch is with the driver or the dispatcher. An unload has three steps: the image is
// withdrawn, all work of the session completes, and the driver unloads. Numbers are reused. Entries are freed
// with the table.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/work.h"
#include "runtime/image/effects.h"
#include "runtime/image/printing.h"
#include "runtime/jit/decision.h"
#include "runtime/jit/opened.h"
#include "runtime/journal/journal.h"
#include "runtime/profiles/profile_cache.h"
#include "runtime/protocol/record.h"
#include "runtime/protocol/state.h"
#include "runtime/server/code/context_preferences.h"
#include "runtime/server/code/late_form.h"
#include "runtime/server/code/launch_times.h"
#include "runtime/server/code/limits.h"
#include "runtime/server/code/links.h"
#include "runtime/server/code/managed_variables.h"
#include "runtime/server/code/moved_variables.h"
#include "runtime/server/code/treatment.h"
#include "runtime/server/memory/memory_account.h"
#include "runtime/server/memory/tenant_addresses.h"
#include "runtime/server/objects/handles.h"
#include "runtime/thread/futex.h"

namespace smt::runtime::server {

class SpareImages;
class TenantMemory;

struct LoadedKernel {
    // Read by launches.
    std::atomic<uint32_t> users{0};
    std::atomic<bool> live{false};
    bool prints = false;                         // may call printf
    bool system_atomics = false;                 // has atomics of system scope; known if its PTX was read
    std::shared_ptr<const std::string> refused;  // by the session's fence: why, for people; null: it is not
    uint32_t id = 0;
    CUfunction function = nullptr;
    uint32_t parameter_bytes = 0;
    uint32_t journal_name = 0;
    uint32_t registers = 0;
    uint32_t static_shared = 0;
    uint32_t local_bytes = 0;
    // The managed form; null: none. Once set it stays. A launch reads it once.
    std::atomic<dispatch::ManagedFunction*> managed{nullptr};
    mutable dispatch::ManagedFunction form;  // what `managed` leads to; `known` is there without it
    std::shared_ptr<const ptx::Effects>
        checked;  // of a form with checks inside its blocks; null: it has none
    dispatch::DoorParameter door;
    mutable dispatch::ManagedFunction at_door;  // the kernel itself, stopped by its door; function null: not
    // Names of the journal: managed by source or PTX, valid with `managed`; unmanaged, and why.
    uint32_t managed_treatment = 0;
    std::atomic<uint32_t> treatment{0};
    // Service::compiled() when a launch last looked for the managed form of its image.
    static constexpr uint64_t kSettled = ~0ull, kNeverLooked = ~0ull - 1;
    mutable std::atomic<uint64_t> looked{kSettled};  // kSettled: none is awaited
    // Read by other calls.
    CUkernel kernel = nullptr;  // null for a module's function
    uint32_t image = 0;
    std::string name;
    std::vector<protocol::ParameterInfo> parameters;
    // Attributes that the program set, and what they were before; guarded by CodeTable::attributes().
    mutable std::map<int, int> set, before;
};

// An image as the program loaded it, for a process that takes the session over: the record (kModuleLoad, or
// without it the image cannot be loaded again) and what was uploaded for it.
struct ImageOrigin {
    std::string record;
    std::vector<char> bytes;
    int architecture = 0;  // the device's: 90
    Charge charge;         // of `bytes`
};

struct Image {
    protocol::ImageOwner owner;
    std::unique_ptr<ImageOrigin> origin;  // null: not kept. Set by its load, before other threads know it
    // Where a takeover is expected: why the image's variables would be others in another process, for people.
    std::string variables_stay;
    MovedVariables moved;
    std::set<std::string, std::less<>> constant_names;            // of its __constant__ variables
    std::map<std::string, WatchedConstants::Constant> constants;  // whose addresses the program has
    CUmodule module = nullptr;                                    // of a library: set on first use
    CUlibrary library = nullptr;
    CUmodule holder = nullptr;  // the driver's module of its kernels; set by the first fetch
    image::Printing printing;
    std::string identity;  // of the program's bytes, for profiles (profiles/profile_cache.h)
    ManagedVariables managed;
    std::unordered_map<std::string, jit::Door> doors;  // by kernel
    jit::Decision form;  // compiled: the result that this managed form comes from
    std::set<std::string, std::less<>> system_atomics;  // jit::Opened's
    std::vector<jit::FencedFunction> fenced;            // of a session with a fence
    uint32_t number = 0;                                // the client's
    uint64_t spare_bytes = 0;                           // of its code and variables
    Charge charge;                                      // of its variables
    std::mutex mutex;       // guards what follows, `module` and `holder`; held while a kernel is fetched
    std::string spare_key;  // another session may have it later (spare_images.h); empty: none may
    std::set<std::string> loaded;    // kernels that the driver has loaded
    std::unique_ptr<LateForm> late;  // null: no managed form is awaited
    Beside beside;
    bool gone = false;
    std::unordered_map<std::string, LoadedKernel*> kernels;
};
using ImagePointer = std::shared_ptr<Image>;

class CodeTable {
public:
    CodeTable(dispatch::Dispatcher& dispatcher, const dispatch::Tenant& tenant, TenantMemory& memory,
              journal::Writer& journal, profiles::ProfileCache& book, Handles& handles, SpareImages& spare);
    ~CodeTable();
    CodeTable(const CodeTable&) = delete;
    CodeTable& operator=(const CodeTable&) = delete;

    // The driver's handle of a number; INVALID_HANDLE: none.
    CUresult module(uint32_t id, CUmodule* module) const;
    CUresult module(Image& image, CUmodule* module) const;  // caller holds image.mutex

    uint32_t add(protocol::ImageOwner owner, CUmodule module, CUlibrary library, image::Printing printing,
                 std::set<std::string, std::less<>> system_atomics, std::string identity,
                 ManagedVariables managed, jit::Decision form, std::vector<jit::Door> doors = {},
                 Charge charge = {});
    ImagePointer image(uint32_t id) const;  // null: none
    // Removes an image: no later launch finds its kernels, and earlier ones are with the driver or the
    // dispatcher when this returns. Null: no such image.
    ImagePointer withdraw(uint32_t id);
    // Unloads a withdrawn image, or keeps it for another session. The session's work enqueued before
    // withdraw() returned must be complete.
    CUresult unload(Image& image);
    // Allows the program to pass a variable's address in calls until the image is unloaded. `address` becomes
    // what the program is to get, which is another one for a constant after a takeover. Caller holds
    // image.mutex, as after Call::module().
    CUresult give_out(Image& image, const std::string& name, CUdeviceptr* address, uint64_t bytes);
    // For an image that was just added and has no managed form.
    void await_form(uint32_t id, std::unique_ptr<LateForm> late);
    // End the wait. Caller holds image.mutex, and a quiesce window for the first. From take_form() on
    // launches run kernels from there; those that have a managed form already keep it.
    void take_form(Image& image, Beside beside);
    void give_up_form(Image& image, const std::string& reason, jit::ResultPointer refused);
    // Held while an attribute of a kernel and of its managed form is set.
    std::mutex& attributes() { return attributes_; }
    // Sets an attribute of a kernel's managed form to what the program set for the kernel, as far as the form
    // can have it. True: it has changed. Caller holds attributes(), or other threads do not know the kernel.
    bool set_attribute(const dispatch::ManagedFunction& form, CUfunction_attribute attribute,
                       int value) const;

    // The kernel of that name; the first call fetches it from the driver. Valid until its image is unloaded.
    CUresult fetch(uint32_t image_id, const char* name, LoadedKernel** kernel);

    LoadedKernel* find(uint32_t id) const {
        uint32_t page = id / kPageKernels;
        if (page >= kPages) return nullptr;
        LoadedKernel* kernels = pages_[page].load(std::memory_order_acquire);
        return kernels ? &kernels[id % kPageKernels] : nullptr;
    }
    // CTAs of a cluster in all launches of the function, by its attributes; 1: it has none.
    static uint32_t required_cluster(const DriverApi& driver, CUfunction function);
    // The kernel of a driver's handle, as a graph node returns it; null: not of this session.
    LoadedKernel* find(CUfunction function, CUkernel kernel) const;
    // The kernel whose form that is; null: none of this session.
    const LoadedKernel* find(const dispatch::ManagedFunction& form) const;

    // The program's name of a kernel, by the symbol of that kernel or of its managed form. Empty: `module` is
    // none of the session's images.
    std::string name_in(CUmodule module, const std::string& symbol) const;
    // The function of a fenced image, as its fence counts them; empty: there is none such.
    std::string function_in(uint64_t image, uint32_t function) const;

    // Takeover. save(): the session's threads stand still. What it writes goes to restore_images(), and then
    // to restore_kernels(), with functions that load an image again, as the one of its number, and set a
    // kernel's attribute.
    std::string why_not_carried() const;  // for people; empty: nothing
    void save(protocol::StateWriter& out);
    struct Loading {
        // Begins with what load() does of all images, until the object is gone. They stay where they are.
        std::function<std::shared_ptr<void>(const std::vector<std::string_view>& images)> prepare;
        std::function<CUresult(const std::string& record, std::vector<char> bytes)> load;
        std::function<CUresult(const protocol::FunctionAttribute& attribute)> set;
    };
    CUresult restore_images(protocol::Reader& in, const Loading& loading);  // first
    CUresult restore_kernels(protocol::Reader& in, const Loading& loading);
    // What the kernels of an image read and write. Problem: that is not known.
    std::variant<smt::image::Effects, smt::image::Problem> effects(uint32_t image) const;
    // While restore_images() loads one: its variables, of which the values are in the session's memory. Null:
    // it does not.
    const MovedVariables* taken_variables() const { return taken_variables_ ? &*taken_variables_ : nullptr; }

    void clear();  // unloads everything
    LaunchTimes& times() { return times_; }
    Limits& limits() { return limits_; }
    ContextPreferences& preferences() { return preferences_; }
    Links& links() { return links_; }
    const ExceptionNames& exceptions() const { return exceptions_; }
    // Whether a graph of the session contains a kernel that prints.
    std::atomic<bool>& graphs_print() { return graphs_print_; }
    // Set by the launch of a kernel that prints, cleared by the copy that waits for it.
    std::atomic<bool>& output_expected() { return output_expected_; }

private:
    static constexpr uint32_t kPageKernels = 256;
    static constexpr uint32_t kPages = 4096;

    CUresult restore_constant(Image& image, const std::string& name, const WatchedConstants::Constant& saved);
    LoadedKernel* new_kernel();
    CUresult load(Image& image) const;  // caller holds image.mutex
    CUresult describe(Image& image, const char* name, LoadedKernel& kernel, std::string* treatment) const;
    CUresult look_up(const Image& image, const char* name, CUfunction* function, CUkernel* kernel) const;
    static void add_door(const Image& image, const char* name, const LoadedKernel& kernel,
                         std::string* treatment);
    void give_door(LoadedKernel& kernel) const;
    static std::shared_ptr<const std::string> why_refused(const Image& image, const char* name);
    static void find_door(const Image& image, const char* name, LoadedKernel& kernel);
    std::string find_managed(const Image& image, const char* name, LoadedKernel& kernel) const;
    std::string find_written(const Image& image, const char* name, LoadedKernel& kernel) const;
    bool take_managed(CUmodule module, const std::string& symbol, Reuse reuse, LoadedKernel& kernel) const;
    void publish(LoadedKernel& kernel, const LoadedKernel& found, const std::string& treatment);
    void withdraw(Image& image);
    bool becomes_spare(Image& image);  // caller holds image.mutex

    dispatch::Dispatcher& dispatcher_;
    const dispatch::Tenant& tenant_;
    TenantMemory& memory_;
    const DriverApi& driver_;
    journal::Writer& journal_;
    profiles::ProfileCache& profile_cache_;
    Handles& handles_;
    SpareImages& spare_;
    const ExceptionNames exceptions_;
    std::array<std::atomic<LoadedKernel*>, kPages> pages_{};

    mutable std::mutex mutex_;
    std::map<uint32_t, ImagePointer> images_;
    std::unordered_map<void*, LoadedKernel*> by_handle_;  // CUfunction and CUkernel
    std::vector<uint32_t> free_kernels_;
    uint32_t next_kernel_ = 1;  // 0 is no kernel
    uint32_t next_image_ = 1;
    std::optional<MovedVariables> taken_variables_;
    uint32_t wanted_kernel_ = 0;  // while restore_kernels() fetches: the number that the kernel gets
    std::mutex attributes_;
    std::atomic<bool> graphs_print_{false};
    std::atomic<bool> output_expected_{false};
    LaunchTimes times_;
    Limits limits_;
    ContextPreferences preferences_;
    Links links_;
};

// Keeps a kernel from being unloaded. False: no such kernel.
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
    // An unload clears `live`, then reads `users`. So either it sees that this use has ended, or this thread
    // sees that the unload waits and wakes it.
    void leave() {
        if (kernel_->users.fetch_sub(1) == 1 && !kernel_->live.load()) futex_wake_all(kernel_->users);
    }

    LoadedKernel* kernel_;
};

}  // namespace smt::runtime::server
