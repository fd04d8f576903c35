// Records: the contents of a client thread's lane.
//
//   lane    := { record }
//   record  := RecordHeader, payload, padding to 16 bytes [, RecordStamp (call_times.h)]
//   payload := for a generated call: the parameters in order, in the encoding of codec.h
//              for a hand-written call: one of the structs below, then the data that it announces
//
// A record never wraps: a kPad record fills the ring to its end instead.
// kWantsReply: the client waits, and the server replies in the lane's reply area. Without the flag an error
// is kept in LaneHeader::async_error and returned by the thread's next call, as CUDA allows.
#pragma once

#include <cstdint>

#include "runtime/protocol/layout.h"

namespace smt::protocol {

inline constexpr uint32_t kRecordAlignment = 16;
inline constexpr uint16_t kWantsReply = 1;
inline constexpr uint16_t kStamped = 2;  // the record ends with a RecordStamp

struct RecordHeader {
    uint32_t bytes;  // whole record, a multiple of kRecordAlignment
    uint16_t op;     // Op below, or a generated opcode from kFirstGeneratedOp on
    uint16_t flags;
    uint32_t reply_seq;  // stored by the server in LaneHeader::reply_seq with the reply
    uint32_t payload_bytes;
};
static_assert(sizeof(RecordHeader) == kRecordAlignment);

inline constexpr uint16_t kFirstGeneratedOp = 256;

// Hand-written operations. Format of the comments: payload -> reply payload.
enum class Op : uint16_t {
    kPad = 0,           // nothing -> no reply
    kWaitLane = 1,      // WaitLane -> no reply: continue after another lane has reached a position
    kCloseLane = 2,     // nothing -> no reply: the thread ended
    kOpenStaging = 3,   // nothing -> StagingOpened
    kLaunch = 4,        // Launch, attributes, parameters -> no reply
    kCopySlot = 5,      // CopySlot -> no reply
    kCopy = 6,          // Copy -> status
    kEventCreate = 7,   // EventCreate -> no reply
    kEventDestroy = 8,  // EventRef -> no reply
    kEventRecord = 9,   // EventRecord -> no reply
    kEventSynchronize =
        10,                 // EventRef -> status; flags kEventQueryOnly: returns NOT_READY instead of waiting
    kEventElapsed = 11,     // EventPair -> float milliseconds
    kStreamWaitEvent = 12,  // StreamWaitEvent -> no reply
    kStreamCreate = 13,     // StreamCreate -> StreamCreated
    kStreamDestroy = 14,    // StreamRef -> status
    kStreamSynchronize = 15,   // StreamRef -> status
    kStreamQuery = 16,         // StreamRef -> status
    kContextSynchronize = 17,  // nothing -> status
    kContextReset = 18,        // nothing -> status: frees all objects and memory of the session
    kMemAlloc = 19,            // MemAlloc -> MemAllocated
    kMemFree = 20,             // Address -> status
    kHostAlloc = 21,           // MemAlloc -> MemAllocated (an address in the arena)
    kHostFree = 22,            // Address -> status
    kMemInfo = 23,             // nothing -> MemInfo
    kMemAllocAsync = 24,       // MemAllocAsync -> MemAllocated
    kMemFreeAsync = 25,        // MemFreeAsync -> no reply
    kUploadBegin = 26,         // UploadBegin -> status: makes the upload buffer for an image
    kUploadSlot = 27,          // UploadSlot -> no reply: copies a staging slot's bytes into it
    kModuleLoad = 28,          // ModuleLoad, options -> Loaded [, log bytes]
    kModuleUnload = 29,        // ObjectRef -> status
    kGetFunction = 30,         // ObjectRef, name -> FunctionInfo, parameter table, name
    kHostFunction = 31,        // HostFunction -> no reply
    kFetchOutput = 32,         // nothing -> bytes of device printf (status NOT_READY: more is left)
    kAddressReserve = 33,      // AddressReserve -> MemAllocated
    kGraphKernelNode = 34,     // GraphKernelNode, ids, parameters -> status [, node]
    kGraphMemcpyNode = 35,     // GraphCopyNode, ids -> status [, node]
    kGraphHostNode = 36,       // GraphHostNode, ids -> status [, node]
    kStreamBeginCapture = 64,  // StreamCapture -> status
    kStreamEndCapture = 65,    // StreamRef -> u64 graph
    kStreamCaptureInfo = 66,   // StreamRef -> CaptureInfo, node ids, edge data
    kGraphLaunch = 67,         // GraphLaunch -> no reply
    kGraphMemcpyNodeGet = 68,  // u64 node -> CUDA_MEMCPY3D
    kGraphKernelNodeGet = 69,  // u64 node -> GraphKernelNode, parameters
    kFunctionAttribute = 70,   // FunctionAttribute -> status (set)
    kEnumerateFunctions = 71,  // FunctionNames -> u32 count, then NUL-terminated names
    kLinkAdd = 72,             // LinkAdd, name, options -> LinkResult, logs (data through the upload buffer)
    kLinkComplete = 73,        // u64 state -> LinkResult, logs; the image is read with kDownload
    kDownload = 74,            // Download -> bytes
    kGetGlobal = 75,           // ObjectRef, name -> MemAllocated
    kUnsupported = 76,  // u32 index in the coverage table, then the runtime's -> no reply: counts a call
    kLinkCreate = 77,   // LinkCreate, options -> u64 state
    kLinkDestroy = 78,  // u64 state -> status
    kStreamUpdateCapture = 79,  // StreamUpdateCapture, node ids, CUgraphEdgeData -> status
    kGetManaged = 80,           // ObjectRef of a library, name -> MemAllocated
    kGraphHostNodeGet = 81,     // u64 node -> u64 function, u64 user data (the client's addresses)
    kBeginCaptureToGraph = 82,  // StreamCapture, u64 count, node ids, CUgraphEdgeData -> status
    kAddressFree = 83,          // AddressRange of kAddressReserve -> status
    kHostAllocShowing = 84,     // HostPieces, its HostPieces::count HostPiece -> MemAllocated
    kGraphChildNode = 85,       // GraphChildNode, ids, CUgraphEdgeData -> node
    kShare = 86,                // Share -> Shared (sharing.h, the next two likewise)
    kOpenShared = 87,   // OpenShared -> MemAllocated, of physical memory its handle; nothing of an event
    kCloseShared = 88,  // Address -> status
    kClosePeer = 89,    // AddressRange: what kOpenShared opened in it as SharedKind::kPeer -> status
    kMemMap = 90,       // MemMap -> status
    kSetAccess = 91,    // SetAccess -> status
    kPeerAccess = 92,   // Address of a peer's -> u64 CUmemAccess_flags: what is open here
    kFindMapping = 93,  // Address -> MemAllocated: the mapping of kMemMap that contains it
    kAwaitSlot = 94,    // AwaitSlot -> u32 index of the slot that is free; INVALID_HANDLE: no stream is known
    kNewThread = 95,    // nothing -> no reply: the lane is another thread's from now on
};

// Stream references in records. Created streams are numbered from kFirstStream.
inline constexpr uint32_t kLegacyStream = 0;
inline constexpr uint32_t kPerThreadStream = 1;  // the default stream of the lane's own thread
inline constexpr uint32_t kFirstStream = 2;

struct WaitLane {
    uint32_t lane;
    uint32_t reserved;
    uint64_t position;
};
// Slot i's completion word is first_word + i.
struct StagingOpened {
    uint64_t offset;
    uint32_t first_word;
    uint32_t reserved;
};

struct Launch {
    uint32_t function;
    uint32_t stream;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    uint32_t attribute_count;  // number of CUlaunchAttribute that follow
    uint32_t parameter_bytes;  // size of the parameter buffer after them
    uint32_t flags;            // kLaunchCooperative
};
inline constexpr uint32_t kLaunchCooperative = 1;
static_assert(sizeof(Launch) == 48);

// One end of a copy. Host addresses must lie in the arena; arrays are ids of the session.
enum class Place : uint32_t { kHost = 1, kDevice = 2, kArray = 3 };  // = CUmemorytype
struct CopyEnd {
    Place place;
    uint32_t lod;
    uint64_t address;        // or the array's id
    uint64_t x_bytes, y, z;  // start within it
    uint64_t pitch, height;  // 0: packed
};
static_assert(sizeof(CopyEnd) == 56);

enum class CopyAnswer : uint32_t { kEnqueued = 0, kDone = 1, kWord = 2 };
struct Copy {  // copies without pageable memory
    CopyEnd to, from;
    uint64_t width_bytes, height, depth;
    uint32_t stream;
    CopyAnswer answer;
    uint64_t done_value;  // kWord: the GPU stores it in the word of staging slot `slot`
    uint32_t slot;
    uint32_t reserved;
};
static_assert(sizeof(Copy) == 160);

struct CopySlot {    // one staging slot to or from the device; rows are packed in the slot
    CopyEnd device;  // the other end
    uint64_t width_bytes, height, depth;
    uint32_t stream;
    uint32_t slot;
    uint32_t to_device;
    uint32_t offset;      // in the slot; behind 0: copies of the same stream before it may still use the slot
    uint64_t done_value;  // the GPU stores it in the slot's word when the slot is free (copy to
                          // the device) or full (copy from the device)
};
static_assert(sizeof(CopySlot) == 104);

struct AwaitSlot {                        // until one of the lane's staging slots is free
    uint64_t done_values[kStagingSlots];  // of their last uses, with the stream's reference in the low half;
                                          // 0: not of this one
};

struct EventRef {
    uint32_t event;
    uint32_t flags;
};
inline constexpr uint32_t kEventQueryOnly = 1;
struct EventCreate {
    uint32_t event;
    uint32_t flags;
};  // the client chooses the index
struct EventRecord {
    uint32_t event;
    uint32_t stream;
    uint32_t flags;
    uint32_t watched;  // 1: the GPU stores value in the event's word behind the event
    uint64_t value;
};
struct EventPair {
    uint32_t start;
    uint32_t end;
};
struct StreamWaitEvent {
    uint32_t stream;
    uint32_t event;
    uint32_t flags;
    uint32_t reserved;
};
struct StreamRef {
    uint32_t stream;
    uint32_t reserved;
};
struct StreamCreate {
    uint32_t flags;
    int32_t priority;
};
struct StreamCreated {
    uint32_t stream;
    int32_t priority;
    uint64_t id;
};
struct StreamCapture {
    uint32_t stream;
    uint32_t mode;
    uint64_t graph;
};  // graph 0: a new one

struct MemAlloc {
    uint64_t bytes;
    uint32_t flags;
    uint32_t managed;
};
struct MemAllocated {
    uint64_t address;
    uint64_t bytes;
};
// Arena memory as of kHostAlloc that aliases pages of other arena memory of the session. The pieces are whole
// pages and add up to `bytes`.
struct HostPieces {
    uint64_t bytes;
    uint32_t count;
    uint32_t reserved;
};
struct HostPiece {
    uint64_t bytes;
    uint64_t shown;
};  // shown: address of the aliased memory; 0: new pages
struct Address {
    uint64_t address;
};
struct MemInfo {
    uint64_t free;
    uint64_t total;
};
// pool 0: the current one.
struct MemAllocAsync {
    uint64_t bytes;
    uint64_t pool;
    uint32_t stream;
    uint32_t reserved;
};
struct MemFreeAsync {
    uint64_t address;
    uint32_t stream;
    uint32_t reserved;
};
struct AddressReserve {
    uint64_t bytes;
    uint64_t alignment;
    uint64_t hint;
};
struct AddressRange {
    uint64_t address;
    uint64_t bytes;
};
struct MemMap {
    uint64_t address;
    uint64_t bytes;
    uint64_t offset;
    uint64_t handle;
    uint64_t flags;
};
// Of the session's own device to a mapping.
struct SetAccess {
    uint64_t address;
    uint64_t bytes;
    uint32_t flags;  // CUmemAccess_flags
    uint32_t reserved;
};

// The largest accepted image, in bytes.
inline constexpr uint64_t kMostImageBytes = 1ull << 30;
struct UploadBegin {
    uint64_t bytes;
};
struct UploadSlot {
    uint64_t at;
    uint64_t bytes;
    uint32_t slot;
    uint32_t reserved;
    uint64_t done_value;
};
struct Download {
    uint64_t at;
    uint64_t bytes;
};

enum class ImageOwner : uint32_t { kModule = 0, kLibrary = 1 };
struct ModuleLoad {  // the image is the last upload of this lane
    ImageOwner owner;
    uint32_t jit_option_count;      // number of JitOption that follow
    uint32_t library_option_count;  // number of JitOption after those
    uint32_t log_bytes;             // requested capacity of the info log
    uint32_t error_log_bytes;       // and of the error log
    uint32_t captures;              // number of Captured messages that the program has sent
};
struct JitOption {
    uint32_t option;
    uint32_t reserved;
    uint64_t value;
};
struct Loaded {
    uint32_t object;
    uint32_t log_bytes;
    uint32_t error_log_bytes;
    float wall_time_ms;
};
struct ObjectRef {
    uint32_t object;
    ImageOwner owner;
};
struct FunctionNames {  // from number `first` on, as many as fit
    ObjectRef image;
    uint32_t first;
    uint32_t reserved;
};
struct ParameterInfo {
    uint32_t offset;
    uint32_t bytes;
};
inline constexpr uint32_t kFunctionAttributes = 16;  // CUfunction_attribute 0 to 15
struct FunctionInfo {                                // then parameter_count ParameterInfo, then the name
    uint32_t function;
    uint32_t parameter_count;
    uint32_t parameter_bytes;
    uint32_t name_bytes;
    int32_t attributes[kFunctionAttributes];
    uint32_t flags;
    uint32_t reserved;
};
inline constexpr uint32_t kFunctionSystemAtomics = 1;  // the kernel has atomics of system scope
struct FunctionAttribute {
    uint32_t function;
    int32_t attribute;
    int32_t value;
    uint32_t reserved;
};
struct HostFunction {
    uint64_t function, user_data, client_stream;
    uint32_t stream;
    uint32_t kind;  // CallbackKind
};

// Graph nodes. Graphs, nodes and executable graphs are denoted by the session's ids. `operation` selects the
// driver call. The reply to a query has the root graph of the node's graph.
enum class NodeOperation : uint32_t { kAdd = 0, kSet = 1, kExecSet = 2 };
struct GraphKernelNode {  // then dependency_count u64, attributes, parameters
    NodeOperation operation;
    uint32_t dependency_count;
    uint64_t graph;  // kExecSet: the executable graph
    uint64_t node;
    Launch launch;  // stream unused
};
struct GraphCopyNode {  // then dependency_count u64
    NodeOperation operation;
    uint32_t dependency_count;
    uint64_t graph;
    uint64_t node;
    Copy copy;  // members after depth are unused
};
struct GraphHostNode {  // then dependency_count u64
    NodeOperation operation;
    uint32_t dependency_count;
    uint64_t graph;
    uint64_t node;
    uint64_t function, user_data;
};
struct GraphChildNode {       // then dependency_count u64, then as many CUgraphEdgeData if has_edge_data
    NodeOperation operation;  // kAdd
    uint32_t dependency_count;
    uint64_t graph;
    uint64_t node;
    uint64_t child;  // moved into the node; copied by cuGraphAddChildGraphNode
    uint32_t has_edge_data, reserved;
};
struct GraphLaunch {
    uint64_t exec;
    uint32_t stream;
    uint32_t reserved;
};
// Followed by node ids, then edge data.
struct CaptureInfo {
    uint32_t status;
    uint32_t dependency_count;
    uint64_t id;
    uint64_t graph;
};
struct StreamUpdateCapture {
    uint32_t stream;
    uint32_t flags;
    uint32_t dependency_count;
    uint32_t has_edge_data;
};
struct LinkCreate {
    uint32_t jit_option_count;
    uint32_t log_bytes;
    uint32_t error_log_bytes;
    uint32_t reserved;
};
// The reply of kLinkAdd and kLinkComplete, also if they fail. The linker's logs so far follow as two raw byte
// strings. image_bytes is set by kLinkComplete.
struct LinkResult {
    uint64_t image_bytes;
    uint32_t log_bytes;
    uint32_t error_log_bytes;
    float wall_time_ms;
    uint32_t reserved;
};
struct LinkAdd {
    uint64_t state;
    uint32_t type;
    uint32_t jit_option_count;
    uint32_t name_bytes;
    uint32_t reserved;
};

}  // namespace smt::protocol
