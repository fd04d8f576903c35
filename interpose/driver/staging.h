// The lane's staging slots: pinned memory in the arena through which bytes of pageable memory pass.
//
//   StagingSlot slot;
//   acquire_slot(slot, stream_reference);    // a slot that is free, or the oldest, once it is free
//   ... fill slot.data (to the device), post a record that announces slot.index and slot.done_value ...
//   wait_slot(slot);                         // only from the device: until the slot is full
//
// Slots are taken in turn, so up to kStagingSlots records are in flight at once. A slot is free again when
// its completion word has reached the value announced for it last. Those of a stream that stands still are
// passed over. Short copies of one stream to the device share a slot, one behind the other, so that many of
// them can be enqueued behind a wait for what the program does later.
//
// Rules: the slots belong to the calling thread's lane. Acquire a slot before constructing the RemoteCall,
// since acquiring may wait and may send records of its own. If the announcing record was not posted, call
// abandon_slot(). A thread may have several slots that it has yet to read: it says which (`held`), and
// acquires another one only if it need not wait for that.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "runtime/protocol/layout.h"
#include "runtime/protocol/record.h"

namespace smt::interpose::driver {

struct StagingSlot {
    char* data;
    uint32_t index;
    uint32_t word;    // its completion word
    uint32_t offset;  // of `data` in the slot
    uint64_t done_value;
};

// `stream`: the reference of the stream that uses the slot. `bytes`: that a copy to the device needs; any
// other use is of a whole slot. `held`: slots that are not free whatever their words say, bits by index.
CUresult acquire_slot(StagingSlot& slot, uint32_t stream = protocol::kLegacyStream,
                      uint64_t bytes = protocol::kStagingSlotBytes, uint32_t held = 0);
bool slot_is_free(uint32_t held);
// SUCCESS when the slot's record is complete; the error if the record failed or the server is lost.
CUresult wait_slot(const StagingSlot& slot);
void abandon_slot(const StagingSlot& slot);

// memcpy from the application into a slot and from a slot to the application, optimised for blocks that come
// from or go to memory; see staging_bytes.cpp.
void fill_bytes(char* slot, const char* from, uint64_t count);
void drain_bytes(char* to, const char* slot, uint64_t count);

}  // namespace smt::interpose::driver
