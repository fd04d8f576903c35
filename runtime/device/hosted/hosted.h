// What the parts of a driver on host memory share. One lock guards all their state: nothing here has
// to be fast. What makes one such driver differ from another is behind Backend (backend.h).
#pragma once

#include <cuda.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

// The entry points are the driver's own names: the tests' fake exports them, smtd takes their addresses.
#define DRIVER_EXPORT extern "C" __attribute__((visibility("default")))
// How every entry point begins: `name` is told, with the text, and the backend may have it fail.
#define DRIVER_ASKED(name, ...) \
    if (CUresult failed = asked(#name __VA_OPT__(, ) __VA_ARGS__); failed != CUDA_SUCCESS) return failed

namespace smt::runtime::device::hosted {

CUresult asked(const char* name, const char* format = nullptr, ...) __attribute__((format(printf, 2, 3)));

using Work = std::function<void()>;
using Lock = std::unique_lock<std::mutex>;
std::mutex& world();                 // guards everything below
std::condition_variable& changed();  // work was done somewhere

struct Graph;
struct Image;

// Code. A function's handle serves as its kernel's, a library's as its module's.
struct Parameter {
    size_t offset = 0;
    size_t bytes = 0;
};
struct Function {
    virtual ~Function() = default;
    Image* image = nullptr;
    std::string name;
    std::vector<Parameter> parameters;  // once it is prepared
    size_t parameter_bytes = 0;
    std::map<int, int> attributes;  // that were set
};
struct Global {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    bool lent = false;  // its memory is not the image's
};
struct TextureReference {
    unsigned flags = 0;
};
struct Image {
    virtual ~Image() = default;
    std::map<std::string, std::unique_ptr<Function>> functions;
    std::map<std::string, Global> globals;
    std::map<std::string, std::unique_ptr<TextureReference>> textures;
};
Function* find_function(const void* handle);  // null: it is none

// The multiprocessors that work is confined to: by number, whether it may run there.
using Places = std::shared_ptr<const std::vector<bool>>;  // null: on all

// A kernel launch with its parameters packed.
struct Launch {
    CUfunction function = nullptr;
    unsigned grid[3] = {1, 1, 1};
    unsigned block[3] = {1, 1, 1};
    unsigned shared_bytes = 0;
    std::vector<char> parameters = {};
    bool has_priority = false;  // else the stream's
    int priority = 0;
    bool cooperative = false;
    Places places = {};               // its stream's
    std::shared_ptr<void> code = {};  // the backend's
};
CUresult pack(CUfunction function, void** parameters, void** extra, std::vector<char>* packed);

// A node of a graph, and likewise a piece of work in a stream. What it does stands in `launch`, or in
// `work`; the latter is called without the lock. It may have to wait for something first.
struct Node {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    Work work;
    std::function<bool()> ready;  // called with the lock; null: at once
    bool polled = false;          // `ready` depends on memory that other code writes
    std::vector<Node*> after;
    bool enabled = true;
    Launch launch;
    std::vector<void*> parameter_pointers;  // handed out by KernelNodeGetParams
    CUDA_MEMCPY3D copy{};
    CUDA_MEMSET_NODE_PARAMS fill{};
    CUDA_HOST_NODE_PARAMS host{};
    CUevent event = nullptr;                      // that a node of a graph records or waits for
    std::vector<CUstreamBatchMemOpParams> batch;  // of a node of a graph; one piece of work for each
    std::unique_ptr<Graph> child;
    Graph* owner = nullptr;
    const Node* original = nullptr;  // that cuGraphClone copied; may be gone
};

using UserReferences = std::map<CUuserObject, unsigned>;

struct Graph {
    std::vector<std::unique_ptr<Node>> nodes;
    UserReferences objects;  // that it holds
    Node* add(std::unique_ptr<Node> node);
};

// A capture under way: of the stream that began it and of those that joined it.
struct Capture {
    Graph* graph = nullptr;  // null: it has ended
    uint64_t id = 0;
    bool own_graph = true;  // made for it; else the program's
    bool broken = false;    // by what may not be done in one: only its end is left
};

struct Stream {
    virtual ~Stream() = default;
    uint64_t id = 0;
    unsigned flags = 0;
    int priority = 0;
    Places places;
    std::deque<std::shared_ptr<Node>> queue;  // the front is under way
    uint64_t enqueued = 0;
    uint64_t done = 0;
    bool closing = false;
    std::shared_ptr<Capture> capture;  // under way
    bool began_capture = false;
    std::vector<Node*> tail;  // what the next captured node depends on
};

// A stream that the program made; with the lock.
CUstream make_stream(unsigned flags, int priority, Places places);
// The stream behind a handle (0, legacy and per-thread are one default stream), or null.
std::shared_ptr<Stream> find_stream(CUstream handle);
std::vector<std::shared_ptr<Stream>> all_streams();
// The node goes into the graph that the stream captures; with the lock.
CUresult add_captured(Stream& stream, std::unique_ptr<Node> node);
// With the lock: the mistake ends what is captured, and the caller answers with it.
CUresult break_capture(Capture& capture, CUresult mistake);
// Puts the node's work on the stream, or the node into the graph that the stream captures.
CUresult enqueue(CUstream stream, std::unique_ptr<Node> node);
CUresult enqueue(CUstream stream, CUgraphNodeType type, Work work);
// The same, and waits unless it was captured.
CUresult perform(CUstream stream, std::unique_ptr<Node> node);
void append(Stream& stream, std::shared_ptr<Node> node);  // with the lock
void finish_front(Stream& stream);  // with the lock: what a backend calls when it is done
size_t limit(CUlimit which);        // 0: there is no such limit
void wait_idle(Lock& lock, const Stream& stream);

// References to user objects. The last one calls the program's destructor: so without the lock.
CUresult let_go(CUuserObject object, unsigned count);
bool retain(CUuserObject object, unsigned count);  // with the lock
void let_go(const UserReferences& objects);

// A record of an event, or a wait for its last record as of now: a graph's node, and what goes into a stream.
// With the lock. Null: there is no such event.
std::unique_ptr<Node> event_node(CUgraphNodeType type, CUevent event);
std::unique_ptr<Node> event_work(CUgraphNodeType type, CUevent event);
std::unique_ptr<Node> value_work(const CUstreamBatchMemOpParams& operation);

Work copy_work(const CUDA_MEMCPY3D& copy);
Work fill_work(const CUDA_MEMSET_NODE_PARAMS& fill);

bool accessible(uint64_t address, uint64_t bytes);
// Whether work may touch it when it runs. Only a backend that doubts asks: then it must be memory that
// the driver knows (mapped, allocated, registered), and work on anything else does nothing.
bool touchable(uint64_t address, uint64_t bytes);
bool known(uint64_t address, uint64_t bytes);  // the same, with the lock
bool registered(uint64_t address,
                uint64_t bytes);   // with the lock: the program's memory, known to the driver
bool on_device(uint64_t address);  // with the lock: mapped or allocated device memory
void know_global(uint64_t address, uint64_t bytes);  // with the lock. 0 bytes: it is gone
bool take_memory(uint64_t bytes);                    // false: out of memory. Locks for itself
void give_memory(uint64_t bytes);

}  // namespace smt::runtime::device::hosted
