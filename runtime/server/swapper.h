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

    enum class Answer {
        kTryAgain,
        kNone,       // there is no room for it; the log says why
        kInterrupt,  // `interrupted` returned true, which is asked every few milliseconds
    };
    // An allocation that a lane's thread executes, and that has found no room. It has its place in the order
    // from ask() until it is answered, also while its lane stands in front of a closed gate. From then until
    // it asks once more, or this object ends, the program is not moved.
    class Request {
    public:
        Request(Swapper& swapper, const Session& session);
        ~Request();
        Request(const Request&) = delete;
        Request& operator=(const Request&) = delete;
        void ask(uint64_t bytes);
        Answer wait(const std::function<bool()>& interrupted);

    private:
        friend class Swapper;
        bool takes() const;  // it executes its allocation, or is about to

        Swapper& swapper_;
        const Session& session_;
        enum class State {
            kNew,
            kWaits,
            kAnswered
        } state_ = State::kNew;  // with what follows: mutex_ guards
        uint64_t bytes_ = 0;
        Answer answer_ = Answer::kNone;
    };

    protocol::TurnFigures figures(uint32_t session) const;

private:
    using Program = MemoryTurns::Program;
    using Step = MemoryTurns::Step;
    using TimePoint = MemoryTurns::TimePoint;
    static constexpr auto kStays = std::chrono::seconds(1);  // of what could not be moved
    static constexpr TimePoint kTold = TimePoint::max();
    struct Known {
        uint64_t position = 0;  // of its lanes
        TimePoint stays_until{}, missing_since{};
        std::string why;  // it stays
        protocol::TurnFigures figures;
    };

    void run();
    bool look();
    std::vector<Program> programs();
    Program program_of(Session& session, TimePoint now);
    uint64_t free_bytes() const;
    void carry_out(const Step& step, const std::vector<Program>& programs);
    void move_out(const Step& step);
    void move_in(const Step& step);
    void exchange(const Step& step);
    void left(const Step& step, const Suspension::Moved& moved);
    void does_not_come(uint32_t session, const Suspension::Moved& moved);
    void note_out(const Step& step, const Suspension::Moved& moved);
    void note_in(const Step& step, const Suspension::Moved& moved, const std::string& after);
    void count_in(uint32_t session, const Suspension::Moved& moved);
    void tell_missing(const std::vector<Program>& programs);
    std::string reasons_beside(uint32_t session, const std::vector<Program>& programs);
    void refuse(const Step& step);
    void answer(uint32_t session, Answer answer);
    Request* first_of(uint32_t session);
    bool takes(uint32_t session) const;  // 0: any one
    void stays(uint32_t session, const std::string& why);
    void prepare(const std::vector<Program>& programs);
    std::string called(uint32_t session);

    Server& server_;
    MemoryTurns turns_;          // the thread's own
    TimePoint stepped_{};        // likewise: the last step
    TimePoint grown_{};          // likewise: programs had more memory than when it looked before
    uint64_t all_ = 0;           // likewise: that memory
    std::vector<Program> seen_;  // likewise
    mutable std::mutex mutex_;   // guards what follows; a leaf lock
    std::condition_variable changed_, answered_;
    std::list<Request*> requests_;  // a session has one for each lane that asks; answered in this order
    std::map<uint32_t, Known> known_;
    TimePoint later_{};  // no program comes in before
    bool news_ = false;  // a program has asked since the thread looked last
    bool leaves_ = false;
    Thread thread_;
};

}  // namespace smt::runtime::server
