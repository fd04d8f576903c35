// See handles.h.
#include "runtime/server/objects/handles.h"

#include <algorithm>
#include <utility>

#include "runtime/protocol/object_id.h"

namespace smt::runtime::server {

namespace {

// Bound of all references to one user object: the driver counts in 32 bits.
constexpr uint64_t kMostReferences = 1ull << 30;

// Kinds with the driver's number, or that of pools.h, as id.
bool named_by_value(HandleKind kind) {
    return kind == HandleKind::kTexture || kind == HandleKind::kSurface || kind == HandleKind::kPool;
}

size_t at(HandleKind kind) { return static_cast<size_t>(kind); }

template <typename Handle>
uint64_t value_of(Handle handle) {
    return reinterpret_cast<uint64_t>(handle);
}

template <typename Handle>
void destroy_with(CUresult (*function)(Handle), uint64_t handle) {
    if (!function) return;
    if constexpr (std::is_pointer_v<Handle>) {
        function(reinterpret_cast<Handle>(handle));
    } else {
        function(static_cast<Handle>(handle));
    }
}

void destroy(const DriverApi& driver, const Object& object) {
    const uint64_t handle = object.value;
    switch (object.kind) {
        case HandleKind::kGraph:
            return destroy_with(driver.cuGraphDestroy, handle);
        case HandleKind::kGraphExec:
            return destroy_with(driver.cuGraphExecDestroy, handle);
        case HandleKind::kArray:
            return destroy_with(driver.cuArrayDestroy, handle);
        case HandleKind::kMipmappedArray:
            return destroy_with(driver.cuMipmappedArrayDestroy, handle);
        case HandleKind::kTexture:
            return destroy_with(driver.cuTexObjectDestroy, handle);
        case HandleKind::kSurface:
            return destroy_with(driver.cuSurfObjectDestroy, handle);
        case HandleKind::kLink:
            return destroy_with(driver.cuLinkDestroy, handle);
        case HandleKind::kTextureReference:
            return destroy_with(driver.cuTexRefDestroy, handle);
        case HandleKind::kPhysicalMemory:
            for (uint64_t i = 0; i < object.references; ++i) destroy_with(driver.cuMemRelease, handle);
            return;
        case HandleKind::kUserObject:
            if (driver.cuUserObjectRelease && object.references) {
                driver.cuUserObjectRelease(reinterpret_cast<CUuserObject>(handle),
                                           static_cast<unsigned>(object.references));
            }
            return;
        case HandleKind::kGraphNode:         // destroyed with its graph
        case HandleKind::kPool:              // owned by TenantMemory
        case HandleKind::kSurfaceReference:  // destroyed with its module
        case HandleKind::kModule:            // owned by CodeTable
        case HandleKind::kCount:
            return;
    }
}

}  // namespace

Handles::Handles() : captures_family_(std::make_shared<Family>()) {}

ObjectPointer Handles::by_id(HandleKind kind, uint64_t id) const {
    auto found = ids_[at(kind)].find(id);
    return found == ids_[at(kind)].end() ? nullptr : found->second;
}

Object* Handles::by_value(HandleKind kind, uint64_t value) const {
    auto found = values_[at(kind)].find(value);
    return found == values_[at(kind)].end() ? nullptr : found->second;
}

// An object with the same value no longer exists: the driver has reused its handle.
Object* Handles::make(HandleKind kind, uint64_t value, bool own, Object* parent) {
    if (Object* before = by_value(kind, value)) remove(before);
    auto object = std::make_shared<Object>();
    object->kind = kind;
    object->value = value;
    object->id = named_by_value(kind) ? value : protocol::object_id(static_cast<uint32_t>(kind), ++next_);
    object->own = own;
    object->parent = parent;
    object->family = parent ? parent->family : std::make_shared<Family>();
    if (parent) parent->children.insert(object.get());
    values_[at(kind)][value] = object.get();
    return (ids_[at(kind)][object->id] = std::move(object)).get();
}

// The descendants are listed first, so that the table is unchanged if memory runs out.
void Handles::remove(Object* top) {
    std::vector<Object*> gone{top};
    for (size_t i = 0; i < gone.size(); ++i)
        gone.insert(gone.end(), gone[i]->children.begin(), gone[i]->children.end());
    if (top->parent) top->parent->children.erase(top);
    for (Object* object : gone) {
        for (const auto& [id, count] : object->user_objects) {
            ObjectPointer held = by_id(HandleKind::kUserObject, id);
            if (!held) continue;
            held->graph_references -= count;
            settle(held.get());
        }
        for (auto& [stream, capture] : captures_) {
            if (capture.graph == object) capture.graph = nullptr;
        }
        values_[at(object->kind)].erase(object->value);
        ids_[at(object->kind)].erase(object->id);  // a call that holds it keeps it alive
    }
}

void Handles::settle(Object* user_object) {
    if (user_object->references == 0 && user_object->graph_references == 0) remove(user_object);
}

Object* Handles::root_of(Object* object) {
    while (object->parent) object = object->parent;
    return object;
}

void Handles::set_family(Object* top, const FamilyPointer& family) {
    std::vector<Object*> left{top};
    while (!left.empty()) {
        Object* object = left.back();
        left.pop_back();
        object->family = family;
        left.insert(left.end(), object->children.begin(), object->children.end());
    }
}

uint64_t Handles::adopt(HandleKind kind, uint64_t value) {
    if (value == 0) return 0;
    std::lock_guard lock(mutex_);
    if (kind == HandleKind::kPhysicalMemory) {
        if (Object* known = by_value(kind, value)) return ++known->references, known->id;
    }
    return make(kind, value, true, nullptr)->id;
}

std::string Handles::why_not_carried() const {
    constexpr const char* kNames[kKinds] = {"graphs",
                                            "graph nodes",
                                            "executable graphs",
                                            "arrays",
                                            "mipmapped arrays",
                                            "texture objects",
                                            "surface objects",
                                            nullptr,
                                            "memory of its own handles",
                                            "linkers",
                                            "user objects",
                                            "texture references",
                                            "surface references",
                                            "texture references"};
    std::lock_guard lock(mutex_);
    std::string all;
    for (size_t kind = 0; kind < kKinds; ++kind)
        if (kNames[kind] && !ids_[kind].empty()) all += (all.empty() ? "" : ", ") + std::string(kNames[kind]);
    return all.empty() ? all : "it has " + all;
}

void Handles::save(protocol::StateWriter& out) const {
    std::lock_guard lock(mutex_);
    std::vector<uint64_t> pools;
    for (const auto& [id, pool] : ids_[static_cast<size_t>(HandleKind::kPool)])
        pools.push_back(pool->value), pools.push_back(pool->own);
    out.scalar(next_);
    out.list(pools);
}

void Handles::restore(protocol::Reader& in) {
    const auto next = in.scalar<uint64_t>();
    const std::vector<uint64_t> pools = protocol::take_list<uint64_t>(in);
    for (size_t i = 0; i + 1 < pools.size(); i += 2)
        pools[i + 1] ? adopt(HandleKind::kPool, pools[i])
                     : lend(HandleKind::kPool, pools[i], HandleKind::kCount, 0);
    std::lock_guard lock(mutex_);
    next_ = next;
}

uint64_t Handles::lend(HandleKind kind, uint64_t value, HandleKind parent_kind, uint64_t parent_value) {
    if (value == 0) return 0;
    std::lock_guard lock(mutex_);
    Object* parent = nullptr;
    if (parent_kind != HandleKind::kCount) {
        parent = by_value(parent_kind, parent_value);
        if (!parent && parent_kind == HandleKind::kModule)
            parent = make(parent_kind, parent_value, false, nullptr);
        if (parent && kind == HandleKind::kGraphNode && parent_kind == kind) parent = parent->parent;
        if (!parent) return 0;
    }
    Object* known = by_value(kind, value);
    if (known && (!parent || known->parent == parent)) return known->id;
    return make(kind, value, false, parent)->id;
}

uint64_t Handles::find(HandleKind kind, uint64_t value) const {
    std::lock_guard lock(mutex_);
    const Object* known = by_value(kind, value);
    return known ? known->id : 0;
}

uint64_t Handles::root(HandleKind kind, uint64_t value) const {
    std::lock_guard lock(mutex_);
    Object* known = by_value(kind, value);
    return known ? root_of(known)->id : 0;
}

CUresult Handles::may_move(CUgraph child, CUgraph graph) const {
    std::lock_guard lock(mutex_);
    const Object* moved = by_value(HandleKind::kGraph, value_of(child));
    Object* holder = by_value(HandleKind::kGraph, value_of(graph));
    if (!moved || !holder || !moved->own || moved->parent || root_of(holder) == moved)
        return CUDA_ERROR_INVALID_VALUE;
    return moved->family == captures_family_ ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

void Handles::move_into(CUgraph child, CUgraphNode node) {
    std::lock_guard lock(mutex_);
    Object* moved = by_value(HandleKind::kGraph, value_of(child));
    Object* parent = by_value(HandleKind::kGraphNode, value_of(node));
    if (!moved || !parent) return;
    moved->own = false;
    moved->parent = parent;
    parent->children.insert(moved);
    set_family(moved, parent->family);
}

void Handles::forget_module(CUmodule module) {
    FamilyPointer family;
    {
        std::lock_guard lock(mutex_);
        Object* known = by_value(HandleKind::kModule, value_of(module));
        if (!known) return;
        family = known->family;
        remove(known);
    }
    std::lock_guard calls_are_over(family->mutex);
}

void Handles::add_references(CUuserObject object, uint64_t count) {
    std::lock_guard lock(mutex_);
    if (Object* known = by_value(HandleKind::kUserObject, value_of(object))) known->references += count;
}

bool Handles::has_references(CUuserObject object, uint64_t count) const {
    std::lock_guard lock(mutex_);
    const Object* known = by_value(HandleKind::kUserObject, value_of(object));
    return known && known->references >= count &&
           known->references + known->graph_references < kMostReferences;
}

bool Handles::take_references(CUuserObject object, uint64_t count) {
    std::lock_guard lock(mutex_);
    Object* known = by_value(HandleKind::kUserObject, value_of(object));
    if (!known || known->references < count) return false;
    known->references -= count;
    settle(known);
    return true;
}

void Handles::give_to_graph(CUuserObject object, CUgraph graph, uint64_t count, bool move) {
    std::lock_guard lock(mutex_);
    Object* known = by_value(HandleKind::kUserObject, value_of(object));
    Object* holder = by_value(HandleKind::kGraph, value_of(graph));
    if (!known || !holder || count == 0) return;
    holder->user_objects[known->id] += count;
    known->graph_references += count;
    if (move) known->references -= std::min(known->references, count);
}

bool Handles::take_from_graph(CUuserObject object, CUgraph graph, uint64_t count) {
    std::lock_guard lock(mutex_);
    Object* known = by_value(HandleKind::kUserObject, value_of(object));
    Object* holder = by_value(HandleKind::kGraph, value_of(graph));
    if (!known || !holder) return false;
    auto held = holder->user_objects.find(known->id);
    if (held == holder->user_objects.end() || held->second < count) return false;
    held->second -= count;
    if (held->second == 0) holder->user_objects.erase(held);
    known->graph_references -= count;
    settle(known);
    return true;
}

void Handles::copy_references(CUgraph from, CUgraph copy) {
    std::lock_guard lock(mutex_);
    Object* holder = by_value(HandleKind::kGraph, value_of(from));
    Object* other = by_value(HandleKind::kGraph, value_of(copy));
    if (!holder || !other) return;
    other->user_objects = holder->user_objects;
    for (const auto& [id, count] : other->user_objects) {
        if (ObjectPointer held = by_id(HandleKind::kUserObject, id)) held->graph_references += count;
    }
}

void Handles::capture_begun(CUstream stream, CUgraph graph, bool made) {
    std::lock_guard lock(mutex_);
    Object* known = made ? nullptr : by_value(HandleKind::kGraph, value_of(graph));
    if (!known) known = make(HandleKind::kGraph, value_of(graph), false, nullptr);
    set_family(root_of(known), captures_family_);
    captures_[stream] = {known, made};
}

uint64_t Handles::capture_ended(CUstream stream, CUgraph graph) {
    std::lock_guard lock(mutex_);
    auto found = captures_.find(stream);
    if (found == captures_.end())
        return graph ? make(HandleKind::kGraph, value_of(graph), true, nullptr)->id : 0;
    const auto [known, made] = found->second;
    captures_.erase(found);
    if (made && known && known->value != value_of(graph)) remove(known);
    if (made && graph) {
        Object* left = by_value(HandleKind::kGraph, value_of(graph));
        if (!left) left = make(HandleKind::kGraph, value_of(graph), true, nullptr);
        left->own = true;
        set_family(left, std::make_shared<Family>());
        return left->id;
    }
    if (made || !known) return 0;
    Object* root = root_of(known);
    const bool others = std::any_of(captures_.begin(), captures_.end(), [&](const auto& each) {
        return each.second.graph && root_of(each.second.graph) == root;
    });
    if (!others) set_family(root, std::make_shared<Family>());
    return known->id;
}

bool Handles::captures(CUstream stream) const {
    std::lock_guard lock(mutex_);
    return captures_.contains(stream);
}

// The capture that makes the object's graph; null: none.
const Handles::Capture* Handles::capture_into(const Object* object, CUstream* stream) const {
    const Object* root = root_of(const_cast<Object*>(object));
    for (const auto& [origin, capture] : captures_) {
        if (!capture.made || capture.graph != root) continue;
        *stream = origin;
        return &capture;
    }
    return nullptr;
}

// Other lanes may still be in calls that use an object. It is destroyed after these calls end.
void Handles::destroy_all(const DriverApi& driver) {
    std::array<ById, kKinds> gone;
    {
        std::lock_guard lock(mutex_);
        gone.swap(ids_);
        for (ByValue& values : values_) values.clear();
        captures_.clear();
    }
    for (const ById& objects : gone) {
        for (const auto& [id, object] : objects) {
            if (!object->own) continue;
            std::lock_guard calls_are_over(object->family->mutex);
            destroy(driver, *object);
        }
    }
}

}  // namespace smt::runtime::server
