// One packet of a session's control socket, with the file passed along, and the handling of Captured
// messages. Used by the session's thread alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "runtime/protocol/handshake.h"

namespace smt::runtime::jit {
class Service;
}

namespace smt::runtime::server {

class ControlMessage {
public:
    ControlMessage() = default;
    ~ControlMessage() { close_file(); }
    ControlMessage(const ControlMessage&) = delete;
    ControlMessage& operator=(const ControlMessage&) = delete;

    // Replaces the contents by the next packet. False: the client is gone.
    bool receive(int socket);

    template <typename T>
    std::optional<T> as(protocol::ControlKind kind) const {
        static_assert(sizeof(T) < kBytes);
        T message;
        if (bytes_ != sizeof message) return std::nullopt;
        std::memcpy(&message, packet_, sizeof message);
        return message.kind == kind ? std::optional(message) : std::nullopt;
    }
    int file() const { return file_; }  // -1: none; closed by the next receive()

private:
    void close_file();

    static constexpr size_t kBytes = 64;
    alignas(8) char packet_[kBytes];
    size_t bytes_ = 0;
    int file_ = -1;
};

// Reads the file of a Captured message and submits its source for compilation. Empty, or the error.
std::string submit_captured(jit::Service& compiler, uint32_t tenant, int file, uint64_t bytes);

}  // namespace smt::runtime::server
