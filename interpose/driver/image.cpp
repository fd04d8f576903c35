// The upload of an image to the server. See image.h.
#include "interpose/driver/image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "interpose/capture/message.h"
#include "interpose/driver/call_despite_error.h"
#include "interpose/driver/order.h"
#include "interpose/driver/ranges.h"
#include "interpose/driver/staging.h"
#include "interpose/process/session.h"
#include "interpose/transport/answers.h"
#include "runtime/protocol/try.h"

namespace smt::interpose {

using namespace protocol;

CUresult upload(const void* data, uint64_t bytes) {
    {
        RemoteCall begin(Op::kUploadBegin, sizeof(UploadBegin));
        if (!begin.open()) return begin.status();
        begin.in(UploadBegin{bytes});
        SMT_TRY(begin.wait());
    }
    for (uint64_t at = 0; at < bytes; at += kStagingSlotBytes) {
        uint64_t part = bytes - at < kStagingSlotBytes ? bytes - at : kStagingSlotBytes;
        driver::StagingSlot slot;
        SMT_TRY(driver::acquire_slot(slot));
        std::memcpy(slot.data, static_cast<const char*>(data) + at, part);
        RemoteCall call(Op::kUploadSlot, sizeof(UploadSlot));
        if (call.open()) call.in(UploadSlot{at, part, slot.index, 0, slot.done_value});
        if (CUresult status = call.post_quietly()) return driver::abandon_slot(slot), status;
    }
    return CUDA_SUCCESS;
}

CUresult read_file(const char* path, char*& data, uint64_t& bytes) {
    data = nullptr;
    int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno == EACCES ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_FILE_NOT_FOUND;
    struct stat facts;
    CUresult status = CUDA_ERROR_FILE_NOT_FOUND;
    if (::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && uint64_t(facts.st_size) <= kMostImageBytes) {
        bytes = facts.st_size;
        data = static_cast<char*>(std::malloc(bytes + 1));
        status = data ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (uint64_t at = 0; status == CUDA_SUCCESS && at < bytes;) {
        ssize_t got = ::read(file, data + at, bytes - at);
        if (got > 0)
            at += got;
        else if (got == 0 || errno != EINTR)
            status = CUDA_ERROR_OPERATING_SYSTEM;
    }
    ::close(file);
    if (status != CUDA_SUCCESS) return std::free(data), data = nullptr, status;
    data[bytes] = 0;
    return CUDA_SUCCESS;
}

CUresult load_image(ImageOwner owner, const void* data, uint64_t bytes, JitOptions& jit,
                    const JitOption* library_options, uint32_t library_option_count, Image*& image) {
    SMT_TRY(upload(data, bytes));
    uint64_t options_bytes = (uint64_t(jit.count()) + library_option_count) * sizeof(JitOption);
    RemoteCall call(Op::kModuleLoad, sizeof(ModuleLoad) + options_bytes);
    if (!call.open()) return call.status();
    call.in(ModuleLoad{owner, jit.count(), library_option_count, jit.log_bytes(), jit.error_log_bytes(),
                       capture::shown()});
    call.in_bytes(jit.scalars(), jit.count() * sizeof(JitOption));
    call.in_bytes(library_options, library_option_count * sizeof(JitOption));
    CUresult status = call.wait();
    Loaded loaded{};
    if (call.reply().left() >= sizeof(Loaded)) {
        call.out(&loaded);
        const char* info = call.reply().take(loaded.log_bytes);
        const char* error = call.reply().take(loaded.error_log_bytes);
        jit.answer(info, info ? loaded.log_bytes : 0, error, error ? loaded.error_log_bytes : 0,
                   loaded.wall_time_ms);
    }
    if (status != CUDA_SUCCESS) return status;
    if (!call.reply().good()) return CUDA_ERROR_UNKNOWN;
    image = new_image();
    if (!image) return CUDA_ERROR_OUT_OF_MEMORY;
    image->id = loaded.object;
    image->owner = owner;
    return CUDA_SUCCESS;
}

CUresult unload_image(Image* image, bool* released) {
    if (released) *released = false;
    CUresult earlier = order_after_all();
    forget_answers();  // the next image's kernels may have the same numbers
    CUresult status = call_despite_error(Op::kModuleUnload, ObjectRef{image->id, image->owner}, earlier);
    if (status != CUDA_SUCCESS) return status;
    driver::drop_ranges(driver::Memory::kGlobal, reinterpret_cast<uint64_t>(image));
    driver::drop_ranges(driver::Memory::kManaged, reinterpret_cast<uint64_t>(image));
    release(image);
    if (released) *released = true;
    return earlier;
}

namespace {

// Of a module's variables only the managed ones are in the arena.
bool in_arena(const Session& session, uint64_t address) {
    return address - reinterpret_cast<uint64_t>(session.arena_base()) < kArenaBytes;
}

}  // namespace

CUresult image_global(Image& image, Op op, const char* name, CUdeviceptr* address, size_t* bytes) {
    if (!name || (!address && !bytes)) return CUDA_ERROR_INVALID_VALUE;
    RemoteCall call(op, sizeof(ObjectRef) + 24 + std::strlen(name));
    if (!call.open()) return call.status();
    call.in(ObjectRef{image.id, image.owner});
    call.in_string(name);
    SMT_TRY(call.wait());
    MemAllocated found{};
    call.out(&found);
    driver::Range known;
    const bool listed = driver::find_range(found.address, known) && known.session == image.session;
    if (found.bytes && !listed) {
        known = {};
        known.base = found.address;
        known.bytes = found.bytes;
        known.handle = reinterpret_cast<uint64_t>(&image);
        known.memory =
            in_arena(*image.session, found.address) ? driver::Memory::kManaged : driver::Memory::kGlobal;
        driver::add_range(known);  // without room, only pointer attributes lack it
    }
    if (address) *address = found.address;
    if (bytes) *bytes = found.bytes;
    return CUDA_SUCCESS;
}

}  // namespace smt::interpose
