// Sends a server what no client sends, of each kind so many messages: it must answer, refuse or end a
// session, and go on.
//
//   hostile SOCKET ROUNDS SEED ORDERS VICTIM [PART]
//
//   first packets   of each ControlKind, and of kinds that are none: cut short, too long, random, extreme;
//                   with descriptors of all sorts. ORDERS: also orders to stop that are good ones (else
//                   none). Half of the names of tenants are VICTIM
//   handshakes      the same after a good greeting
//   messages        of a session: each kind with wrong contents, sizes and descriptors
//   records         of each operation, with random payloads; operations that are none; rings that lie
//
// The same seed sends the same bytes. A stream or lane may wait by right for what never comes; then the
// session is left for another one.
#include <fcntl.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

#include "tests/preload/raw_session.h"

using namespace smt::tests;

namespace {

constexpr int kStallMs = 100;

class Hostile {
public:
    Hostile(const char* socket, int rounds, unsigned seed, bool orders, const char* victim)
        : path_(socket), rounds_(rounds), orders_(orders), victim_(victim), random_(seed) {
        make_files();
    }

    void first_packets();
    void handshakes();
    void messages();
    void records();
    long sent() const { return sent_; }

private:
    uint32_t below(uint32_t most) { return static_cast<uint32_t>(random_() % most); }
    std::vector<char> random_bytes(size_t bytes);
    std::vector<char> packet_of(uint32_t kind);
    void make_files();
    bool send(int socket, const std::vector<char>& packet);
    void end(Session& session);
    void message_of(uint32_t kind);
    void record_of(uint16_t op);
    void lie();
    bool drained(int milliseconds);

    const char* const path_;
    const int rounds_;
    const bool orders_;
    const char* const victim_;
    std::mt19937_64 random_;
    std::vector<int> files_;
    Session session_;
    uint64_t tail_ = 0;
    long sent_ = 0;
};

// Memory of several sizes, and what is none.
void Hostile::make_files() {
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{40}, size_t{4096}, size_t{1} << 20}) {
        const int memory = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        const std::vector<char> content = random_bytes(bytes);
        require(write(memory, content.data(), bytes) == static_cast<ssize_t>(bytes), "a memory file");
        files_.push_back(memory);
    }
    require(fcntl(files_.back(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0, "seals");
    int ends[2];
    require(pipe2(ends, O_CLOEXEC) == 0, "a pipe");
    files_.insert(files_.end(), ends, ends + 2);
    for (const char* path : {"/dev/null", "/", "/proc/self/exe", "/proc/self/mem"})
        files_.push_back(open(path, O_RDONLY | O_CLOEXEC));
    files_.push_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

std::vector<char> Hostile::random_bytes(size_t bytes) {
    std::vector<char> made(bytes);
    for (char& each : made) each = static_cast<char>(below(256));
    return made;
}

// How large a message of the kind is; 0: there is none of that number. The compiler asks for new kinds.
constexpr size_t size_of(uint32_t kind) {
    switch (static_cast<ControlKind>(kind)) {
        case ControlKind::kHello:
            return sizeof(Hello);
        case ControlKind::kWelcome:
            return sizeof(Welcome);
        case ControlKind::kMapped:
            return sizeof(Mapped);
        case ControlKind::kOpenLane:
            return sizeof(OpenLane);
        case ControlKind::kLaneOpened:
            return sizeof(LaneOpened);
        case ControlKind::kStatus:
        case ControlKind::kStop:
        case ControlKind::kTenants:
        case ControlKind::kDevice:
            return sizeof(StatusRequest);
        case ControlKind::kStatusReply:
            return sizeof(StatusReply);
        case ControlKind::kCaptured:
            return sizeof(Captured);
        case ControlKind::kTenantStatus:
            return sizeof(TenantStatus);
        case ControlKind::kSetPolicy:
            return sizeof(PolicyRequest);
        case ControlKind::kChangeReply:
            return sizeof(ChangeReply);
        case ControlKind::kSettings:
            return sizeof(SettingsRequest);
        case ControlKind::kSettingsReply:
            return sizeof(SettingsReply);
        case ControlKind::kFarewell:
            return sizeof(Farewell);
        case ControlKind::kSuspend:
        case ControlKind::kResume:
            return sizeof(SuspendRequest);
        case ControlKind::kSuspendReply:
            return sizeof(SuspendReply);
        case ControlKind::kSetMemoryLimit:
            return sizeof(MemoryLimitRequest);
        case ControlKind::kDescriptor:
            return sizeof(Descriptor);
        case ControlKind::kSetTerms:
            return sizeof(TermsRequest);
        case ControlKind::kOpened:
            return sizeof(Opened);
        case ControlKind::kDeviceReply:
            return sizeof(DeviceReply);
        case ControlKind::kFetchShared:
            return sizeof(FetchShared);
        case ControlKind::kSharedFetched:
            return sizeof(SharedFetched);
    }
    return 0;
}

constexpr uint32_t last_kind() {
    uint32_t last = 0;
    for (uint32_t kind = 0; kind < 256; ++kind)
        if (size_of(kind) != 0) last = kind;
    return last;
}

constexpr uint32_t kKinds = last_kind() + 4;  // with some beyond the last one

// Where a request names a tenant; 0: it does not.
constexpr size_t tenant_in(uint32_t kind) {
    switch (static_cast<ControlKind>(kind)) {
        case ControlKind::kHello:
            return offsetof(Hello, tenant);
        case ControlKind::kSetMemoryLimit:
            return offsetof(MemoryLimitRequest, tenant);
        case ControlKind::kSetTerms:
            return offsetof(TermsRequest, tenant);
        case ControlKind::kSuspend:
        case ControlKind::kResume:
            return offsetof(SuspendRequest, tenant);
        case ControlKind::kFetchShared:
            return offsetof(FetchShared, family);
        default:
            return 0;
    }
}

std::vector<char> Hostile::packet_of(uint32_t kind) {
    const size_t right = size_of(kind) ? size_of(kind) : sizeof(StatusRequest);
    const size_t sizes[] = {
        right, right, right, right, below(static_cast<uint32_t>(right)), right + 1 + below(64), 60'000};
    const size_t bytes = std::max<size_t>(sizes[below(std::size(sizes))], 1);
    std::vector<char> packet = random_bytes(bytes);
    if (below(4) == 0) std::fill(packet.begin(), packet.end(), static_cast<char>(below(2) ? 0xff : 0));
    const auto put = [&](size_t at, auto value) {
        if (at + sizeof value <= packet.size()) std::memcpy(packet.data() + at, &value, sizeof value);
    };
    put(0, kind);
    const bool is_order = kind == static_cast<uint32_t>(ControlKind::kStop);
    if (is_order ? orders_ : below(16) != 0) put(4, kMagic);
    if (is_order && !orders_) put(4, ~kMagic);
    if (kind == static_cast<uint32_t>(ControlKind::kHello) && below(2)) {
        put(offsetof(Hello, version), kProtocolVersion);
        put(offsetof(Hello, table_hash), kTableHash);
    }
    if (kind == static_cast<uint32_t>(ControlKind::kFetchShared) && below(2))
        put(offsetof(FetchShared, version), kProtocolVersion);
    const size_t at = tenant_in(kind);
    if (at != 0 && below(2) &&
        at + kTenantNameBytes <= packet.size())  // the others are random, without an end
        std::strncpy(packet.data() + at, victim_, kTenantNameBytes);
    return packet;
}

// With no descriptor, or up to three. False: the other end is gone.
bool Hostile::send(int socket, const std::vector<char>& packet) {
    alignas(cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))] = {};
    iovec part{const_cast<char*>(packet.data()), packet.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    int chosen[3];
    if (const uint32_t files = below(4)) {
        for (int& each : chosen) each = files_[below(static_cast<uint32_t>(files_.size()))];
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(files * sizeof(int));
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(files * sizeof(int));
        std::memcpy(CMSG_DATA(header), chosen, files * sizeof(int));
    }
    ++sent_;
    return sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

void Hostile::first_packets() {
    char answer[8192];
    for (uint32_t kind = 0; kind < kKinds; ++kind) {
        for (int i = 0; i < rounds_; ++i) {
            const int client = connect_to(path_);
            send(client, packet_of(kind));
            if (below(8)) recv(client, answer, sizeof answer, 0);  // or it leaves without its answer
            close(client);
        }
    }
}

void Hostile::end(Session& session) {
    close(session.socket);
    munmap(session.lane, kLaneBytes);
    session = open_session(path_);
    tail_ = 0;
}

void Hostile::message_of(uint32_t kind) {
    std::vector<char> packet = packet_of(kind);
    if (kind == static_cast<uint32_t>(ControlKind::kCaptured) && packet.size() == sizeof(Captured) &&
        below(2)) {
        const uint64_t bytes[] = {0, 1, 40, 4096, 1 << 20, kMostCapturedBytes, kMostCapturedBytes + 1};
        std::memcpy(packet.data() + offsetof(Captured, bytes), &bytes[below(std::size(bytes))],
                    sizeof(uint64_t));
    }
    if (!send(session_.socket, packet)) end(session_);
}

void Hostile::messages() {
    session_ = open_session(path_);
    for (uint32_t kind = 0; kind < kKinds; ++kind)
        for (int i = 0; i < rounds_; ++i) message_of(kind);
    for (int i = 0; i < rounds_; ++i) message_of(below(kKinds));  // and in any order
    end(session_);
}

// After a good greeting, in the place of what follows it.
void Hostile::handshakes() {
    for (int i = 0; i < 2 * rounds_; ++i) {
        const int client = connect_to(path_);
        Hello hello;
        hello.table_hash = kTableHash;
        hello.pid = getpid();
        std::strcpy(hello.tenant, "intruder");
        require(::send(client, &hello, sizeof hello, 0) == sizeof hello, "greeted");
        close(receive_welcome(client));
        for (uint32_t packets = below(4); packets > 0; --packets)
            if (!send(client, packet_of(i % 2 ? static_cast<uint32_t>(ControlKind::kMapped) : below(kKinds))))
                break;
        close(client);
    }
}

bool Hostile::drained(int milliseconds) {
    for (int i = 0; i < 20 * milliseconds; ++i) {
        if (session_.header().head.load() == tail_) return true;
        pollfd gone{session_.socket, POLLIN, 0};
        if (poll(&gone, 1, 0) > 0) return false;
        usleep(50);
    }
    return false;
}

void Hostile::record_of(uint16_t op) {
    const uint32_t payload = 8 * below(32), bytes = (sizeof(RecordHeader) + payload + 15) & ~15u;
    if (tail_ % kRingBytes + bytes > kRingBytes || tail_ - session_.header().head.load() > kRingBytes / 2) {
        if (!drained(kStallMs)) return end(session_);
        tail_ = 0;
        return end(session_);  // a fresh ring, instead of a record that fills this one
    }
    char* at = session_.lane + kLaneRingOffset + tail_ % kRingBytes;
    const RecordHeader header{bytes, op, static_cast<uint16_t>(below(2)), below(1000), payload};
    std::memcpy(at, &header, sizeof header);
    for (uint32_t i = 0; i < payload; i += 8) {  // small numbers name objects, and large ones addresses
        const uint64_t word = below(2) ? below(40) : random_();
        std::memcpy(at + sizeof header + i, &word, sizeof word);
    }
    tail_ += bytes;
    ++sent_;
    publish(session_, tail_);
}

// A record or a position that is none.
void Hostile::lie() {
    const uint64_t tails[] = {8 + below(kRingBytes), kRingBytes + 16, ~0ull - below(64), 16, 4096};
    const uint32_t lengths[] = {0,        8,  16, 17, 4096, kRingBytes - 16, kRingBytes, kRingBytes + 16,
                                ~0u - 15, ~0u};
    const auto length = [&] {
        return below(2) ? lengths[below(std::size(lengths))] : static_cast<uint32_t>(random_());
    };
    const uint32_t op = below(2) ? below(kFirstGeneratedOp + kGeneratedOps) : below(1 << 16);
    session_.record() = {length(), static_cast<uint16_t>(op), static_cast<uint16_t>(random_()), 0, length()};
    publish(session_, tails[below(std::size(tails))]);
    ++sent_;
    end(session_);
}

bool waits_by_right(uint16_t op) {
    const char* known = op_name(op);
    const std::string_view name = known ? known : "";
    return op < 3 || name.find("BatchMemOp") != name.npos || name.find("WaitValue") != name.npos;
}

void Hostile::records() {
    constexpr uint16_t kNone = 50;  // operations beyond the last one
    session_ = open_session(path_);
    for (uint16_t op = 0; op < kFirstGeneratedOp + kGeneratedOps + kNone; ++op) {
        if (op > static_cast<uint16_t>(Op::kNewThread) + kNone && op < kFirstGeneratedOp) continue;
        for (int i = 0; i < rounds_; ++i) {
            record_of(op);
            if (waits_by_right(op) && i % 8 == 7) end(session_);  // whatever it waits for
        }
        if (!drained(kStallMs)) end(session_);
    }
    for (int i = 0; i < rounds_; ++i) lie();
    end(session_);
}

}  // namespace

int main(int, char** arguments) {
    Hostile hostile(arguments[1], std::atoi(arguments[2]), static_cast<unsigned>(std::atoi(arguments[3])),
                    std::string_view(arguments[4]) == "orders", arguments[5]);
    const char* part = arguments[6];
    if (!part || std::string_view(part) == "packets") hostile.first_packets();
    if (!part || std::string_view(part) == "handshakes") hostile.handshakes();
    if (!part || std::string_view(part) == "messages") hostile.messages();
    if (!part || std::string_view(part) == "records") hostile.records();
    std::printf("%ld messages\n", hostile.sent());
}
