// The lane's staging slots: pinned memory in the arena that bytes of pageable memory pass through.
//
//   StagingSlot slot;
//   acquire_slot(slot, stream_reference);    // the oldest slot, once nothing uses it any more
//   ... fill slot.data (to the device), post a record that announces slot.index and slot.done_value ...
//   wait_slot(slot);                         // only from the device: until the slot is full
//
// Slots are taken in turn, so up to kStagingSlots records are under way at once. A slot is free
// again when its completion word has reached the value announced for it last.
//
// Rules of the place: the slots belong to the calling thread's lane; acquire before a RemoteCall is
// constructed, for it may wait and may send records of its own. If the announcing record could not
// be posted, call abandon_slot(). A thread may hold all slots, but must wait for the oldest before
// it acquires one more.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "runtime/protocol/layout.h"
#include "runtime/protocol/record.h"

namespace smt::interpose::driver {

struct StagingSlot {
    char* data;  // kStagingSlotBytes
    uint32_t index;
    uint32_t word;  // its completion word
    uint64_t done_value;
};

// `stream`: the reference of the stream whose work will use the slot.
CUresult acquire_slot(StagingSlot& slot, uint32_t stream = protocol::kLegacyStream);
// SUCCESS when the slot's record is complete; the error if the record failed or the server is lost.
CUresult wait_slot(const StagingSlot& slot);
void abandon_slot(const StagingSlot& slot);

// The error of a record of this thread that nobody waits for, taken; SUCCESS when there is none.
// For calls that are synchronous to the application but made of such records.
CUresult take_async_error();

// memcpy from the application into a slot and from a slot to the application, for blocks that come
// or go through memory; see the measurements in staging_bytes.cpp.
void fill_bytes(char* slot, const char* from, uint64_t count);
void drain_bytes(char* to, const char* slot, uint64_t count);

}  // namespace smt::interpose::driver
