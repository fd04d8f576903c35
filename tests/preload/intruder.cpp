// Speaks the protocol itself and breaks its rules, each once, in a session of its own: the server must
// end that session, and nothing else. intruder SOCKET
#include "tests/preload/raw_session.h"

using namespace smt::tests;

namespace {

void await_end(Session& session) {
    pollfd ended{session.socket, POLLIN, 0};
    Farewell farewell;
    require(poll(&ended, 1, kTimeoutMs) == 1, "the server reacts");
    require(recv(session.socket, &farewell, sizeof farewell, 0) == sizeof farewell &&
                farewell.kind == ControlKind::kFarewell,
            "it says why");
    require(farewell.message[0] != 0 && recv(session.socket, &farewell, sizeof farewell, 0) == 0,
            "it ends the session");
    close(session.socket);
    munmap(session.lane, kLaneBytes);
}

void garbage(const Session& session) {
    for (uint64_t i = 0; i < kRingBytes; ++i)
        session.lane[kLaneRingOffset + i] = static_cast<char>(rand() | 1);
    publish(session, kRingBytes);
}
void crooked_tail(const Session& session) {
    session.record() = {32, static_cast<uint16_t>(Op::kMemInfo), 0, 0, 0};
    publish(session, 24);
}
void far_tail(const Session& session) { publish(session, kRingBytes + 16); }
void negative_tail(const Session& session) { publish(session, ~0ull - 15); }
void empty_record(const Session& session) { publish(session, 64); }
void half_record(const Session& session) {
    session.record() = {4096, static_cast<uint16_t>(Op::kMemInfo), 0, 0, 0};
    publish(session, 64);
}
void long_payload(const Session& session) {
    session.record() = {32, static_cast<uint16_t>(Op::kMemInfo), 0, 0, 0x7fffffff};
    publish(session, 32);
}
void long_record(const Session& session) {
    session.record() = {kMaxRecordBytes + 16, static_cast<uint16_t>(Op::kMemInfo), 0, 0, 0};
    publish(session, kMaxRecordBytes + 16);
}
void false_message(const Session& session) {
    const char text[] = "no control message at all";
    require(send(session.socket, text, sizeof text, 0) == sizeof text, "sent");
}

}  // namespace

int main(int, char** arguments) {
    for (auto* intrude : {garbage, crooked_tail, far_tail, negative_tail, empty_record, half_record,
                          long_payload, long_record, false_message}) {
        Session session = open_session(arguments[1]);
        intrude(session);
        await_end(session);
    }
    std::puts("every session was ended");
}
