// The client's end of a lane against a consumer that plays the server by the rules of layout.h.
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "interpose/process/session.h"
#include "interpose/process/state.h"
#include "interpose/transport/connect.h"
#include "interpose/transport/connection.h"
#include "interpose/transport/lane.h"
#include "interpose/transport/waiting.h"

// What lane.cpp asks of the rest of the client: a session that is there, with a server that lives.
namespace smt::interpose {

std::atomic<State> process_state{State::kRemote};
CUresult connect() { return CUDA_SUCCESS; }
constinit Session sessions[kMostSessions]{};
constinit thread_local Session* thread_session = &sessions[0];
void Session::enter(protocol::SessionHeader* header, int, CUdevice) { header_ = header; }
CUresult Session::sticky_error() const { return CUDA_SUCCESS; }
bool Session::server_lives() { return true; }
bool Session::server_lives_sometimes() { return true; }
CUresult request_lane(Session&, int32_t, uint32_t&, uint64_t&) { return CUDA_ERROR_OUT_OF_MEMORY; }

namespace {

using protocol::kRecordAlignment;
using protocol::kRingBytes;
using protocol::LaneHeader;
using protocol::Op;
using protocol::RecordHeader;

constexpr uint16_t kTestOp = 4242;

struct TestLane {
    // Aligned storage for what lies in the arena.
    std::unique_ptr<char, decltype(&std::free)> memory{
        static_cast<char*>(std::aligned_alloc(4096, protocol::kLaneBytes)), &std::free};
    Lane lane{};

    TestLane() {
        std::memset(memory.get(), 0, protocol::kLaneBytes);
        lane.session = &this_session();
        lane.header = reinterpret_cast<LaneHeader*>(memory.get());
        lane.ring = memory.get() + protocol::kLaneRingOffset;
        lane.reply = memory.get() + protocol::kLaneReplyOffset;
    }

    void send(uint64_t number, uint32_t bytes) {
        char* at = reserve(lane, bytes);
        REQUIRE(at != nullptr);
        RecordHeader record{bytes, kTestOp, 0, 0, bytes - static_cast<uint32_t>(sizeof(RecordHeader))};
        std::memcpy(at, &record, sizeof(record));
        for (uint64_t byte = sizeof(record); byte < bytes; byte += sizeof(number))
            std::memcpy(at + byte, &number, sizeof(number));
        publish(lane, bytes);
    }
};

// The server's end: takes one record, or returns false when there is none.
class Consumer {
public:
    explicit Consumer(TestLane& test) : header_(*test.lane.header), ring_(test.lane.ring) {}

    bool take(uint64_t& number, uint32_t& bytes) {
        uint64_t tail = header_.tail.load(std::memory_order_acquire);
        while (head_ != tail) {
            RecordHeader record;
            const char* at = ring_ + head_ % kRingBytes;
            std::memcpy(&record, at, sizeof(record));
            if (record.bytes < sizeof(record) || record.bytes % kRecordAlignment ||
                record.bytes > tail - head_ || head_ % kRingBytes + record.bytes > kRingBytes)
                return broken_ = true, false;
            bool pad = record.op == static_cast<uint16_t>(Op::kPad);
            if (!pad) {
                bytes = record.bytes;
                std::memcpy(&number, at + sizeof(record), sizeof(number));
                for (uint64_t i = sizeof(record); i < bytes; i += sizeof(number))
                    broken_ = broken_ || std::memcmp(at + i, &number, sizeof(number)) != 0;
            }
            head_ += record.bytes;
            header_.head.store(head_, std::memory_order_seq_cst);
            if (header_.space_wanted.load(std::memory_order_seq_cst) && header_.space_wanted.exchange(0))
                futex_wake(header_.space_wanted);
            if (!pad) return true;
        }
        return false;
    }
    bool broken() const { return broken_; }

private:
    LaneHeader& header_;
    const char* ring_;
    uint64_t head_ = 0;
    bool broken_ = false;
};

uint32_t some_size(std::mt19937& random) {
    uint32_t most = random() % 50 ? 512 : protocol::kMaxRecordBytes;
    return std::max(32u, static_cast<uint32_t>(random()) % most / kRecordAlignment * kRecordAlignment);
}

TEST_CASE("records come out in order, whole, and never wrapped", "[ring]") {
    TestLane test;
    Consumer consumer(test);
    std::mt19937 random(7);
    uint64_t number = 0;
    uint32_t bytes = 0;
    for (uint64_t i = 0; i < 20'000; ++i) {
        uint32_t size = some_size(random);
        test.send(i, size);
        REQUIRE(consumer.take(number, bytes));
        REQUIRE((number == i && bytes == size));
        REQUIRE_FALSE(consumer.take(number, bytes));
    }
    CHECK_FALSE(consumer.broken());
}

TEST_CASE("a fast client waits for a slow server, and nothing is lost", "[ring]") {
    TestLane test;
    constexpr uint64_t kRecords = 30'000;
    bool in_order = true, broken = false;
    std::atomic<bool> all_sent{false};
    std::thread server([&] {
        Consumer consumer(test);
        uint64_t number = 0, expected = 0;
        uint32_t bytes = 0;
        while (expected < kRecords && !consumer.broken()) {
            if (expected % 1024 == 0)
                while (!test.lane.header->space_wanted.load() && !all_sent.load()) std::this_thread::yield();
            if (!consumer.take(number, bytes)) continue;
            in_order = in_order && number == expected;
            ++expected;
        }
        broken = consumer.broken();
    });
    std::mt19937 random(8);
    for (uint64_t i = 0; i < kRecords; ++i) test.send(i, some_size(random));
    all_sent.store(true);
    server.join();
    CHECK(in_order);
    CHECK_FALSE(broken);
}

TEST_CASE("publishing wakes a server that sleeps, once", "[ring]") {
    TestLane test;
    LaneHeader& header = *test.lane.header;
    std::thread server([&] {
        while (header.tail.load() == 0) {
            header.server_asleep.store(1);
            if (header.tail.load() == 0) futex_wait(header.server_asleep, 1, 10'000);
        }
    });
    while (header.server_asleep.load() == 0) std::this_thread::yield();
    test.send(1, 32);
    server.join();
    test.send(2, 32);
    CHECK(header.tail.load() == 64);
}

TEST_CASE("a program's thread sleeps as exactly after a wait as before", "[ring]") {
    std::thread thread([] {
        prctl(PR_SET_TIMERSLACK, 70'000ul);
        {
            Naps naps;
            naps.nap();
            CHECK(prctl(PR_GET_TIMERSLACK) == 1);
            naps.nap();
        }
        CHECK(prctl(PR_GET_TIMERSLACK) == 70'000);
        {
            const Naps none;
        }
        CHECK(prctl(PR_GET_TIMERSLACK) == 70'000);
    });
    thread.join();
}

TEST_CASE("a waiting thread naps where the server says that cores are scarce, and looks on where not",
          "[ring]") {
    protocol::SessionHeader shown{};  // what the server says
    this_session().enter(&shown, -1, 0);
    for (const bool scarce : {false, true}) {
        std::thread thread([scarce, &shown] {
            shown.cores_scarce = scarce;
            prctl(PR_SET_TIMERSLACK, 70'000ul);
            bool napped = false;
            CHECK_FALSE(look_on([&] { return napped |= prctl(PR_GET_TIMERSLACK) == 1, false; },
                                now_nanoseconds() + 1'000'000));
            CHECK(napped == scarce);
            CHECK(prctl(PR_GET_TIMERSLACK) == 70'000);
        });
        thread.join();
    }
    this_session().enter(nullptr, -1, 0);
}

}  // namespace
}  // namespace smt::interpose
