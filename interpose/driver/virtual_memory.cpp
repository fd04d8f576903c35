// Reserved device addresses. The server reserves them inside the tenant's device range, which contains no
// host pointer. The client does not track what is mapped there, and asks.
#include "driver.gen.h"
#include "interpose/driver/call_despite_error.h"
#include "interpose/driver/memory.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

using protocol::Op;

CUresult cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags) {
    bool power = (alignment & (alignment - 1)) == 0;
    if (!ptr || size == 0 || !power || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    protocol::MemAllocated reserved{};
    {
        RemoteCall call(Op::kAddressReserve, sizeof(protocol::AddressReserve));
        if (!call.open()) return call.status();
        call.in(protocol::AddressReserve{size, alignment, addr});
        SMT_TRY(call.wait());
        call.out(&reserved);
    }
    CUresult status = add_range({.base = reserved.address, .bytes = size, .memory = Memory::kVirtual});
    if (status == CUDA_SUCCESS) *ptr = reserved.address;
    return status;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
    Range range;
    if (!find_range(ptr, range) || range.base != ptr || range.bytes != size ||
        range.memory != Memory::kVirtual)
        return CUDA_ERROR_INVALID_VALUE;
    if (!take_range(ptr, range)) return CUDA_ERROR_INVALID_VALUE;
    CUresult earlier = CUDA_SUCCESS;
    CUresult status = call_despite_error(Op::kAddressFree, protocol::AddressRange{ptr, size}, earlier);
    if (status != CUDA_SUCCESS) add_range(range);  // something is still mapped there
    return earlier == CUDA_SUCCESS ? status : earlier;
}

CUresult find_mapping(const Range& range, uint64_t address, protocol::MemAllocated& mapping) {
    const InSession in(range.session);
    RemoteCall call(Op::kFindMapping, sizeof(protocol::Address));
    if (!call.open()) return call.status();
    call.in(protocol::Address{address});
    SMT_TRY(call.wait());
    call.out(&mapping);
    return CUDA_SUCCESS;
}

}  // namespace smt::interpose::driver
