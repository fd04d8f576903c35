// Answers of the server that the process remembers: of calls whose result depends on their arguments and on
// their session's code with its settings alone (`recalled` in runtime/protocol/api/). A library asks such
// questions before each launch, natively in a tenth of a microsecond; the server's answer comes behind all
// that the thread has sent.
//
// Any thread. A question is a record's opcode and payload. Never waits: a set that another thread uses counts
// as one without the answer.
#pragma once

#include <cstdint>

namespace smt::interpose {

inline constexpr uint32_t kQuestionBytes = 384, kAnswerBytes = 128;  // longer ones are not remembered

struct Question {
    uint16_t op;
    uint32_t bytes;
    const char* payload;  // `bytes` of them, zeros up to a multiple of 8
    uint32_t epoch;       // answers_epoch() when it was asked
    uint32_t session;     // whose server is asked
};

uint32_t answers_epoch();
// After a change on which answers depend: from now on the answers of before are not recalled.
void forget_answers();

// Copies the answer to `to`, which has kAnswerBytes, and its size to `bytes`. False: it is not known.
bool recall_answer(const Question& question, char* to, uint32_t* bytes);
void remember_answer(const Question& question, const char* answer, uint32_t bytes);

}  // namespace smt::interpose
