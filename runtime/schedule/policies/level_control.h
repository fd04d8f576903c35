// The level at which best-effort tenants may work beside a service's requests: 0 is none of it, and higher
// levels slow requests down more. How much is not known beforehand, so the level is learnt from requests.
//
// A request comes as its time in parts of what is allowed. One above 1 is late, and `late` of all may be.
// What there was of them beyond that is the score (CUSUM):
//
//     score = max(0, score + 1)      at a late request
//     score = max(0, score - late)   at another one
//
// Down: a level at once when the score reaches `alarm`, which is two late requests of 50, or at the first one
// on a level that is tried. The score stays just below `alarm` then, so that another one goes down further.
//
// Up: a level after `evidence` requests in a row of which none was late. So many are enough where the slowest
// of the last ones leaves `headroom`; elsewhere `doubtful` times as many, since the next level is likely too
// high. A level that has failed needs `backoff` times as many the next time, up to `most_evidence`, so a
// service beside a level that is just too high tries it about once in most_evidence requests and does not
// oscillate. A level that has held for long is believed again.
//
// A step is one level, and all state is a few numbers: what happened long ago is forgotten. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace smt::runtime::schedule {

struct LevelKnobs {
    double late = 0.01;  // of a 99th percentile
    double alarm = 1.5;  // one late request may be chance, two of 50 are no 1 %
    // Enough that a level at which a third of the requests is late is left again before it counts as tried;
    // with six levels a service is at its level within 50 requests.
    int evidence = 8;
    double headroom = 0.05;
    int doubtful = 8;
    int backoff = 4;
    int most_evidence = 512;  // a late request at each trial is then 0.2 % of all
};

class LevelControl {
public:
    // Levels 0 to `highest`. Begins with `start`, as if it had held until now.
    explicit LevelControl(int highest, const LevelKnobs& knobs = {}, int start = 0)
        : knobs_(knobs), evidence_(static_cast<size_t>(highest) + 1, knobs.evidence), level_(start) {}

    int level() const { return level_; }
    // A request at level(). `time`: in parts of what is allowed.
    void note(double time);
    // False: requests are late even at level 0.
    bool kept() const { return level_ > 0 || score_ < knobs_.alarm; }

private:
    int highest() const { return static_cast<int>(evidence_.size()) - 1; }
    int needed() const;
    void enter(int level, double score);
    void step_down();

    const LevelKnobs knobs_;
    std::vector<int> evidence_;  // by level: needed to enter it
    int level_;
    double score_ = 0;
    double slowest_ = 0;  // of the last ones at this level
    int in_a_row_ = 0;    // none late
    int here_ = 0;        // requests since the level was entered
    bool tried_ = false;  // the level was entered from below, a moment ago
};

}  // namespace smt::runtime::schedule
