#include "interpose/transport/answers.h"

#include <string.h>

#include <atomic>

namespace smt::interpose {

namespace {

// A model's matrix products ask for some hundred tensor maps in each iteration, always in the same order:
// with one place for a hash, two of them that share it would drive each other out for ever.
constexpr uint32_t kWays = 4, kSets = 1024;

struct Answer {
    uint16_t op;
    uint32_t epoch, session, question_bytes, answer_bytes;
    char question[kQuestionBytes];
    char answer[kAnswerBytes];
};
struct Set {
    std::atomic<uint32_t> busy;
    uint32_t next;  // the way that the next new answer takes
    Answer answers[kWays];
};
constinit Set sets[kSets] = {};
constinit std::atomic<uint32_t> epoch{1};  // 0 is that of no answer

class Locked {  // or not, where another thread has the set
public:
    explicit Locked(Set& set) : set_(set), mine_(set.busy.exchange(1, std::memory_order_acquire) == 0) {}
    ~Locked() {
        if (mine_) set_.busy.store(0, std::memory_order_release);
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    explicit operator bool() const { return mine_; }

private:
    Set& set_;
    const bool mine_;
};

Set& set_of(const Question& question) {
    constexpr uint64_t kFactor = 0x9e3779b97f4a7c15ull;
    uint64_t hash = question.op | uint64_t{question.session} << 32;
    for (uint32_t at = 0; at < question.bytes; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, question.payload + at, sizeof word);
        hash = (hash ^ word) * kFactor;
        hash ^= hash >> 29;
    }
    return sets[hash % kSets];
}

bool is_of(const Answer& answer, const Question& question) {
    return answer.epoch == question.epoch && answer.session == question.session && answer.op == question.op &&
           answer.question_bytes == question.bytes &&
           memcmp(answer.question, question.payload, question.bytes) == 0;
}

bool fits(const Question& question) {
    return question.bytes <= kQuestionBytes && question.bytes % sizeof(uint64_t) == 0;
}

}  // namespace

uint32_t answers_epoch() { return epoch.load(std::memory_order_acquire); }

void forget_answers() {
    if (epoch.fetch_add(1, std::memory_order_acq_rel) == UINT32_MAX) epoch.store(1);
}

bool recall_answer(const Question& question, char* to, uint32_t* bytes) {
    if (!fits(question)) return false;
    Set& set = set_of(question);
    const Locked locked(set);
    if (!locked) return false;
    for (const Answer& each : set.answers) {
        if (!is_of(each, question)) continue;
        memcpy(to, each.answer, each.answer_bytes);
        *bytes = each.answer_bytes;
        return true;
    }
    return false;
}

void remember_answer(const Question& question, const char* answer, uint32_t bytes) {
    if (!fits(question) || bytes > kAnswerBytes) return;
    Set& set = set_of(question);
    const Locked locked(set);
    if (!locked) return;
    Answer& place = set.answers[set.next++ % kWays];
    place.op = question.op;
    place.epoch = question.epoch;
    place.session = question.session;
    place.question_bytes = question.bytes;
    place.answer_bytes = bytes;
    memcpy(place.question, question.payload, question.bytes);
    memcpy(place.answer, answer, bytes);
}

}  // namespace smt::interpose
