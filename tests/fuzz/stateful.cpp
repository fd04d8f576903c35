// A program's whole life in one input: objects are created, used and destroyed by two lanes, and used again
// when they are gone. Every handler, with what earlier calls gave, of whichever lane and however long ago;
// then the session ends and frees what is left. The same input does the same each time, unless it says that
// the lanes run at once.
//
//   input := u8 mode { u8 lane, step }   mode bit 0: the lanes at once, a thread for each; else one step
//   after the other, in their order step  := u8 text                     if the lane's bit 7 is set: that
//   text stands in its first staging slot, for the next upload
//          | call                        else: client.h
#include <iterator>
#include <string_view>
#include <thread>

#include "tests/fuzz/client.h"

namespace {

using namespace smt;

constexpr size_t kLanes = 2;
constexpr int kMostSteps = 60;
constexpr size_t kValues = 64;
constexpr size_t kOfEach = 4;

using namespace std::literals;

// Images of the fake driver, inputs of its linker, and what is none. No kernel whose effect depends on its
// parameters: a wild address is the device's to refuse, and the fake has no device.
constexpr std::string_view kTexts[] = {
    "FAKE\nkernel idle params 8,4\nkernel many params 1,2,4,8,16\nkernel bare\n"
    "global g 64\nglobal none 0\ntexture t\n"sv,
    "FAKE\nkernel idle\nkernel idle params 8\nglobal g 8\ntexture t\ntexture u\n"sv,
    "FAKE\n"sv,
    "kernel of no image\n"sv,
    "\177ELF\2\1\1"sv,
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) { ret; }\n"sv,
    "\x50\xed\x55\xba\1\0\x10\0\x40\0\0\0\0\0\0\0"sv,
};
constexpr uint8_t kIsText = 0x80;

// The steps of these lanes; the others' are read, and not made.
void run(fuzz::Client& client, fuzz::Input input, unsigned lanes) {
    fuzz::Input::Call call;
    for (int i = 0; i < kMostSteps && input.more(); ++i) {
        const auto which = input.next<uint8_t>();
        const size_t lane = which % kLanes;
        if (which & kIsText) {
            const std::string_view text = kTexts[input.next<uint8_t>() % std::size(kTexts)];
            if (lanes >> lane & 1) client.stage(lane, text);
            continue;
        }
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
