// See carried.h.
#include "interpose/driver/carried.h"

#include <cstdlib>
#include <cstring>

#include "driver.gen.h"
#include "interpose/driver/graph.h"
#include "interpose/driver/lock.h"
#include "interpose/driver/mappings.h"
#include "interpose/driver/memory.h"
#include "interpose/process/session.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

namespace {

// Each uses arena memory and a host function's word until the context is reset.
constexpr uint32_t kMostCarriers = 4096;

struct Carrier {
    CopyEnd end;  // the application's
    uint64_t width, height, depth;
    Direction direction;
    uint64_t arena;
    Carrier* next;
};

constinit pthread_mutex_t carried_lock = PTHREAD_MUTEX_INITIALIZER;
struct Carriers {
    Carrier* first;
    uint32_t count;
};
constinit PerSession<Carriers> all_carriers;

bool same(const Carrier& known, const Carrier& wanted) {
    return known.end.address == wanted.end.address && known.end.pitch == wanted.end.pitch &&
           known.end.height == wanted.end.height && known.width == wanted.width &&
           known.height == wanted.height && known.depth == wanted.depth &&
           known.direction == wanted.direction;
}

// Called with carried_lock held.
Carrier* find_carrier(const Carrier& wanted) {
    for (Carrier* each = all_carriers.here().first; each; each = each->next)
        if (same(*each, wanted)) return each;
    return nullptr;
}

// Whether the application itself could access the memory.
bool reachable(uint64_t from, uint64_t to, Direction direction) {
    Mappings mappings;
    Mapping mapping;
    uint64_t covered = from;
    while (covered < to && mappings.next(mapping)) {
        if (mapping.to <= covered) continue;
        if (mapping.from > covered ||
            !(direction == Direction::kToArena ? mapping.readable : mapping.writable))
            return false;
        covered = mapping.to;
    }
    return covered >= to;
}

// Runs on the callback thread.
void CUDA_CB carry(void* data) {
    const Carrier& carrier = *static_cast<const Carrier*>(data);
    char* packed = reinterpret_cast<char*>(carrier.arena);
    for (uint64_t z = 0; z < carrier.depth; ++z) {
        for (uint64_t y = 0; y < carrier.height; ++y, packed += carrier.width) {
            char* const row = reinterpret_cast<char*>(row_address(carrier.end, y, z));
            if (carrier.direction == Direction::kToArena)
                std::memcpy(packed, row, carrier.width);
            else
                std::memcpy(row, packed, carrier.width);
        }
    }
}

CUresult add_carry(CUgraph graph, void* carrier, CUgraphNode* last) {
    if (!carrier) return CUDA_SUCCESS;
    const CUDA_HOST_NODE_PARAMS host{carry, carrier};
    CUgraphNode node = nullptr;
    const CUresult status = driver::cuGraphAddHostNode(&node, graph, last, *last ? 1 : 0, &host);
    if (status == CUDA_SUCCESS) *last = node;
    return status;
}

CUresult add_copy(CUgraph graph, const protocol::Copy& copy, CUgraphNode* last) {
    const NodePlace place = NodePlace::add(graph, last, *last ? 1 : 0);
    CUgraphNode node = nullptr;
    RemoteCall call(protocol::Op::kGraphMemcpyNode, sizeof(protocol::GraphCopyNode) + place.bytes());
    if (!call.open()) return call.status();
    call.in(protocol::GraphCopyNode{place.operation, static_cast<uint32_t>(place.dependency_count),
                                    place.graph, place.node, copy});
    in_dependencies(call, place);
    const CUresult status = finish_node(call, &node);
    if (status == CUDA_SUCCESS) *last = node;
    return status;
}

}  // namespace

CUresult stand_in(const CopyEnd& end, uint64_t span, const Transfer& extent, Direction direction,
                  StandIn& made) {
    if (!reachable(end.address, end.address + span, direction)) return CUDA_ERROR_NOT_SUPPORTED;
    Carriers& carriers = all_carriers.here();
    Carrier wanted{end, extent.width, extent.height, extent.depth, direction, 0, nullptr};
    {
        Lock lock(carried_lock);
        if (Carrier* const known = find_carrier(wanted)) return made = {known->arena, known}, CUDA_SUCCESS;
        if (carriers.count == kMostCarriers) return CUDA_ERROR_NOT_SUPPORTED;
        ++carriers.count;
    }
    CUresult status = arena_pages(wanted.width * wanted.height * wanted.depth, wanted.arena);
    auto* const carrier =
        status == CUDA_SUCCESS ? static_cast<Carrier*>(std::malloc(sizeof(Carrier))) : nullptr;
    Lock lock(carried_lock);
    if (!carrier) return --carriers.count, status == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : status;
    wanted.next = carriers.first;
    carriers.first = carrier;
    *carrier = wanted;
    made = {carrier->arena, carrier};
    return CUDA_SUCCESS;
}

CUresult make_carried(const protocol::Copy& copy, void* before, void* behind, CUgraph* graph) {
    CUgraphNode last = nullptr;
    SMT_TRY(driver::cuGraphCreate(graph, 0));
    CUresult status = add_carry(*graph, before, &last);
    if (status == CUDA_SUCCESS) status = add_copy(*graph, copy, &last);
    if (status == CUDA_SUCCESS) status = add_carry(*graph, behind, &last);
    if (status != CUDA_SUCCESS) driver::cuGraphDestroy(*graph);
    return status;
}

// Their memory stays allocated: the callback thread may still run one.
void forget_carried() {
    Lock lock(carried_lock);
    all_carriers.here() = {};
}

}  // namespace smt::interpose::driver
