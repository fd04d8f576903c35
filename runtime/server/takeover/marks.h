// What a session has begun and what of it is over, in memory that outlives the server's process: a memfd,
// which the standby has, too. After a crash it says whether the state that the server has written of the
// session (kept_sessions.h) is the session's, to the last record.
//
//   lane:     begin(end of the record); ... the record ...; [changed()]; [used(n)]; done()
//   anyone:   changed() behind a change that no record makes (smt set, memory that is trimmed)
//   at rest:  n = uses(); nothing is under way; rests(n)
//
// The server writes plain words, each by one thread but for the two sums. The standby reads them when the
// server's process has ended, so it sees all that was written. Clients have no access.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace smt::runtime::server {

class Marks {
public:
    static constexpr uint32_t kMostLanes = 4095;

    struct alignas(64) Lane {
        std::atomic<uint64_t> begun{0};  // ring position where the record that was begun last ends
        std::atomic<uint64_t> over{0};   // where the last one that is over, and answered, ends
        std::atomic<uint64_t> uses{0};   // of streams, by records that enqueue work

        void go_on_at(uint64_t position) {
            begun.store(position, std::memory_order_relaxed);
            over.store(position, std::memory_order_relaxed);
        }
        void begin(uint64_t end) {
            begun.store(end, std::memory_order_relaxed);
            std::atomic_signal_fence(std::memory_order_seq_cst);  // stores keep their order
        }
        void used(uint64_t count) {
            uses.store(uses.load(std::memory_order_relaxed) + count, std::memory_order_release);
        }
        void done() { over.store(begun.load(std::memory_order_relaxed), std::memory_order_release); }
    };

    static std::unique_ptr<Marks> make();  // null: there is no memory
    static std::unique_ptr<Marks> open(
        int file);  // of a server that has ended; takes the file. Null: no marks
    ~Marks();
    Marks(const Marks&) = delete;
    Marks& operator=(const Marks&) = delete;
    int file() const { return file_; }

    // Null: there are marks of kMostLanes lanes only. why_not() says so from then on.
    Lane* lane(uint32_t index);
    const Lane* lane(uint32_t index) const;
    Lane& control() { return page_->lanes[0]; }  // messages on the control socket

    void changed() { page_->changes.fetch_add(1); }
    uint64_t changes() const { return page_->changes.load(); }
    uint64_t uses() const;
    uint64_t resting() const { return page_->resting.load(std::memory_order_relaxed); }
    void rests(uint64_t uses);  // all of these are over
    bool stands() const;        // no record and no message is half done

    // Why a state that was written at this number of changes does not describe the session; empty: it does.
    std::string why_not(uint64_t changes) const;

private:
    struct Page {
        alignas(64) std::atomic<uint64_t> changes{0};
        std::atomic<uint64_t> resting{0};
        std::atomic<uint32_t> lanes_used{1};  // behind the last one that was asked for
        std::atomic<uint32_t> crowded{0};
        Lane lanes[kMostLanes + 1];
    };
    Marks(int file, Page* page) : file_(file), page_(page) {}
    static Page* map(int file);

    const int file_;
    Page* const page_;
};

}  // namespace smt::runtime::server
