// The linker: what was added, one text after the other, is the image. And user objects.
#include <unordered_map>

#include "runtime/device/hosted/backend.h"

using namespace smt::runtime::device::hosted;

namespace {

struct Link {
    std::string image;
};
struct UserObject {
    uint64_t references;
    CUhostFn destroy;
    void* data;
};

struct LinksState {
    std::unordered_map<CUlinkState, std::unique_ptr<Link>> links;
    std::unordered_map<CUuserObject, std::unique_ptr<UserObject>> objects;
};

LinksState& links_state() {
    static LinksState* state = new LinksState;
    return *state;
}

}  // namespace

namespace smt::runtime::device::hosted {

CUresult let_go(CUuserObject handle, unsigned count) {
    Lock lock(world());
    auto found = links_state().objects.find(handle);
    if (found == links_state().objects.end() || found->second->references < count)
        return CUDA_ERROR_INVALID_VALUE;
    found->second->references -= count;
    if (found->second->references) return CUDA_SUCCESS;
    const UserObject object = *found->second;
    links_state().objects.erase(found);
    lock.unlock();
    object.destroy(object.data);
    return CUDA_SUCCESS;
}

void let_go(const UserReferences& objects) {
    for (const auto& [object, count] : objects) let_go(object, count);
}

bool retain(CUuserObject handle, unsigned count) {
    auto found = links_state().objects.find(handle);
    if (found == links_state().objects.end()) return false;
    found->second->references += count;
    return true;
}

}  // namespace smt::runtime::device::hosted

DRIVER_EXPORT CUresult cuLinkCreate_v2(unsigned, CUjit_option*, void**, CUlinkState* handle) {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuLinkCreate_v2);
    Lock lock(world());
    auto link = std::make_unique<Link>();
    *handle = reinterpret_cast<CUlinkState>(link.get());
    links_state().links[*handle] = std::move(link);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void* data, size_t bytes,
                                        const char* name, unsigned, CUjit_option*, void**) {
    DRIVER_ASKED(cuLinkAddData_v2, "%s bytes=%zu", name ? name : "", bytes);
    Lock lock(world());
    auto found = links_state().links.find(handle);
    if (found == links_state().links.end()) return CUDA_ERROR_INVALID_HANDLE;
    return backend().link(type, data, bytes, &found->second->image);
}
DRIVER_EXPORT CUresult cuLinkComplete(CUlinkState handle, void** image, size_t* bytes) {
    if (!image || !bytes) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuLinkComplete);
    Lock lock(world());
    auto found = links_state().links.find(handle);
    if (found == links_state().links.end()) return CUDA_ERROR_INVALID_HANDLE;
    *image = found->second->image.data();
    *bytes = found->second->image.size() + 1;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuLinkDestroy(CUlinkState handle) {
    DRIVER_ASKED(cuLinkDestroy);
    Lock lock(world());
    return links_state().links.erase(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_EXPORT CUresult cuUserObjectCreate(CUuserObject* handle, void* data, CUhostFn destroy,
                                          unsigned references, unsigned) {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuUserObjectCreate, "references=%u", references);
    Lock lock(world());
    auto object = std::make_unique<UserObject>(UserObject{references, destroy, data});
    *handle = reinterpret_cast<CUuserObject>(object.get());
    links_state().objects[*handle] = std::move(object);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuUserObjectRetain(CUuserObject handle, unsigned count) {
    DRIVER_ASKED(cuUserObjectRetain);
    Lock lock(world());
    return retain(handle, count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_EXPORT CUresult cuUserObjectRelease(CUuserObject handle, unsigned count) {
    DRIVER_ASKED(cuUserObjectRelease);
    return let_go(handle, count);
}
DRIVER_EXPORT CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject handle, unsigned count,
                                               unsigned flags) {
    DRIVER_ASKED(cuGraphRetainUserObject, "references=%u flags=%u", count, flags);
    Lock lock(world());
    if (!(flags & CU_GRAPH_USER_OBJECT_MOVE) && !retain(handle, count)) return CUDA_ERROR_INVALID_VALUE;
    reinterpret_cast<Graph*>(graph)->objects[handle] += count;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject handle, unsigned count) {
    DRIVER_ASKED(cuGraphReleaseUserObject, "references=%u", count);
    Lock lock(world());
    UserReferences& held = reinterpret_cast<Graph*>(graph)->objects;
    auto found = held.find(handle);
    if (found == held.end() || found->second < count) return CUDA_ERROR_INVALID_VALUE;
    found->second -= count;
    if (found->second == 0) held.erase(found);
    lock.unlock();
    return let_go(handle, count);
}
