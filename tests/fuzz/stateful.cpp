// A program's whole life in one input: objects are created, used and destroyed by two lanes, and used again when they are gone. Every handler, with what earlier
// calls gave, of whichever lane and however long ago; then the session ends and frees what is left. The same input does the same each time,
// unless it says that the lanes run at once.
//
//   input := u8 mode { u8 lane, call }       mode bit 0: the lanes at once, a thread for each; else one call after the other, in their order
#include <thread>

#include "tests/fuzz/client.h"

namespace {

using namespace smt;

constexpr size_t kLanes = 2;
constexpr int kMostCalls = 60;
constexpr size_t kValues = 64;
constexpr size_t kOfEach = 4;

// The calls of these lanes; the others' are read, and not made.
void run(fuzz::Client& client, fuzz::Input input, unsigned lanes) {
    fuzz::Input::Call call;
    for (int i = 0; i < kMostCalls && input.more(); ++i) {
        const size_t lane = input.next<uint8_t>() % kLanes;
        input.call(call);
        if (lanes >> lane & 1) client.call(lane, call.op, call.payload, call.words * 8);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    fuzz::Client client(kLanes, kValues, kOfEach);
    const fuzz::Input input(data + 1, size - 1, client);
    if ((data[0] & 1) == 0) return run(client, input, 3), 0;
    std::thread other([&] {
        tests::TestServer::get().device().enter_thread();
        run(client, input, 2);
    });
    run(client, input, 1);
    other.join();
    return 0;
}
