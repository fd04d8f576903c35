// The level at which best-effort tenants may work beside a service's requests: 0 is none of it, and higher
// levels give them more and slow requests down more. How much is not known beforehand, so the level is learnt
// from requests.
//
// A request comes as its time in parts of what is allowed. One above 1 is late, and `late` of all may be.
// What there was of them beyond that is the score (CUSUM):
//
//     score = max(0, score + 1)      at a late request
//     score = max(0, score - late)   at another one
//
// Down: to half of the level at once when the score reaches `alarm`, which is two late requests of 50; or
// where the level was before at the first one on a level that is tried. The score stays just below `alarm`
// then, so that another one goes down further: three late requests lead from any of seven levels to 0.
//
// Up: after `evidence` requests in a row of which none was late, and half of them where they leave `large`.
// So many are enough where the slowest of the last ones leaves `headroom`; elsewhere `doubtful` times as
// many, since the next level is likely too high. While it goes up without a late one, each step is twice the
// last one, up to `longest_step`. The highest level is reached from the one below it only. A level that has
// failed needs `backoff` times as many the next time, up to `most_evidence`, so a service beside a level that
// is just too high tries it about once in most_evidence requests and does not oscillate. A level that has
// held for long is believed again.
//
// Best-effort tenants may have to end their work at a level before the request is over, so that it is in time
// (promise.h). Then a lower level that they may have for longer is worth more: `part` of the request at a
// level is worth part * level. A level that is mostly worth less than the one below it is left, as one that
// has failed.
//
// All state is a few numbers: what happened long ago is forgotten. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace smt::runtime::schedule {

struct LevelKnobs {
    double late = 0.01;  // of a 99th percentile
    double alarm = 1.5;  // one late request may be chance, two of 50 are no 1 %
    // With six levels a service is at the highest one within 14 requests.
    int evidence = 4;
    // Requests for which a level counts as tried. A level at which a third is late is left within them.
    int tried = 8;
    int longest_step = 2;
    double headroom = 0.05, large = 0.2;
    int doubtful = 8;
    int backoff = 4;
    int most_evidence = 512;  // a late request at each trial is then 0.2 % of all
    int wasted = 4;           // more requests than others in which a level was worth too little
    double least_part = 0.1;  // of a request at level 1: less is not worth two stops
};

class LevelControl {
public:
    // Levels 0 to `highest`. Begins with `start`, as if it had held until now.
    explicit LevelControl(int highest, const LevelKnobs& knobs = {}, int start = 0)
        : knobs_(knobs), evidence_(static_cast<size_t>(highest) + 1, knobs.evidence), level_(start) {}

    int level() const { return level_; }
    // A request at level(). `time`: in parts of what is allowed. `part`: of its time, from its begin on, in
    // which best-effort tenants had the level.
    void note(double time, double part = 1);
    // False: requests are late even at level 0.
    bool kept() const { return level_ > 0 || score_ < knobs_.alarm; }

private:
    int highest() const { return static_cast<int>(evidence_.size()) - 1; }
    int needed() const;
    bool worth(double part) const;
    void enter(int level, double score);
    void step_up();
    void step_down(int to);

    const LevelKnobs knobs_;
    std::vector<int> evidence_;  // by level: needed to enter it
    int level_;
    int before_ = 0;  // the level from which it went up to this one
    int step_ = 1;    // the next one up
    double score_ = 0;
    double slowest_ = 0;  // of the last ones at this level
    int in_a_row_ = 0;    // none late
    int here_ = 0;        // requests since the level was entered
    int wasted_ = 0;      // of them, less those that were worth it
    bool tried_ = false;  // the level was entered from below, a moment ago
};

}  // namespace smt::runtime::schedule
