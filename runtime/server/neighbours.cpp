#include "runtime/server/neighbours.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "runtime/protocol/handshake.h"
#include "runtime/protocol/packet.h"
#include "runtime/protocol/server_key.h"
#include "runtime/protocol/try.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/peer.h"

namespace smt::runtime::server {

using protocol::ControlKind;
using protocol::SharedFetched;
using protocol::SharedKind;

namespace {

constexpr time_t kPatienceSeconds = 10;

bool is_physical(SharedKind kind) {
    return kind == SharedKind::kPhysical || kind == SharedKind::kPeerPhysical;
}

SharedFetched failed(CUresult status) {
    SharedFetched reply{static_cast<uint32_t>(ControlKind::kSharedFetched)};
    reply.status = status;
    return reply;
}

bool proper(const SharedFetched& facts) {
    return facts.bytes != 0 && facts.bytes % kChunkBytes == 0 && facts.base % kChunkBytes == 0 &&
           facts.base + facts.bytes > facts.base && facts.block_bytes <= facts.bytes &&
           facts.offset <= facts.bytes - facts.block_bytes;
}

}  // namespace

uint64_t Neighbours::own_number() const { return protocol::server_number(device_.key()); }

SharedFetched Neighbours::give(Sharing& sharing, const protocol::FetchShared& request, int* file) const {
    *file = -1;
    const bool memory = request.kind == SharedKind::kMemory || request.kind == SharedKind::kPeer;
    if (!memory && !is_physical(request.kind)) return failed(CUDA_ERROR_INVALID_VALUE);
    const std::string family(protocol::text_in(request.family));
    const Sharing::Found found = sharing.find(request.kind, request.token, family);
    if (found.answer != Sharing::Answer::kFound) return failed(CUDA_ERROR_INVALID_VALUE);
    SharedFetched reply = failed(CUDA_SUCCESS);
    PhysicalPointer physical;
    if (memory) {
        const auto block = std::static_pointer_cast<const SharedBlock>(found.object);
        physical = block->memory;
        reply.base = block->base;
        reply.offset = block->offset;
        reply.block_bytes = block->bytes;
    } else {
        physical = std::static_pointer_cast<PhysicalAllocation>(found.object);
        reply.block_bytes = physical->bytes();
    }
    reply.bytes = physical->bytes();
    reply.memory = physical->number();
    reply.exportable = physical->exportable();
    const CUresult status = physical->export_to(file);
    return status == CUDA_SUCCESS ? reply : failed(status);
}

// The socket of the server of that number. -1: there is none that answers.
int Neighbours::reach(uint64_t server) const {
    constexpr std::string_view kSuffix = ".sock";
    std::error_code problem;
    for (const auto& each : std::filesystem::directory_iterator(folder_, problem)) {
        const std::string name = each.path().filename().string();
        if (!name.ends_with(kSuffix)) continue;
        const std::string key = name.substr(0, name.size() - kSuffix.size());
        if (!protocol::is_key(key) || protocol::server_number(key) != server) continue;
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string path = each.path().string();
        if (path.size() >= sizeof address.sun_path) return -1;
        std::memcpy(address.sun_path, path.c_str(), path.size());
        const int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (client < 0) return -1;
        const timeval patience{kPatienceSeconds, 0};
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
            user_of(client) == geteuid())
            return client;
        close(client);
    }
    return -1;
}

CUresult Neighbours::import(int file, const SharedFetched& facts, SharedBlockPointer* block) const {
    const DriverApi& driver = device_.driver();
    if (!driver.cuMemImportFromShareableHandle) return CUDA_ERROR_NOT_SUPPORTED;
    CUmemGenericAllocationHandle handle = 0;
    SMT_TRY(driver.cuMemImportFromShareableHandle(&handle,
                                                  reinterpret_cast<void*>(static_cast<intptr_t>(file)),
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    auto memory =
        std::make_shared<PhysicalAllocation>(device_, facts.bytes, Charge(), 0, facts.exportable != 0);
    memory->own_handle(handle);
    *block = std::make_shared<const SharedBlock>(
        SharedBlock{std::move(memory), facts.offset, facts.block_bytes, facts.base, true, facts.memory});
    return CUDA_SUCCESS;
}

// The other side is asked about what is open here, too: it may have been freed there.
CUresult Neighbours::fetch(const protocol::OpenShared& wanted, const std::string& family,
                           SharedBlockPointer* block) {
    protocol::FetchShared request{static_cast<uint32_t>(ControlKind::kFetchShared)};
    request.kind = wanted.kind;
    request.token = wanted.token;
    if (family.size() >= sizeof request.family) return CUDA_ERROR_INVALID_VALUE;
    family.copy(request.family, sizeof request.family - 1);
    const int server = folder_.empty() ? -1 : reach(wanted.server);
    if (server < 0) return CUDA_ERROR_INVALID_VALUE;
    SharedFetched facts{};
    int file = -1;
    const bool answered = protocol::send_packet(server, &request, sizeof request) &&
                          protocol::receive_packet(server, &facts, sizeof facts, &file) == sizeof facts &&
                          facts.control == static_cast<uint32_t>(ControlKind::kSharedFetched);
    close(server);
    CUresult status = answered ? static_cast<CUresult>(facts.status) : CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS && (file < 0 || !proper(facts))) status = CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS) {
        const bool opened_again = wanted.kind == SharedKind::kMemory;
        if (opened_again) *block = known(wanted.token, nullptr);
        if (!*block) status = import(file, facts, block);
        if (opened_again && *block) *block = known(wanted.token, *block);
    }
    if (file >= 0) close(file);
    return status;
}

// The block of the token; `fresh`: unless there is one by now.
SharedBlockPointer Neighbours::known(const protocol::ShareToken& token, const SharedBlockPointer& fresh) {
    Key key;
    std::copy(std::begin(token.bytes), std::end(token.bytes), key.begin());
    std::lock_guard lock(mutex_);
    std::erase_if(known_, [](const auto& each) { return each.second.expired(); });
    const auto found = known_.find(key);
    if (SharedBlockPointer block = found == known_.end() ? nullptr : found->second.lock()) return block;
    if (fresh) known_[key] = fresh;
    return fresh;
}

}  // namespace smt::runtime::server
