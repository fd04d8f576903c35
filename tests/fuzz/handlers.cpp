// Every handler, written and generated, on payloads that no client of ours would send. They are called
// as a lane calls them, on one session after the other; the fake driver does what is asked.
//
//   input := { call }       call := u16 operation, u8 words, that many words
//   word  := u8 selector, then what it selects (see Input::word)
//
// Left out: what blocks by right. A stream that waits for a value that nobody writes would hold up
// everything behind it.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

#include "opcodes.gen.h"
#include "runtime/server/call.h"
#include "runtime/server/lane.h"
#include "tests/wire/server.h"

using namespace smt;
using namespace smt::protocol;
using runtime::server::Call;
using runtime::server::Handler;
using runtime::server::Lane;

namespace {

constexpr int kCallsOfSession = 1000;
constexpr int kCallsOfInput = 40;
constexpr size_t kMostWords = 64;

bool blocks(uint16_t op) {
    const char* known = op >= kFirstGeneratedOp ? op_name(op) : nullptr;
    const std::string_view name = known ? known : "";
    return name.starts_with("cuStreamWaitValue") || name.starts_with("cuStreamBatchMemOp") ||
           name.starts_with("cuGraphAddBatchMemOpNode");
}

Handler find_handler(uint16_t op) {
    if (op >= kFirstGeneratedOp) return runtime::server::generated_handler(op);
    if (Handler core = runtime::server::core_handler(static_cast<Op>(op))) return core;
    return runtime::server::written_handler(static_cast<Op>(op));
}

// All that have a handler, so that a random number is an operation.
const std::vector<uint16_t>& operations() {
    static const std::vector<uint16_t> all = [] {
        std::vector<uint16_t> found;
        for (uint32_t op = 0; op < 4096; ++op) {
            const auto number = static_cast<uint16_t>(op);
            if (number == 0 || number == 1 || number == 2 || blocks(number)) continue;
            if (find_handler(number)) found.push_back(number);
        }
        return found;
    }();
    return all;
}

// A session, a lane that does not run, and the values that calls gave, for the calls after them.
struct Client {
    tests::TestSession session;
    uint64_t address = 0;
    std::unique_ptr<Lane> lane;
    std::vector<uint64_t> known;
    int calls = 0;

    Client() {
        tests::TestServer::get().device().enter_thread();
        session.open_lane();   // which is idle: from then on the session is complete
        if (session.session().arena().allocate(kLaneBytes, false, &address) != CUDA_SUCCESS) tests::give_up("a lane");
        lane = std::make_unique<Lane>(session.session(), 0, address, 0);
        known.assign(16, 0);
        prepare();
    }

    void learn(uint64_t value) {
        std::rotate(known.begin(), known.end() - 1, known.end());
        known[0] = value;
    }

    CUresult call(uint16_t op, const uint64_t* words, size_t bytes) {
        Handler handler = find_handler(op);
        void* reply = reinterpret_cast<void*>(address + kLaneReplyOffset);
        Call call{*lane, session.session(), session.session().driver(), Reader(words, bytes),
                  Writer(reply, kReplyBytes), true};
        CUresult status = CUDA_ERROR_UNKNOWN;
        try {
            status = handler(call);
        } catch (const std::exception&) {   // the lane does so too
        }
        lane->let_go();
        if (status == CUDA_SUCCESS && call.out.good() && call.out.used() >= 8) learn(*static_cast<uint64_t*>(reply));
        return status;
    }
    template <typename Request>
    void ask(Op op, const Request& request) {
        uint64_t words[(sizeof request + 7) / 8] = {};
        std::memcpy(words, &request, sizeof request);
        call(static_cast<uint16_t>(op), words, sizeof words);
    }

    // Something of most kinds, so that small numbers and known values name something.
    void prepare() {
        static constexpr char kImage[] = "FAKE\nkernel idle params 8,4\nglobal g 64\n";
        ask(Op::kOpenStaging, uint64_t{0});
        ask(Op::kUploadBegin, UploadBegin{sizeof kImage});
        std::memcpy(reinterpret_cast<void*>(lane->staging().address), kImage, sizeof kImage);
        ask(Op::kUploadSlot, UploadSlot{0, sizeof kImage, 0, 0, 1});
        ask(Op::kModuleLoad, ModuleLoad{});
        struct {
            ObjectRef image;
            uint64_t bytes = 5;
            char name[8] = "idle";
        } named{{1, ImageOwner::kModule}, 5, "idle"};
        named.image.object = static_cast<uint32_t>(known[0]);
        ask(Op::kGetFunction, named);
        for (uint32_t i = 0; i < 4; ++i) ask(Op::kEventCreate, EventCreate{i, 0});
        ask(Op::kStreamCreate, StreamCreate{0, 0});
        ask(Op::kStreamCreate, StreamCreate{CU_STREAM_NON_BLOCKING, 0});
        ask(Op::kMemAlloc, MemAlloc{4096, 0, 0});
        ask(Op::kHostAlloc, MemAlloc{4096, 0, 0});
    }
};

class Input {
public:
    Input(const uint8_t* data, size_t size, const Client& client) : at_(data), end_(data + size), client_(client) {}
    bool more() const { return at_ < end_; }

    template <typename T>
    T next() {
        T value{};
        const size_t bytes = std::min<size_t>(sizeof(T), end_ - at_);
        std::memcpy(&value, at_, bytes);
        at_ += bytes;
        return value;
    }

    uint64_t word() {
        static constexpr uint64_t kNumbers[] = {~0ull, 1ull << 63, 1ull << 40, 0xffffffff, 0x80000000, 0x7fffffff, 4096, 1 << 20};
        const uint8_t selector = next<uint8_t>();
        if (selector < 0x60) return selector % 32;
        if (selector < 0xa0) return client_.known[selector % client_.known.size()];
        if (selector < 0xb0) return kNumbers[selector % std::size(kNumbers)];
        if (selector < 0xc0) return selector % 4 | uint64_t{next<uint8_t>()} % 8 << 32;   // two small numbers
        if (selector < 0xd0) return client_.known[selector % client_.known.size()] + next<int8_t>();
        if (selector < 0xe0) return next<uint32_t>();
        return next<uint64_t>();
    }

private:
    const uint8_t* at_;
    const uint8_t* end_;
    const Client& client_;
};

std::unique_ptr<Client> client;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (client && client->calls > kCallsOfSession) client.reset();
    if (!client) client = std::make_unique<Client>();
    Input input(data, size, *client);
    for (int i = 0; i < kCallsOfInput && input.more(); ++i) {
        const uint16_t op = operations()[input.next<uint16_t>() % operations().size()];
        uint64_t words[kMostWords];
        const size_t count = input.next<uint8_t>() % (kMostWords + 1);
        for (size_t at = 0; at < count; ++at) words[at] = input.word();
        client->call(op, words, count * 8);
        client->calls += 1;
    }
    return 0;
}
