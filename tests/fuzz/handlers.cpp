// Every handler, written and generated, on payloads that no client of ours would send. They are called
// as a lane calls them, on one session after the other; the fake driver does what is asked.
//
//   input := { call }       see client.h
#include "tests/fuzz/client.h"

namespace {

constexpr int kCallsOfSession = 1000;
constexpr int kCallsOfInput = 40;

std::unique_ptr<smt::fuzz::Client> client;
int calls = 0;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (client && calls > kCallsOfSession) client.reset();
    if (!client) client = std::make_unique<smt::fuzz::Client>(1, 16, 1), calls = 0;
    smt::fuzz::Input input(data, size, *client);
    smt::fuzz::Input::Call call;
    for (int i = 0; i < kCallsOfInput && input.more(); ++i, ++calls) {
        input.call(call);
        client->call(0, call.op, call.payload, call.words * 8);
    }
    return 0;
}
