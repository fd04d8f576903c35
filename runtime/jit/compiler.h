// The compile worker as the server sees it: one child process, started when it is first needed, that
// answers one order after the other and is started again when it has died.
//
// What it is given was written by a tenant, so nothing about it is certain: it may crash, run out of
// memory, never end, or answer nonsense. Each of these is a Result with a reason, and the next order
// meets a fresh process. It has no GPU, writes no files, and ends with the thread that started it.
//
// One thread at a time, always the same; interrupt() from any.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/jit/messages.h"
#include "runtime/jit/settings.h"

namespace smt::runtime::jit {

class Compiler {
public:
    // `shared`: a descriptor that the worker inherits; such a worker opens images and compiles nothing.
    explicit Compiler(const Settings& settings, int shared = -1) : settings_(settings), shared_(shared) {}
    ~Compiler() { end(); }
    Compiler(const Compiler&) = delete;
    Compiler& operator=(const Compiler&) = delete;

    // NVRTC's version, which starts the worker if need be. `problem` says why nothing can be compiled; empty:
    // it can.
    std::string nvrtc(std::string& problem);
    Result compile(const Order& order);
    // One message and its answer; nothing: `problem` says why, and the worker is gone. `started`: whether
    // there was one.
    std::optional<std::string> exchange(Message message, std::string_view bytes, Message expected,
                                        std::string& problem, bool* started = nullptr);
    const std::string& lacking() const {
        return ready_.lacking;
    }  // of what confines the worker; known when it has started
    void rest() { end(); }  // until the next order; an idle worker holds NVRTC's memory
    void interrupt() { interrupted_.store(true); }  // what runs fails soon, and all that follows
    pid_t process() const { return child_; }        // 0: none

private:
    using TimePoint = std::chrono::steady_clock::time_point;

    bool start(std::string& problem);
    bool spawn(int descriptor, std::string& problem);
    std::optional<std::string> receive(Message expected, TimePoint deadline, std::string& problem);
    bool receive_bytes(void* to, size_t bytes, TimePoint deadline, std::string& problem);
    std::string farewell();  // how the child ended, in words; it is gone afterwards
    void end();              // kills it, if there is one

    const Settings settings_;
    const int shared_;
    std::atomic<bool> interrupted_{false};
    pid_t child_ = 0;
    int socket_ = -1;
    int orders_ = 0;  // of this child
    Ready ready_;
};

}  // namespace smt::runtime::jit
