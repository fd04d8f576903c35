// The client's state of streams, events, images and functions. An application's handle IS the address of one
// of these objects. They live in slabs at fixed address ranges, so a handle is checked (range,
// alignment, `live`) before it is read, and a wild handle gives CUDA_ERROR_INVALID_HANDLE instead of a crash.
// Slots are reused, never unmapped.
//
// An object belongs to the session in which it was made, and its numbers (id, index, last_use) are that
// session's.
//
// Every other handle (graphs, nodes, arrays, pools ...) is an id from the server and passes through; the
// server looks it up (runtime/server/objects/handles.h). Texture and surface objects are the driver's own
// numbers.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "interpose/process/session.h"
#include "runtime/protocol/record.h"

namespace smt::interpose {

// The last use of an object: (lane << 48) | position after that record. 0: never used.
using LastUse = std::atomic<uint64_t>;

struct Stream {
    std::atomic<uint32_t> live;
    uint32_t id;     // protocol stream reference, from kFirstStream on
    uint32_t flags;  // CU_STREAM_DEFAULT (blocking) or CU_STREAM_NON_BLOCKING
    int32_t priority;
    uint64_t unique_id;  // cuStreamGetId
    Session* session;
    CUcontext context;
    LastUse last_use;
    std::atomic<uint64_t> callbacks;
};

struct Event {
    std::atomic<uint32_t> live;
    uint32_t index;  // of the event and of its completion word
    Session* session;
    uint32_t flags;                    // CU_EVENT_*
    std::atomic<uint32_t> captured;    // its last record was captured into a graph
    std::atomic<uint32_t> by_graph;    // a graph may record it: query the server
    std::atomic<uint32_t> watched;     // it is queried: its records write the word
    std::atomic<uint32_t> unwritten;   // its last record writes no word: query the server
    std::atomic<uint32_t> contested;   // an older record may still write the word: query the server
    std::atomic<uint64_t> recorded;    // the word's value once the last record is complete; 0: no record
    std::atomic<uint64_t> awaited;     // its value when the server last said that the event is complete
    std::atomic<uint64_t> next_value;  // of the word; outlives the event, like last_use
    std::atomic<uint64_t> written;     // last value that a record stores in the word; outlives the event
    std::atomic<CUstream> stream;      // of the last record
    LastUse last_use;
    bool between_processes() const { return (flags & CU_EVENT_INTERPROCESS) != 0; }
};

// A module or a library. One object is both the CUmodule and the CUlibrary where a program calls
// cuLibraryGetModule.
struct Image {
    std::atomic<uint32_t> live;
    uint32_t id;  // the session's object id
    protocol::ImageOwner owner;
    Session* session;
    std::atomic<struct Function*> functions;  // list of the functions fetched so far
    struct Twins* twins;                      // twins.h; null: it is this session's alone
    Image* next_twin;
};

// A kernel. One object is both its CUkernel and its CUfunction.
struct Function {
    std::atomic<uint32_t> live;
    uint32_t id;  // the session's function id
    uint32_t name_hash;
    Image* image;
    Function* next;               // in image->functions
    std::atomic<Function*> twin;  // the next one in a ring of kernels that are one (twins.h); null: none
    uint32_t parameter_count;
    uint32_t parameter_bytes;
    bool system_atomics;
    const protocol::ParameterInfo* parameters;                       // malloc()ed, freed with the image
    const char* name;                                                // malloc()ed, freed with the image
    std::atomic<int32_t> attributes[protocol::kFunctionAttributes];  // CUfunction_attribute
};

// The object behind a handle, or nullptr. Accepts any pointer value.
Stream* find_stream(CUstream handle);
Event* find_event(CUevent handle);
Image* find_image(CUmodule handle);
Image* find_image(CUlibrary handle);
Function* find_function(CUfunction handle);
Function* find_function(CUkernel handle);

// A new, zeroed, live slot of this_session(), or nullptr when there are kMaxObjects of the kind.
Stream* new_stream();
Event* new_event();
Image* new_image();
Function* new_function();
void release(Stream* stream);
void release(Event* event);
void release(Image* image);  // with its functions
// Calls visit for every live stream, or image, of this_session().
void for_each_stream(void (*visit)(Stream&, void*), void* state);
void for_each_image(void (*visit)(Image&, void*), void* state);
void release_all_objects();  // of this_session(): primary context reset

}  // namespace smt::interpose
