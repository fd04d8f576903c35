// More memory than there is (oversubscribe in SMT_LIMITS): tenants may hold more device memory together than
// the device has. What does not fit is in host memory, and programs take turns.
//
//   an allocation finds no room -> ask() -> others are moved out -> it tries again
//   a call of a program that is out -> it waits in front of its gate -> others are moved out, it comes in
//
// What is moved when is MemoryTurns' rule (memory/memory_turns.h). A thread of this object looks at all
// sessions, asks the rule, and carries its step out by Suspension: a session of which any chunk is out has a
// closed gate (LaneGate::kOutOfTurn), so nothing of it touches device memory. While no program asks for room
// and none is out the thread sleeps most of the time.
//
// What cannot be moved stays: programs under an experiment, and whatever is no chunk of a TenantMemory
// (suspension.h). A program that does not come to rest in time, or for whose chunks there is no host memory,
// counts as one that stays for a second. An allocation that finds no room even so fails, with a line in the
// log that says why; room is made for allocations of chunks only, since no other memory could make room
// again.
//
// Any thread. No lock of this object is held while memory moves.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/protocol/handshake.h"
#include "runtime/server/memory/memory_turns.h"
#include "runtime/server/suspension.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::server {

class Server;
class Session;

class Swapper {
public:
    static std::unique_ptr<Swapper> wanted(Server& server);  // null: it is not asked for, or has no thread
    explicit Swapper(Server& server);
    ~Swapper();
    Swapper(const Swapper&) = delete;
    Swapper& operator=(const Swapper&) = delete;

    // On a lane's thread, which executes an allocation that has found no room for so many bytes.
    enum class Answer {
        kTryAgain,
        kNone,       // there is no room for it; the log says why
        kInterrupt,  // `interrupted` returned true, which is asked every few milliseconds
    };
    Answer ask(const Session& session, uint64_t bytes, const std::function<bool()>& interrupted);

    protocol::TurnFigures figures(uint32_t session) const;

private:
    using Step = MemoryTurns::Step;
    using TimePoint = MemoryTurns::TimePoint;
    struct Asked {
        uint32_t session;
        uint64_t bytes;
        Answer answer = Answer::kNone;
        bool answered = false;
    };
    struct Known {
        uint64_t position = 0;  // of its lanes
        uint64_t prepared = 0;  // bytes of host memory
        TimePoint stays_until{};
        std::string why;  // it stays
        protocol::TurnFigures figures;
    };

    void run();
    bool look();
    std::vector<MemoryTurns::Program> programs();
    MemoryTurns::Program program_of(Session& session, TimePoint now);
    uint64_t free_bytes() const;
    void carry_out(const Step& step, const std::vector<MemoryTurns::Program>& programs);
    void move_out(const Step& step);
    void move_in(const Step& step);
    void refuse(const Step& step);
    void answer(uint32_t session, Answer answer);
    Asked* first_of(uint32_t session);
    void stays(uint32_t session, const std::string& why);
    void free_spare_blocks();
    void prepare(const std::vector<MemoryTurns::Program>& programs);
    std::string called(uint32_t session);

    Server& server_;
    MemoryTurns turns_;                       // the thread's own
    TimePoint stepped_{};                     // likewise: the last step
    std::vector<MemoryTurns::Program> seen_;  // likewise
    mutable std::mutex mutex_;                // guards what follows; a leaf lock
    std::condition_variable changed_, answered_;
    std::list<Asked> asked_;  // a session has one for each lane that asks; answered in this order
    std::map<uint32_t, Known> known_;
    TimePoint granted_until_{};  // what is free until then is for an allocation, on its lane's thread
    bool news_ = false;          // a program has asked since the thread looked last
    bool leaves_ = false;
    Thread thread_;
};

}  // namespace smt::runtime::server
