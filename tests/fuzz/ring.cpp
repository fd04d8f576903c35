// A lane's ring in the hands of a liar, with its twin thread running: records, half records, tails that
// jump. The lane takes what it is sent, or the session ends; the server goes on either way.
//
//   input := { step }
//   step  := 0 u16 operation, u8 bytes, payload      a proper record
//          | 1 16 bytes of header, u8 bytes, payload  any record
//          | 2 i16                                    the tail moves by that much
//          | 3 u8 bytes, text                         written into the ring, nothing is published
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "opcodes.gen.h"
#include "tests/wire/server.h"

using namespace smt;
using namespace smt::protocol;

namespace {

class Input {
public:
    Input(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
    bool more() const { return at_ < end_; }
    template <typename T>
    T next() {
        T value{};
        const size_t bytes = std::min<size_t>(sizeof(T), end_ - at_);
        std::memcpy(&value, at_, bytes);
        at_ += bytes;
        return value;
    }
    std::string_view text() {
        const size_t bytes = std::min<size_t>(next<uint8_t>(), end_ - at_);
        const std::string_view found(reinterpret_cast<const char*>(at_), bytes);
        at_ += bytes;
        return found;
    }

private:
    const uint8_t* at_;
    const uint8_t* end_;
};

struct Client {
    tests::TestSession session;
    tests::TestLane lane = session.open_lane();
};

std::unique_ptr<Client> client;

// Blocks by right, see handlers.cpp.
bool blocks(uint16_t op) {
    const char* known = op >= kFirstGeneratedOp ? op_name(op) : nullptr;
    const std::string_view name = known ? known : "";
    return name.starts_with("cuStreamWaitValue") || name.starts_with("cuStreamBatchMemOp");
}

void write(tests::TestLane& lane, uint64_t position, std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) lane.ring()[(position + i) % kRingBytes] = text[i];
}

// Whether there is still a lane to write to afterwards.
bool step(Input& input, Client& to) {
    tests::TestLane& lane = to.lane;
    switch (input.next<uint8_t>() % 4) {
        case 0: {
            const uint16_t op = input.next<uint16_t>() % 1024;
            const std::string_view payload = input.text();
            if (blocks(op) || op == static_cast<uint16_t>(Op::kPad)) return true;
            lane.post(op, payload.data(), payload.size());
            return op != static_cast<uint16_t>(Op::kCloseLane);
        }
        case 1: {
            auto header = input.next<RecordHeader>();
            if (blocks(header.op)) return true;
            const std::string_view payload = input.text();
            write(lane, lane.position(), {reinterpret_cast<const char*>(&header), sizeof header});
            write(lane, lane.position() + sizeof header, payload);
            lane.publish(lane.position() + header.bytes);
            return false;
        }
        case 2:
            lane.publish(lane.position() + static_cast<uint64_t>(int64_t{input.next<int16_t>()}));
            return false;
        default:
            write(lane, lane.position() + 64, input.text());
            return true;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (!client) client = std::make_unique<Client>();
    Input input(data, size);
    bool proper = true;
    while (input.more() && proper && !client->session.hung_up()) proper = step(input, *client);
    // Proper records are all executed. Others may be; the session must end in any case.
    if (proper) {
        tests::await(
            [&] {
                return client->session.hung_up() ||
                       client->lane.header().head.load() >= client->lane.position();
            },
            "the lane has executed the records");
    } else {
        client.reset();
    }
    return 0;
}
