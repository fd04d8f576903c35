// The driver's objects that one session holds, under ids of our own.
//
//   graph -> nodes -> child graph -> nodes ...     mipmapped array -> levels      array -> planes
//   module -> texture and surface references       executable graph, link, ...    (no children)
//
// The client holds ids; the driver's own handles do not leave the server. An id stands for one object, and
// is not used again in the session. What belongs to an object are its children: they leave the table with
// it. An object leaves the table before the driver destroys it, so of two lanes that destroy it one finds
// it. Texture and surface objects are known by the driver's own numbers, because kernels read them, and
// pools by those of pools.h; both are checked like ids.
//
// An object and all that belongs to it are one family with one lock. A call holds the locks of the
// families that it uses until it is over (Uses). So the driver gets no object that another lane destroys
// meanwhile, and no graph from two lanes at once, which it does not allow.
//
// A graph that a stream captures into is lent: the driver may drop it when the capture breaks, and puts
// nodes into it whenever work is enqueued. All such graphs of a session are one family, whose lock is taken
// last; the calls that enqueue on a capturing stream hold it too (Uses::hold_captures).
//
// Locks: images (CodeTable), families in the order of their addresses, the captures' family, then mutex_.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "driver_api.gen.h"

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
    kModule,  // no id of it is given out; it has the references as children
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
    bool own = false;               // the session destroys it; else it goes with its parent
    uint64_t references = 1;        // the session's own, of physical memory and user objects
    uint64_t graph_references = 0;  // of a user object: those of the session's graphs
    std::unordered_map<uint64_t, uint64_t> user_objects;  // of a graph: their ids, and how many references
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

    // The id of what the driver made for the session: teardown destroys it. Physical memory that is known
    // already gets one more reference.
    uint64_t adopt(HandleKind kind, uint64_t value);
    // The id of what belongs to an object of the session, given by its kind and value; the same each time.
    // 0: there is no such object. A node may name a sibling: then its graph is the parent.
    uint64_t lend(HandleKind kind, uint64_t value, HandleKind parent_kind, uint64_t parent);
    uint64_t find(HandleKind kind, uint64_t value) const;  // 0: not known
    // The top of the tree that the object stands in; 0: not known.
    uint64_t root(HandleKind kind, uint64_t value) const;
    // A graph that becomes a node's: only one that the session made, and that does not hold the node's
    // graph itself. Both are held.
    CUresult may_move(CUgraph child, CUgraph graph) const;
    void move_into(CUgraph child, CUgraphNode node);
    // A module's texture references are gone when this returns, and so are the calls that used them.
    void forget_module(CUmodule module);

    // References to user objects, by the driver's handles. False: there are not that many to take.
    void add_references(CUuserObject object, uint64_t count);
    bool take_references(CUuserObject object, uint64_t count);  // the last ones: the object is no more
    bool has_references(CUuserObject object, uint64_t count) const;
    void give_to_graph(CUuserObject object, CUgraph graph, uint64_t count, bool move);
    bool take_from_graph(CUuserObject object, CUgraph graph, uint64_t count);
    void copy_references(CUgraph from, CUgraph copy);

    // Captures, by the stream that began them; with the captures' family held (Uses::hold_captures).
    // `graph` is new, or the session's own where `made` is false.
    void capture_begun(CUstream stream, CUgraph graph, bool made);
    // The graph's id, or 0 when it is no more: `graph` is what the driver left of it.
    uint64_t capture_ended(CUstream stream, CUgraph graph);
    bool captures(CUstream stream) const;

    // Destroys what the session owns, in HandleKind's order, and forgets everything. Pools are not
    // destroyed here: they belong to TenantMemory.
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

    // All with mutex_ held; remove() and set_family() with the objects' family too, unless they are stale.
    ObjectPointer by_id(HandleKind kind, uint64_t id) const;
    Object* by_value(HandleKind kind, uint64_t value) const;
    Object* make(HandleKind kind, uint64_t value, bool own, Object* parent);
    void remove(Object* object);       // and all that belongs to it
    void settle(Object* user_object);  // goes when nothing refers to it
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

// The objects that one call uses. The call names all of them, then begins; until its end no other call
// destroys or changes them.
class Uses {
public:
    Uses(Handles& handles, const DriverApi& driver) : handles_(handles), driver_(driver) {}
    ~Uses() { end(); }
    Uses(const Uses&) = delete;
    Uses& operator=(const Uses&) = delete;

    // What holds the id holds the driver's handle after begin(). It must stay where it is until then.
    template <typename T>
    void add(HandleKind kind, T& handle) {
        static_assert(sizeof(T) == sizeof(uint64_t));
        slots_.push_back({kind, false, &handle});
    }
    // Ids in the record, which is the lane's own copy.
    template <typename T>
    void add(HandleKind kind, const T* handles, uint64_t count) {
        for (uint64_t i = 0; i < count; ++i) add(kind, const_cast<T&>(handles[i]));
    }
    // The call destroys it, or drops one reference: it leaves the table when the call begins.
    template <typename T>
    void take(HandleKind kind, T& handle) {
        add(kind, handle);
        slots_.back().taken = true;
    }
    // INVALID_HANDLE: the session has no such object. INVALID_VALUE: it belongs to another one, and cannot
    // be destroyed by itself. ILLEGAL_STATE: work is captured into it, so it cannot be destroyed.
    CUresult begin();
    // Behind begin(): no node is added to a graph that is captured until the call is over, but by it.
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
