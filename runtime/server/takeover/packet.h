// What is said between a server and its standby, on a socket of theirs (SOCK_SEQPACKET), one packet each:
//
//   server:  kBegin, socket of the keeper                  value: the keeper's process
//   standby: kReady                                        has its context
//   server:  kServe, listening socket, lock, memfd         what it goes on with after a crash
//            kKept, control socket, arena, memfd, marks    likewise, of the session `number`; described at
//                                                          `changes` (marks.h). kNotDescribed: it cannot be
//                                                          carried, text says why, and the memfd has its
//                                                          name. value: bytes of the memfd
//            kForget                                       the session `number` is over
//            kLeave                                        the server ends in order
//            kEnds, memfd                                  it ends as if it had crashed (standstill.h).
//                                                          value: bytes of the memfd, which says why, and
//                                                          which tenant's fault it is
//   server:  kTakeOver, listening socket, lock, memfd      after a fault; the memfd has the server's state
//            kSession, control socket, arena, memfd, line  value: bytes of the memfd; for each session
//            kDone                                         all sessions were sent. text: whose fault it was,
//                                                          if none of `value` sessions faults again
//
// On a session's line, which is a socket of its own:
//
//   standby: kMade          text: what went wrong; empty: nothing
//   server:  kGo            from here on the session is the standby's
//
// A line that is closed before kGo leaves the session with the server, and one that is closed before kMade,
// too. Where the first socket is closed before kTakeOver and kLeave the server has crashed: the standby goes
// on with what it was told.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace smt::runtime::server {

enum class PacketKind : uint32_t {
    kBegin = 1,
    kReady,
    kTakeOver,
    kSession,
    kDone,
    kMade,
    kGo,
    kServe,
    kKept,
    kForget,
    kLeave,
    kEnds
};

struct Packet {
    static constexpr uint32_t kMagic = 0x5354'4d53;
    uint32_t magic = kMagic;
    PacketKind kind = PacketKind::kBegin;
    uint64_t value = 0;
    uint64_t number = 0;
    uint64_t changes = 0;
    char text[224] = {};
};
static_assert(sizeof(Packet) == 256);

Packet make_packet(PacketKind kind, uint64_t value = 0, const std::string& text = {});
// False: the other end is gone, or has not read for two seconds. The caller keeps its descriptors.
bool put_packet(int socket, const Packet& packet, const std::vector<int>& files = {});
// The server ends in order. A standby that is not told, as it does not read, would take the end for a crash:
// that process, a child, is killed.
void put_leave(int socket, int pid);
// False: the other end is gone, or said something else than `kind` with `count` descriptors; nothing is kept
// then. Waits for `milliseconds` at most; -1: as long as it takes.
bool take_packet(int socket, PacketKind kind, size_t count, Packet* packet, std::vector<int>* files,
                 int milliseconds = -1);
// Any packet with its descriptors. False: as above.
bool take_any_packet(int socket, Packet* packet, std::vector<int>* files, int milliseconds);

// A memfd with these bytes; -1: none could be made. read_file() and FileBytes close it.
int file_of(const std::string& bytes);
std::string read_file(int file, uint64_t bytes);  // empty: it cannot be read

// A memfd's bytes where they are, which copies of the object share. Empty: it cannot be read.
class FileBytes {
public:
    FileBytes() = default;
    FileBytes(int file, uint64_t bytes);
    const char* data() const { return static_cast<const char*>(mapping_.get()); }
    size_t size() const { return size_; }

private:
    std::shared_ptr<void> mapping_;
    size_t size_ = 0;
};

}  // namespace smt::runtime::server
