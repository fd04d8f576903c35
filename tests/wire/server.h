// smtd without its process: the server's classes on the fake driver, and clients that write every byte
// themselves. Client and server share the arena's one mapping, so there is nothing to map.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/journal/journal.h"
#include "runtime/protocol/codec.h"
#include "runtime/protocol/handshake.h"
#include "runtime/protocol/layout.h"
#include "runtime/protocol/record.h"
#include "runtime/server/printf.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::tests {

// One for the process, like the fake driver's state.
class TestServer {
public:
    static TestServer& get();
    runtime::device::Device& device() { return *device_; }
    runtime::server::Server& server() { return *server_; }

private:
    TestServer();
    std::unique_ptr<runtime::device::Device> device_;
    std::unique_ptr<runtime::journal::Writer> journal_;
    runtime::server::DevicePrintf device_printf_;
    std::unique_ptr<runtime::server::Server> server_;
};

struct Reply {
    CUresult status = CUDA_SUCCESS;
    std::vector<uint64_t> words;
    size_t bytes = 0;
    protocol::Reader reader() const { return protocol::Reader(words.data(), bytes); }
    template <typename T>
    T as() const {
        return reader().scalar<T>();
    }
};

// The client's end of one lane. Waits for at most a minute, then the process ends with a line about it.
class TestLane {
public:
    TestLane(uint64_t address, uint32_t index)
        : address_(address), index_(index), position_(header().tail.load()) {}
    protocol::LaneHeader& header() const { return *reinterpret_cast<protocol::LaneHeader*>(address_); }
    char* ring() const { return reinterpret_cast<char*>(address_ + protocol::kLaneRingOffset); }
    uint32_t index() const { return index_; }
    uint64_t position() const { return position_; }

    void post(uint16_t op, const void* payload, size_t bytes, uint16_t flags = 0, uint32_t sequence = 0);
    template <typename Request>
    void post(protocol::Op op, const Request& request) {
        post(static_cast<uint16_t>(op), &request, sizeof request);
    }
    Reply call(uint16_t op, const void* payload, size_t bytes);
    template <typename Request>
    Reply call(protocol::Op op, const Request& request) {
        return call(static_cast<uint16_t>(op), &request, sizeof request);
    }
    Reply call(protocol::Op op) { return call(static_cast<uint16_t>(op), nullptr, 0); }
    void await_reached(uint64_t position) const;
    CUresult take_error() const { return static_cast<CUresult>(header().async_error.exchange(0)); }
    // As the client does: sets the tail and wakes a sleeping lane thread. Any tail, also a wrong one.
    void publish(uint64_t tail);

private:
    const uint64_t address_;
    const uint32_t index_;
    uint64_t position_;
    uint32_t sequence_ = 0;
};

// A client's session, from its greeting to the end of its teardown in the destructor.
class TestSession {
public:
    explicit TestSession(uint64_t memory_limit = 0, const char* tenant = "test");
    ~TestSession();
    runtime::server::Session& session() { return *session_; }
    uint64_t device_base() const { return device_base_; }
    TestLane open_lane();
    void send_control(const void* packet, size_t bytes, int file);  // file -1: none goes with it
    bool hung_up() const;                                           // the server ended it
    void await_end() const;                                         // until it does
    void leave();  // the client dies; returns when the server has freed everything

private:
    void answer_callbacks();

    int socket_ = -1;
    int server_socket_ = -1;
    uint64_t base_ = 0, device_base_ = 0;
    std::unique_ptr<runtime::server::Session> session_;
    std::atomic<bool> leaving_{false};
    std::thread serving_;
    std::thread callbacks_;  // says of every host function that it has run
};

// Waits until it is true; ends the process when that takes a minute.
template <typename Fact>
void await(Fact fact, const char* text);
[[noreturn]] void give_up(const char* text);

template <typename Fact>
void await(Fact fact, const char* text) {
    const uint64_t end = runtime::journal::now_ns() + 60'000'000'000;
    for (int look = 0; !fact(); ++look) {
        if (look > 100) std::this_thread::sleep_for(std::chrono::microseconds(50));
        if (runtime::journal::now_ns() > end) give_up(text);
    }
}

}  // namespace smt::tests
