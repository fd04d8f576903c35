#include "interpose/driver/place.h"

#include "interpose/driver/queries.h"
#include "interpose/driver/ranges.h"
#include "interpose/transport/connect.h"
#include "runtime/protocol/object_id.h"

namespace smt::interpose {

namespace {

Session* place_of(const Image* image) {
    return image && image->owner == protocol::ImageOwner::kModule ? image->session : nullptr;
}

}  // namespace

Session* place_of(CUmodule handle) { return place_of(find_image(handle)); }

Session* place_of(CUfunction handle) {
    const Function* function = find_function(handle);
    return function ? place_of(function->image) : nullptr;
}

Session* place_of_memory(uint64_t address) {
    driver::Range range;
    return driver::find_range(address, range) ? range.session : nullptr;
}

Session* place_of_device(CUdevice device) {
    Session* session = place_of_session(device);
    if (!session && device_exists(device)) connect(device, &session);
    return session;
}

Session* place_of_object(uint64_t id) {
    const uint32_t count = session_count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i)
        if (sessions[i].header() &&
            protocol::is_of_session(id, reinterpret_cast<uint64_t>(sessions[i].arena_base())))
            return &sessions[i];
    return nullptr;
}

}  // namespace smt::interpose
