// Images: their way from the client into a buffer of the lane, and into the driver.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/dispatch/quiesce.h"
#include "runtime/image/movable.h"
#include "runtime/jit/digest.h"
#include "runtime/protocol/layout.h"
#include "runtime/protocol/try.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/code/jit_options.h"
#include "runtime/server/handlers/code/fencing.h"
#include "runtime/server/handlers/code/late_form.h"
#include "runtime/server/handlers/code/machine_code.h"
#include "runtime/server/handlers/code/managed_image.h"
#include "runtime/server/handlers/code/opening.h"
#include "runtime/server/handlers/code/variable_move.h"
#include "runtime/server/handlers/handlers.h"
#include "runtime/server/lane.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/memory/tenant_ranges.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

using protocol::ImageOwner;

namespace {

CUresult load(Call& call, ImageOwner owner, const void* image, JitOptions& jit, CUmodule* module,
              CUlibrary* library) {
    const DriverApi& driver = call.driver;
    if (owner == ImageOwner::kLibrary)  // of which nothing is loaded yet
        return driver.cuLibraryLoadData(library, image, jit.names(), jit.values(), jit.count(), nullptr,
                                        nullptr, 0);
    const dispatch::Quiesce others(call.session.server().dispatcher(), call.session.dispatched());
    return driver.cuModuleLoadDataEx(module, image, jit.count(), jit.names(), jit.values());
}

CUresult load_or_trim(Call& call, ImageOwner owner, const void* image, JitOptions& jit, CUmodule* module,
                      CUlibrary* library) {
    const CUresult status = load(call, owner, image, jit, module, library);
    if (status != CUDA_ERROR_OUT_OF_MEMORY) return status;
    TenantRanges::trim_all();
    return load(call, owner, image, jit, module, library);
}

// Memory in the arena for the code's managed variables, if it has any.
CUresult place_variables(Call& call, std::vector<char>& code, ManagedVariables* managed) {
    uint64_t memory = 0;
    if (managed->bytes() == 0) return CUDA_SUCCESS;
    SMT_TRY(call.session.arena().allocate_host(managed->bytes(), true, &memory));
    managed->place(code, memory);
    return CUDA_SUCCESS;
}

// The code that the driver gets, in the image's place, and what is known of it. PTX becomes machine code,
// which is opened in turn.
CUresult prepare(Call& call, std::vector<char>& image, jit::Opened& opened, const jit::OwnForm& own,
                 JitOptions& jit) {
    SMT_TRY(take_code(call, opened, image));
    if (opened.code != jit::Code::kPtx || !worker_makes_machine_code(call)) return CUDA_SUCCESS;
    SMT_TRY(to_machine_code(call, opened, image, jit, own));
    SMT_TRY(open(call, {image.data(), image.size()}, &jit, &opened));
    return take_code(call, opened, image);
}

// Of all that a load depends on. Empty: what becomes of the image is of use to no other session.
std::string spare_key(Call& call, ImageOwner owner, const std::vector<char>& code, const jit::Opened& opened,
                      const JitOptions& jit) {
    if (opened.uses_variables || opened.code == jit::Code::kOther || call.session.fence() ||
        !call.session.server().spare_images().keeps(code.size() + opened.variable_bytes))
        return {};
    jit::Digest all;
    all.add(std::to_string(static_cast<uint32_t>(owner))).add({code.data(), code.size()}).add(jit.target());
    for (const std::string& option : jit.compiler_options()) all.add(option);
    return all.hex();
}

struct Forms {
    jit::Decision loaded;       // `compiled`: what the image is the managed form of; null: the program's own
    jit::Decision coming = {};  // to take the place of the program's own; neither known nor awaited: none is
};

// Of what the program gave.
struct Given {
    std::string identity;  // for profiles
    std::vector<jit::FencedFunction> fenced;
    jit::OwnForm own;  // if it is fenced
    std::set<std::string, std::less<>> system_atomics;
};

// Keeps the upload for a process that may take the session over. Null: none may, or the program has no more
// host memory.
std::unique_ptr<ImageOrigin> keep_origin(Call& call, std::string record) {
    if (!call.session.server().expects_takeover()) return nullptr;
    const std::vector<char>& upload = call.lane.upload();
    auto origin = std::make_unique<ImageOrigin>();
    if (!origin->charge.take(call.session.host_account(), upload.size())) return nullptr;
    origin->bytes = upload;
    origin->record = std::move(record);
    origin->architecture = architecture_of(call);
    return origin;
}

// As it came, but for captures: they are over.
std::string record_of(protocol::ModuleLoad request, const char* options) {
    request.captures = 0;
    request.library_option_count = 0;
    std::string record(reinterpret_cast<const char*>(&request), sizeof request);
    return record.append(options, request.jit_option_count * sizeof(protocol::JitOption));
}

CUresult load_bytes(Call& call, ImageOwner owner, std::vector<char> image, jit::Opened opened,
                    const Given& given, JitOptions& jit, Forms forms, uint32_t* object) {
    bool comes = forms.coming.compiled || forms.coming.awaited;
    if (comes && opened.uses_variables) {  // the two images' would differ
        forms.loaded.reason +=
            "; it is taken at the next load, as the image's code uses variables of the image";
        comes = false;
    }
    Charge unpacked, charge;
    const uint64_t bytes = opened.unpacked.size() + given.own.ptx.size();
    if (!unpacked.take(call.session.host_account(), bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    SMT_TRY(prepare(call, image, opened, given.own, jit));
    SMT_TRY(call.session.memory().charge(opened.variable_bytes, &charge));
    image.push_back(0);  // the driver reads text up to its NUL
    ManagedVariables managed(std::move(opened.managed));
    uint64_t variables = 0;
    const bool placed = call.session.device().place_managed([&](uint64_t bytes) {
        if (variables) call.session.arena().free_host(std::exchange(variables, 0));  // of a load that failed
        call.session.arena().allocate_host(bytes, true, &variables);
        return variables;
    });
    if (!placed) {
        SMT_TRY(place_variables(call, image, &managed));
        variables = managed.memory();
    }
    VariableMove others(call, opened);
    CUmodule module = nullptr;
    CUlibrary library = nullptr;
    CUresult status = others.begin(image);
    std::string key = variables ? std::string() : spare_key(call, owner, image, opened, jit);
    std::optional<SpareImage> spare;
    if (!key.empty()) spare = call.session.server().spare_images().take(key);
    if (spare)
        module = spare->module, library = spare->library;
    else if (status == CUDA_SUCCESS)
        status = load_or_trim(call, owner, image.data(), jit, &module, &library);
    if (placed) {
        call.session.device().place_managed(nullptr);
        managed.keep(variables);
    }
    if (status == CUDA_SUCCESS) status = others.end();
    if (status == CUDA_SUCCESS) {
        *object = call.session.code().add(
            owner, module, library, std::move(opened.printing), given.system_atomics, given.identity,
            std::move(managed), std::move(forms.loaded), std::move(opened.doors), std::move(charge));
        if (const ImagePointer made = call.session.code().image(*object)) {
            others.give(*made);
            if (!made->moved.memory() && !made->managed.memory()) made->spare_key = std::move(key);
            made->spare_bytes = image.size() + opened.variable_bytes;
            if (spare) made->loaded = std::move(spare->kernels);
            SMT_TRY(close_fence(call, *made, *object, given.fenced));
        }
        if (*object && spare) call.session.note("an image was loaded before, and no program had it");
        if (*object && comes) await_form(call, *object, std::move(forms.coming), given.own, jit);
        if (*object) return CUDA_SUCCESS;
        status = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (library)
        call.driver.cuLibraryUnload(library);
    else if (module)
        call.driver.cuModuleUnload(module);
    if (variables) call.session.arena().free_host(variables);
    return status;
}

// NOT_READY: its machine code is not made yet, and no load waits for that.
CUresult load_managed(Call& call, ImageOwner owner, std::vector<char> image, const Given& given,
                      JitOptions& jit, jit::Decision form, uint32_t* object) {
    jit::Opened opened;
    const std::string_view bytes(image.data(), image.size());
    SMT_TRY(open(call, bytes, &jit, &opened));
    if (!waits_for_forms(call) && is_being_assembled(call, opened, bytes, jit, given.own))
        return CUDA_ERROR_NOT_READY;
    return load_bytes(call, owner, std::move(image), std::move(opened), given, jit, {std::move(form)},
                      object);
}

// In managed form where there is one. It has all that the image has, so it stands in its place.
CUresult load_into(Call& call, const protocol::ModuleLoad& request, JitOptions& jit, uint32_t* object) {
    std::vector<char> image = std::move(call.lane.upload());
    call.lane.upload().clear();
    const Charge upload = std::move(call.lane.upload_charge());
    std::string_view bytes(image.data(), image.size());
    jit::Opened opened;
    SMT_TRY(open_given(call, bytes, &jit, &opened));
    if (call.session.fence()) {  // nothing goes back to what the program gave
        image.assign(opened.choices.ptx.text.begin(), opened.choices.ptx.text.end());
        bytes = {image.data(), image.size()};
    }
    const Given given{call.session.server().profiles().identify(bytes), std::move(opened.fenced),
                      std::move(opened.own), std::move(opened.system_atomics)};
    Forms forms{find_managed(call, bytes, std::move(opened.choices), request.captures)};
    jit::Decision& form = forms.loaded;
    forms.coming.awaited = std::exchange(form.awaited, std::nullopt);
    if (const jit::ResultPointer compiled = form.compiled) {
        std::vector<char> managed(compiled->image.begin(), compiled->image.end());
        CUresult status = load_managed(call, request.owner, std::move(managed), given, jit, form, object);
        if (status == CUDA_SUCCESS) {
            call.session.note(fmt::format("an image is loaded in managed form{} ({} kernels)",
                                          form.by_ptx() ? ", managed by PTX" : "",
                                          managed_kernels(*compiled)));
            return status;
        }
        const bool being_assembled = status == CUDA_ERROR_NOT_READY;
        if (being_assembled) forms.coming = std::move(form);
        form = {};
        form.reason = being_assembled ? kNotMade
                                      : fmt::format("its managed form is error {} of the driver",
                                                    static_cast<int>(status));
        call.session.note("an image is loaded as the program made it: " + form.reason);
        jit.start_again();
    }
    return load_bytes(call, request.owner, std::move(image), std::move(opened), given, jit, std::move(forms),
                      object);
}

}  // namespace

CUresult handle_upload_begin(Call& call) {
    protocol::UploadBegin request;
    if (!decode(call, request) || request.bytes == 0 || request.bytes > protocol::kMostImageBytes)
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<char>().swap(call.lane.upload());  // what was sent before and never used
    if (!call.lane.upload_charge().take(call.session.host_account(), request.bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    std::vector<char> buffer;
    buffer.reserve(request.bytes + 1);  // untouched pages cost nothing
    call.lane.upload() = std::move(buffer);
    return CUDA_SUCCESS;
}

// Slots arrive in order. A slot is free again as soon as its bytes are copied.
CUresult handle_upload_slot(Call& call) {
    protocol::UploadSlot request;
    uint64_t slot = 0;
    uint32_t word = 0;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    if (!call.lane.use_slot(request.slot, request.done_value, &slot, &word)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<char>& upload = call.lane.upload();
    bool fits = request.at == upload.size() && request.bytes <= protocol::kStagingSlotBytes &&
                upload.size() + request.bytes < upload.capacity();
    if (fits)
        upload.insert(upload.end(), reinterpret_cast<char*>(slot),
                      reinterpret_cast<char*>(slot) + request.bytes);
    return complete_slot(call, word, request.done_value, fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult handle_download(Call& call) {
    protocol::Download request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    const std::vector<char>& image = call.lane.download();
    if (request.at > image.size() || request.bytes > image.size() - request.at)
        return CUDA_ERROR_INVALID_VALUE;
    call.out.bytes(image.data() + request.at, request.bytes);
    return CUDA_SUCCESS;
}

// The reply has the logs, also if the load fails. Library options are hints about the caller's copy of the
// image or refer to its functions. Neither applies in the server.
CUresult handle_module_load(Call& call) {
    auto request = call.in.scalar<protocol::ModuleLoad>();
    auto* options = call.in.take(uint64_t{request.jit_option_count} * sizeof(protocol::JitOption));
    call.in.take(uint64_t{request.library_option_count} * sizeof(protocol::JitOption));
    if (!call.in.good()) return CUDA_ERROR_INVALID_VALUE;
    JitOptions jit;
    if (!jit.read(reinterpret_cast<const protocol::JitOption*>(options), request.jit_option_count,
                  request.log_bytes, request.error_log_bytes))
        return CUDA_ERROR_INVALID_VALUE;
    uint32_t object = 0;
    std::unique_ptr<ImageOrigin> origin = keep_origin(call, record_of(request, options));
    CUresult status = load_into(call, request, jit, &object);
    if (const ImagePointer image = call.session.code().image(object)) image->origin = std::move(origin);
    call.out.scalar(protocol::Loaded{object, jit.log_bytes(), jit.error_log_bytes(), jit.wall_time_ms()});
    call.out.bytes(jit.log(), jit.log_bytes());
    call.out.bytes(jit.error_log(), jit.error_log_bytes());
    return status;
}

CUresult handle_module_unload(Call& call) {
    protocol::ObjectRef request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    ImagePointer image = call.session.code().withdraw(request.object);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    SMT_TRY(call.session.streams().synchronize_all());
    call.session.streams().forget_code();
    CUresult status = call.session.code().unload(*image);
    if (status == CUDA_SUCCESS && image->managed.memory())
        call.session.arena().free_host(image->managed.memory());
    if (status == CUDA_SUCCESS && image->moved.memory()) call.session.memory().free(image->moved.memory());
    return status;
}

}  // namespace smt::runtime::server::handlers
