// A program's end of a session for the fuzz targets that call the server's handlers: lanes that do not run,
// calls with payloads made of an input's bytes, and the values that earlier calls gave.
//
//   call  := u16 operation, u8 words, that many words     (the operation, or the next one that has a handler)
//   word  := u8 selector, then what it selects (see Input::word)
//
// What blocks by right is left out, or does not block: a stream that waits for a value that nothing writes
// would hold up everything behind it. So waits are for a word that no memory has, which are over at once.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "opcodes.gen.h"
#include "runtime/protocol/object_id.h"
#include "runtime/server/call.h"
#include "runtime/server/lane.h"
#include "tests/fuzz/lacking.h"
#include "tests/wire/server.h"

namespace smt::fuzz {

inline constexpr size_t kMostWords = 64;

inline bool blocks(uint16_t op) {
    const char* known = op >= protocol::kFirstGeneratedOp ? protocol::op_name(op) : nullptr;
    const std::string_view name = known ? known : "";
    return name.starts_with("cuStreamBatchMemOp") || name.starts_with("cuGraphAddBatchMemOpNode");
}

inline bool waits(uint16_t op) {
    return op == static_cast<uint16_t>(protocol::GeneratedOp::kStreamWaitValue32_v2) ||
           op == static_cast<uint16_t>(protocol::GeneratedOp::kStreamWaitValue64_v2);
}

inline runtime::server::Handler find_handler(uint16_t op) {
    using namespace runtime::server;
    if (op >= protocol::kFirstGeneratedOp) return generated_handler(op);
    if (Handler core = core_handler(static_cast<protocol::Op>(op))) return core;
    return written_handler(static_cast<protocol::Op>(op));
}

// All that have a handler, so that a random number is an operation. The lane's own ones (0 to 2) have none.
inline const std::vector<uint16_t>& operations() {
    static const std::vector<uint16_t> all = [] {
        std::vector<uint16_t> found;
        for (uint16_t op = 3; op < 4096; ++op) {
            if (!blocks(op) && find_handler(op)) found.push_back(op);
        }
        return found;
    }();
    return all;
}

// Lanes may be used by one thread each at the same time.
class Client {
public:
    // `values`: of those that calls gave, so many are kept; `of_each`: so many of an answer.
    Client(size_t lanes, size_t values, size_t of_each) : known_(values, 0), of_each_(of_each) {
        tests::TestServer::get().device().enter_thread();
        session_.open_lane();  // which is idle: from then on the session is complete
        for (uint32_t i = 0; i < lanes; ++i) {
            uint64_t address = 0;
            if (session_.session().arena().allocate(protocol::kLaneBytes, false, &address) != CUDA_SUCCESS)
                tests::give_up("a lane");
            lanes_.push_back(std::make_unique<runtime::server::Lane>(session_.session(), i, address, 0));
        }
        prepare();
    }

    void call(size_t lane, uint16_t op, uint64_t* words, size_t bytes) {
        if (waits(op) && bytes > sizeof(uint64_t))  // behind the stream stands the address
            words[1] = session_.device_base() + protocol::kDeviceRangeBytes - sizeof(uint64_t);
        // A slot that gets no value is waited for until the session ends, and here it does not.
        if (op == static_cast<uint16_t>(protocol::Op::kAwaitSlot)) std::memset(words, 0, bytes);
        runtime::server::Lane& own = *lanes_[lane];
        auto* reply = reinterpret_cast<uint64_t*>(own.address() + protocol::kLaneReplyOffset);
        CUresult status = CUDA_ERROR_UNKNOWN;
        size_t used = 0;
        try {
            static const DriverApi driver = with_what_it_lacks(session_.session().driver());
            runtime::server::Call call{own,
                                       session_.session(),
                                       driver,
                                       protocol::Reader(words, bytes),
                                       protocol::Writer(reply, protocol::kReplyBytes),
                                       true};
            status = find_handler(op)(call);
            used = call.out.good() ? call.out.used() / 8 : 0;
        } catch (const std::exception&) {  // the lane does so too
        }
        own.let_go();
        if (status == CUDA_SUCCESS) learn(reply, std::min(used, of_each_));
    }
    // Puts the text into the lane's first staging slot, from where an upload takes it. Nothing without
    // staging.
    void stage(size_t lane, std::string_view text) {
        const uint64_t to = lanes_[lane]->staging().address;
        if (to) std::memcpy(reinterpret_cast<void*>(to), text.data(), text.size());
    }
    uint64_t first_number() { return protocol::first_number(session_.session().arena().base()); }
    uint64_t known(size_t at) {
        std::lock_guard lock(mutex_);
        return known_[at % known_.size()];
    }

private:
    void learn(const uint64_t* values, size_t count) {
        std::lock_guard lock(mutex_);
        std::rotate(known_.begin(), known_.end() - static_cast<long>(count), known_.end());
        std::copy(values, values + count, known_.begin());
    }
    template <typename Request>
    void ask(protocol::Op op, const Request& request) {
        uint64_t words[(sizeof request + 7) / 8] = {};
        std::memcpy(words, &request, sizeof request);
        call(0, static_cast<uint16_t>(op), words, sizeof words);
    }

    // Something of most kinds, so that small numbers and known values name something.
    void prepare() {
        using namespace protocol;
        static constexpr char kImage[] = "FAKE\nkernel idle params 8,4\nglobal g 64\n";
        ask(Op::kOpenStaging, uint64_t{0});
        ask(Op::kUploadBegin, UploadBegin{sizeof kImage});
        stage(0, {kImage, sizeof kImage});
        ask(Op::kUploadSlot, UploadSlot{0, sizeof kImage, 0, 0, 1});
        ask(Op::kModuleLoad, ModuleLoad{});
        struct {
            ObjectRef image;
            uint64_t bytes = 5;
            char name[8] = "idle";
        } named{{1, ImageOwner::kModule}, 5, "idle"};
        named.image.object = static_cast<uint32_t>(known_[0]);
        ask(Op::kGetFunction, named);
        for (uint32_t i = 0; i < 4; ++i) ask(Op::kEventCreate, EventCreate{i, 0});
        ask(Op::kStreamCreate, StreamCreate{0, 0});
        ask(Op::kStreamCreate, StreamCreate{CU_STREAM_NON_BLOCKING, 0});
        ask(Op::kMemAlloc, MemAlloc{4096, 0, 0});
        ask(Op::kHostAlloc, MemAlloc{4096, 0, 0});
    }

    tests::TestSession session_;
    std::vector<std::unique_ptr<runtime::server::Lane>> lanes_;  // gone before the session
    std::mutex mutex_;
    std::vector<uint64_t> known_;
    const size_t of_each_;
};

class Input {
public:
    Input(const uint8_t* data, size_t size, Client& client) : at_(data), end_(data + size), client_(client) {}
    bool more() const { return at_ < end_; }

    template <typename T>
    T next() {
        T value{};
        const size_t bytes = std::min<size_t>(sizeof(T), static_cast<size_t>(end_ - at_));
        if (bytes) std::memcpy(&value, at_, bytes);
        at_ += bytes;
        return value;
    }

    uint64_t word() {
        static constexpr uint64_t kNumbers[] = {~0ull,      1ull << 63, 1ull << 40, 0xffffffff,
                                                0x80000000, 0x7fffffff, 4096,       1 << 20};
        const uint8_t selector = next<uint8_t>();
        if (selector < 0x60) return selector % 32;
        if (selector < 0xa0) return client_.known(selector);
        if (selector < 0xb0) return kNumbers[selector % std::size(kNumbers)];
        if (selector < 0xc0) return selector % 4 | uint64_t{next<uint8_t>()} % 8 << 32;  // two small numbers
        if (selector < 0xd0) return client_.known(selector) + static_cast<uint64_t>(int64_t{next<int8_t>()});
        if (selector < 0xe0) return next<uint32_t>();
        if (selector < 0xf0) return next<uint64_t>();
        return protocol::object_id(selector % 16, client_.first_number() + next<uint8_t>());
    }

    struct Call {
        uint16_t op = 0;
        size_t words = 0;
        uint64_t payload[kMostWords];
    };
    void call(Call& call) {
        const std::vector<uint16_t>& all = operations();
        call.op = *std::lower_bound(all.begin(), all.end(), next<uint16_t>() % (all.back() + 1));
        call.words = next<uint8_t>() % (kMostWords + 1);
        for (size_t at = 0; at < call.words; ++at) call.payload[at] = word();
    }

private:
    const uint8_t* at_;
    const uint8_t* end_;
    Client& client_;
};

}  // namespace smt::fuzz
