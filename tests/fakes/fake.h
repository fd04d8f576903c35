// What the parts of the fake driver share. One lock guards all state: nothing here has to be fast.
#pragma once

#include <cuda.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))
// How every entry point begins: `name` is recorded, with the text, and may be told to fail.
#define FAKE_ASKED(name, ...) \
    if (CUresult failed = fake::asked(#name __VA_OPT__(, ) __VA_ARGS__); failed != CUDA_SUCCESS) return failed

namespace fake {

// Records the call. Not SUCCESS: it was told to fail, or a kernel has faulted (then for good).
CUresult asked(const char* name, const char* format = nullptr, ...) __attribute__((format(printf, 2, 3)));
void fault(CUresult error);

using Work = std::function<void()>;
using Lock = std::unique_lock<std::mutex>;
std::mutex& world();                     // guards everything below
std::condition_variable& changed();      // work was done somewhere

struct Graph;

// A kernel launch with its parameters packed.
struct Launch {
    CUfunction function = nullptr;
    unsigned grid[3] = {1, 1, 1};
    unsigned block[3] = {1, 1, 1};
    unsigned shared_bytes = 0;
    std::vector<char> parameters;
};
void run(const Launch& launch);
CUresult pack(CUfunction function, void** parameters, void** extra, std::vector<char>* packed);
const char* name_of(CUfunction function);

struct Node {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    Work work;                           // what it does, by whatever its type says
    std::vector<Node*> after;
    bool enabled = true;
    Launch launch;
    std::vector<void*> parameter_pointers;   // handed out by KernelNodeGetParams
    CUDA_MEMCPY3D copy{};
    CUDA_MEMSET_NODE_PARAMS fill{};
    CUDA_HOST_NODE_PARAMS host{};
    std::unique_ptr<Graph> child;
    Graph* owner = nullptr;
};

struct Graph {
    std::vector<std::unique_ptr<Node>> nodes;
    Node* add(std::unique_ptr<Node> node);
};

struct Stream {
    uint64_t id = 0;
    unsigned flags = 0;
    int priority = 0;
    std::deque<Work> queue;
    uint64_t enqueued = 0;
    uint64_t done = 0;
    bool closing = false;
    Graph* capture = nullptr;            // under way
    bool began_capture = false;
    uint64_t capture_id = 0;
    std::vector<Node*> tail;             // what the next captured node depends on
};

// The stream behind a handle (0, legacy and per-thread are one default stream), or null.
std::shared_ptr<Stream> find_stream(CUstream handle);
std::vector<std::shared_ptr<Stream>> all_streams();
// Puts the node's work on the stream, or the node into the graph that the stream captures.
CUresult enqueue(CUstream stream, std::unique_ptr<Node> node);
CUresult enqueue(CUstream stream, CUgraphNodeType type, Work work);
// The same, and waits unless it was captured.
CUresult perform(CUstream stream, CUgraphNodeType type, Work work);
void wait_idle(Lock& lock, const Stream& stream);

Work copy_work(const CUDA_MEMCPY3D& copy);
Work fill_work(const CUDA_MEMSET_NODE_PARAMS& fill);

uint64_t memory_bytes();                 // of the device
bool accessible(uint64_t address, uint64_t bytes);
// Whether work may touch it when it runs. Only SMT_FAKE_STRICT doubts it: then it must be memory that
// the driver knows (mapped, allocated, registered), and work on anything else does nothing.
bool touchable(uint64_t address, uint64_t bytes);
void know_global(uint64_t address, uint64_t bytes);   // 0 bytes: it is gone
bool take_memory(uint64_t bytes);        // false: out of memory. Locks for itself
void give_memory(uint64_t bytes);

}  // namespace fake
