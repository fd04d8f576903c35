// The driver's objects that one session owns, under ids of the server's. Any thread.
//
//   graph -> nodes -> child graph -> nodes ...     mipmapped array -> levels      array -> planes
//   module -> texture and surface references       executable graph, link, ...    (no children)
//
// The client has ids only; the driver's handles do not leave the server. An id denotes one object and is
// not reused in the session. Objects that belong to an object are its children: they leave the table with
// it. An object leaves the table before the driver destroys it, so of two lanes that destroy it only one
// finds it. The id of a texture or surface object is the driver's own number, because kernels read it. The
// id of a pool is its number in pools.h. Both are checked like other ids.
//
// An object and its descendants form one family with one lock. A call holds the locks of the families that
// it uses until it ends (Uses). Thus the driver gets no object that another lane destroys concurrently, and
// no graph from two lanes at once, which the driver does not allow.
//
// A graph that a stream captures into belongs to the driver: the driver may drop it when the capture breaks,
// and adds nodes to it whenever work is enqueued. All such graphs of a session form one family. Its lock is
// taken last. Calls that enqueue on a capturing stream hold it too (Uses::hold_captures).
//
// Lock order: images (CodeTable), families by address, the captures' family, then mutex_.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/protocol/state.h"

namespace smt::runtime::server {

enum class HandleKind : uint8_t {
    kGraph,
    kGraphNode,
    kGraphExec,
    kArray,
    kMipmappedArray,
    kTexture,
    kSurface,
    kPool,
    kPhysicalMemory,
    kLink,
    kUserObject,
    kTextureReference,
    kSurfaceReference,
    kModule,  // its id is not given out; the references are its children
    kCount
};

struct Family {
    std::shared_mutex mutex;
};
using FamilyPointer = std::shared_ptr<Family>;

struct Object {
    HandleKind kind;
    uint64_t id;
    uint64_t value;                 // the driver's handle
    bool own = false;               // the session destroys it; else it is destroyed with its parent
    uint64_t references = 1;        // physical memory, user objects: the session's own references
    uint64_t graph_references = 0;  // user object: references of the session's graphs
    std::unordered_map<uint64_t, uint64_t> user_objects;  // graph: user objects' ids -> references
    Object* parent = nullptr;
    std::unordered_set<Object*> children;
    FamilyPointer family;
};
using ObjectPointer = std::shared_ptr<Object>;

class Handles {
public:
    Handles();
    Handles(const Handles&) = delete;
    Handles& operator=(const Handles&) = delete;

    // Before there is any object: where their numbers begin (protocol/object_id.h).
    void number_after(uint64_t number) { next_ = number; }

    // Registers an object that the driver made for the session and returns its id. Teardown destroys the
    // object. Physical memory that is known already gets one more reference.
    uint64_t adopt(HandleKind kind, uint64_t value);
    // The id of a child of the session's object `parent`; the same for each call. 0: there is no such
    // parent. The parent of a node may be given as a sibling node: its graph is then the parent.
    uint64_t lend(HandleKind kind, uint64_t value, HandleKind parent_kind, uint64_t parent);
    uint64_t find(HandleKind kind, uint64_t value) const;  // 0: not known
    // The root of the object's tree; 0: not known.
    uint64_t root(HandleKind kind, uint64_t value) const;
    // Whether `child` may become the child graph of a node in `graph`: only if the session made it and it
    // does not contain `graph`. The call holds the locks of both.
    CUresult may_move(CUgraph child, CUgraph graph) const;
    void move_into(CUgraph child, CUgraphNode node);
    // Removes a module's texture references. When it returns no call uses them any more.
    void forget_module(CUmodule module);

    // References to user objects, by the driver's handles. False: fewer than `count` exist.
    void add_references(CUuserObject object, uint64_t count);
    bool take_references(CUuserObject object, uint64_t count);  // taking the last one removes the object
    bool has_references(CUuserObject object, uint64_t count) const;
    void give_to_graph(CUuserObject object, CUgraph graph, uint64_t count, bool move);
    bool take_from_graph(CUuserObject object, CUgraph graph, uint64_t count);
    void copy_references(CUgraph from, CUgraph copy);

    // Captures, by the stream that began them, under the captures' family lock (Uses::hold_captures).
    // `made`: the driver made `graph` for the capture; else it is one of the session's graphs.
    void capture_begun(CUstream stream, CUgraph graph, bool made);
    // Returns the graph's id, or 0 if the driver dropped the graph. `graph` is the driver's result.
    uint64_t capture_ended(CUstream stream, CUgraph graph);
    bool captures(CUstream stream) const;

    // Takeover: objects other than pools, for people ("graphs, arrays"); empty: none. Pools are saved.
    std::string why_not_carried() const;
    void save(protocol::StateWriter& out) const;
    void restore(protocol::Reader& in);

    // Destroys the session's own objects in HandleKind's order and clears the table. Pools are not
    // destroyed here: TenantMemory owns them.
    void destroy_all(const DriverApi& driver);

private:
    friend class Uses;
    static constexpr size_t kKinds = static_cast<size_t>(HandleKind::kCount);
    using ById = std::unordered_map<uint64_t, ObjectPointer>;
    using ByValue = std::unordered_map<uint64_t, Object*>;
    struct Capture {
        Object* graph;
        bool made;  // by the driver, for the capture
    };

    // Caller holds mutex_; for remove() and set_family() also the objects' family, unless they are stale.
    ObjectPointer by_id(HandleKind kind, uint64_t id) const;
    Object* by_value(HandleKind kind, uint64_t value) const;
    Object* make(HandleKind kind, uint64_t value, bool own, Object* parent);
    void remove(Object* object);       // with its descendants
    void settle(Object* user_object);  // removes it if no reference is left
    static void set_family(Object* object, const FamilyPointer& family);
    static Object* root_of(Object* object);
    const Capture* capture_into(const Object* object, CUstream* stream) const;

    const FamilyPointer captures_family_;
    mutable std::mutex mutex_;
    std::array<ById, kKinds> ids_;
    std::array<ByValue, kKinds> values_;
    std::unordered_map<CUstream, Capture> captures_;
    uint64_t next_ = 0;
};

// The objects that one call uses. The call adds all of them, then calls begin(). Until end() no other call
// destroys or changes them. Used by the call's thread alone.
class Uses {
public:
    Uses(Handles& handles, const DriverApi& driver) : handles_(handles), driver_(driver) {}
    ~Uses() { end(); }
    Uses(const Uses&) = delete;
    Uses& operator=(const Uses&) = delete;

    // begin() replaces the id in `handle` by the driver's handle. `handle` must not move until then.
    template <typename T>
    void add(HandleKind kind, T& handle) {
        static_assert(sizeof(T) == sizeof(uint64_t));
        slots_.push_back({kind, false, &handle});
    }
    // Ids in the record. The const_cast is sound: the record is the lane's own copy.
    template <typename T>
    void add(HandleKind kind, const T* handles, uint64_t count) {
        for (uint64_t i = 0; i < count; ++i) add(kind, const_cast<T&>(handles[i]));
    }
    // For a call that destroys the object or drops one reference. The object leaves the table in begin().
    template <typename T>
    void take(HandleKind kind, T& handle) {
        add(kind, handle);
        slots_.back().taken = true;
    }
    // INVALID_HANDLE: the session has no such object. INVALID_VALUE: the object belongs to a parent and
    // cannot be destroyed by itself. ILLEGAL_STATE: a capture into it is active, so it cannot be destroyed.
    CUresult begin();
    // After begin(): until end() only this call may add nodes to graphs under capture.
    void hold_captures();
    void end();

private:
    struct Slot {
        HandleKind kind;
        bool taken;
        void* handle;
    };
    struct Wanted {
        ObjectPointer object;
        FamilyPointer family;
    };
    struct Lock {
        FamilyPointer family;
        bool shared;
    };

    bool look_up(std::vector<Wanted>& wanted) const;
    void lock(const std::vector<Wanted>& wanted);
    enum class Found { kAll, kMoved, kGone };
    Found look_again(const std::vector<Wanted>& wanted) const;
    CUresult check(const std::vector<Wanted>& wanted);
    bool capture_broke(const std::vector<Wanted>& wanted);
    void hand_over(const std::vector<Wanted>& wanted);
    void unlock();

    Handles& handles_;
    const DriverApi& driver_;
    std::vector<Slot> slots_;
    std::vector<Lock> locks_;
};

}  // namespace smt::runtime::server
