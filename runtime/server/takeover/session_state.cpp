// What another process needs of a session to take it over, and how it does.
//
//   state := version, table hash, Hello, place, arena, streams, events, callbacks, handles, memory, code,
//   limits,
//            launches that were kept back, launches to be executed again, lanes, what its program has not
//            fetched yet
//
// The order is the one in which they are made again: addresses before what lies there, streams before lanes.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "opcodes.gen.h"
#include "runtime/protocol/try.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/image_opener.h"
#include "runtime/server/lane.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/takeover/laps.h"
#include "runtime/server/takeover/scratch_lane.h"
#include "runtime/server/takeover/taken_hello.h"

namespace smt::runtime::server {

namespace {

constexpr uint32_t kPlacePart = 0x504c4143, kObjectsPart = 0x4f424a45, kLanesPart = 0x4c414e45;

struct SavedPlace {
    int32_t region;
    int32_t slot;
    uint64_t device_base;
};

struct SavedLimit {
    uint64_t limit;
    uint64_t value;
};

}  // namespace

std::optional<protocol::Hello> take_hello(protocol::Reader& in) {
    const bool same = in.scalar<uint32_t>() == kStateVersion && in.scalar<uint64_t>() == protocol::kTableHash;
    const auto hello = in.scalar<protocol::Hello>();
    return same && in.good() ? std::optional(hello) : std::nullopt;
}

std::string Session::save() {
    protocol::StateWriter out;
    out.scalar(kStateVersion);
    out.scalar<uint64_t>(protocol::kTableHash);
    protocol::Hello hello = hello_;
    hello.priority = dispatched_->priority;
    hello.weight_thousandths = static_cast<uint32_t>(std::lround(dispatched_->weight * 1000));
    out.scalar(hello);
    out.part(kPlacePart);
    out.scalar(SavedPlace{region_, slot_, device_base_});
    arena_.save(out);
    streams_.save(out);
    out.part(kObjectsPart);
    events_.save(out);
    out.scalar(callbacks_.tail());
    handles_.save(out);
    memory_->save(out);
    code_->save(out);
    std::vector<SavedLimit> limits;
    for (const auto& [limit, value] : code_->limits().wanted()) limits.push_back({limit, value});
    out.list(limits);
    save_kept_launches(out);
    save_reissued(out);
    std::lock_guard lock(mutex_);
    std::vector<Lane::Saved> lanes;
    std::vector<uint64_t> ends = lane_ends_;
    for (size_t i = 0; i < lanes_.size(); ++i) {
        if (!lanes_[i]) continue;
        if (lanes_[i]->ended())
            ends[i] = lanes_[i]->position();
        else
            lanes.push_back(lanes_[i]->saved());
    }
    out.part(kLanesPart);
    out.list(lanes);
    out.list(ends);
    out.scalar(captures_);
    out.scalar(launches_.load());
    std::lock_guard output_lock(output_mutex_);
    out.text(output_);
    return out.take();
}

bool Session::serve_taken(Taken& taken) {
    device_.arrived(*this);
    bool apart = false;
    try {
        apart = device_.enter_thread(this) == CUDA_SUCCESS && live_again(taken);
    } catch (const std::exception& error) {
        note(fmt::format("ended: {}; what it holds stays held until the server leaves", error.what()));
    }
    device_.left(*this);
    return apart;
}

bool Session::live_again(Taken& taken) {
    protocol::Reader in(taken.state.data(), taken.state.size());
    std::string problem;
    if (!take_hello(in)) problem = "its state is of another build";
    server_.dispatcher().enter(dispatched_);
    Laps laps;
    if (problem.empty()) {
        const CUresult status = restore(in, taken, laps);
        if (status != CUDA_SUCCESS)
            problem =
                fmt::format("the other process could not make it again: error {}", static_cast<int>(status));
    }
    if (arena_.file() != taken.arena) close(taken.arena);  // it has not come so far
    taken.state = {};
    const bool goes_on = taken.commit(problem) && problem.empty();
    taken.claim = nullptr;  // what is left of the chunks is released with the last one
    if (goes_on) {
        note("it goes on here, made again in " + laps.text());
        if (!reissued_.empty()) gate_.close(LaneGate::kReissued);  // they come first
        server_.quarantine().arrives(*this);
        follow_gate();
        const CUresult status = reissued_.empty() ? launch_kept() : CUDA_SUCCESS;
        if (status != CUDA_SUCCESS)
            end_because(fmt::format("a launch that was kept back fails: error {}", static_cast<int>(status)));
        problem = start_lanes();
        if (!problem.empty()) end_because(problem);
        return live_on(Begins::kElsewhere);
    }
    if (arena_.base() != 0)
        teardown();
    else
        server_.dispatcher().exit(dispatched_);
    if (server_.fatal() != CUDA_SUCCESS) return false;
    leave_place();
    return true;
}

CUresult Session::restore(protocol::Reader& in, const Taken& taken, Laps& laps) {
    const CUresult place = restore_place(in, taken.arena);
    if (taken.placed) taken.placed();
    SMT_TRY(place);
    laps.end("place");
    confine();
    SMT_TRY(streams_.open());
    SMT_TRY(streams_.restore(in));
    laps.end("streams");
    if (!protocol::take_part(in, kObjectsPart)) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(events_.restore(in));
    callbacks_.go_on_at(in.scalar<uint32_t>());
    handles_.restore(in);
    laps.end("events");
    open_memory();
    SMT_TRY(memory_->restore(in, taken.claim));
    laps.end("memory");
    SMT_TRY(restore_code(in, laps));
    SMT_TRY(restore_kept_launches(in));
    SMT_TRY(restore_reissued(in));
    SMT_TRY(restore_lanes(in, taken.marks.get()));
    captures_ = in.scalar<uint32_t>();
    launches_.store(in.scalar<uint64_t>());
    const std::string output = protocol::take_text(in);
    if (!output.empty()) add_output(output.data(), output.size());
    return in.good() && in.left() == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The same addresses as before, here too.
CUresult Session::restore_place(protocol::Reader& in, int arena_file) {
    if (!protocol::take_part(in, kPlacePart)) return CUDA_ERROR_INVALID_VALUE;
    const auto place = in.scalar<SavedPlace>();
    if (!in.good() || !server_.addresses().take_exactly(place.region, place.slot))
        return CUDA_ERROR_ALREADY_MAPPED;
    region_ = place.region;
    slot_ = place.slot;
    CUdeviceptr got = 0;
    CUresult status = driver().cuMemAddressReserve(&got, protocol::kDeviceRangeBytes,
                                                   protocol::kRangeAlignment, place.device_base, 0);
    if (status == CUDA_SUCCESS) device_base_ = got;
    if (status == CUDA_SUCCESS && got != place.device_base) status = CUDA_ERROR_ALREADY_MAPPED;
    if (status != CUDA_SUCCESS) return status;
    return arena_.restore(in, arena_file, AddressPlan::base(region_, slot_));
}

// Images are loaded as the program loaded them: by its records.
CUresult Session::restore_code(protocol::Reader& in, Laps& laps) {
    const ScratchLane memory;
    if (memory.address() == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    Lane scratch(*this, ~0u, memory.address(), 0);
    CodeTable::Loading loading;
    loading.prepare = [&](const std::vector<std::string_view>& images) -> std::shared_ptr<void> {
        if (!workers_open_images(device_, server_.compiler().settings())) return nullptr;
        std::vector<std::string_view> opened = images;
        std::erase_if(opened, jit::is_no_image);
        return server_.opener().ahead(id_, order_to_open(*this), opened);
    };
    loading.load = [&](const std::string& record, std::vector<char> bytes) {
        return scratch.replay(protocol::Op::kModuleLoad, record, std::move(bytes));
    };
    loading.set = [&](const protocol::FunctionAttribute& attribute) {
        return scratch.replay(protocol::Op::kFunctionAttribute,
                              {reinterpret_cast<const char*>(&attribute), sizeof attribute}, {});
    };
    SMT_TRY(code_->restore_images(in, loading));
    laps.end("images");
    SMT_TRY(code_->restore_kernels(in, loading));
    laps.end("kernels");
    const std::vector<SavedLimit> limits = protocol::take_list<SavedLimit>(in);
    int threads = 0;
    driver().cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                                  device_.device());
    const auto resident =
        static_cast<uint64_t>(threads) * static_cast<uint64_t>(device_.properties().multiprocessors);
    for (const SavedLimit& each : limits)
        SMT_TRY(code_->limits().set(static_cast<CUlimit>(each.limit), each.value, *memory_, resident));
    return CUDA_SUCCESS;
}

CUresult Session::restore_lanes(protocol::Reader& in, const Marks* marks) {
    if (!protocol::take_part(in, kLanesPart)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Lane::Saved> saved = protocol::take_list<Lane::Saved>(in);
    lane_ends_ = protocol::take_list<uint64_t>(in);
    lanes_.resize(lane_ends_.size());
    next_lane_.store(static_cast<uint32_t>(lanes_.size()));
    for (Lane::Saved& each : saved) {
        if (const Marks::Lane* mark = marks ? marks->lane(static_cast<uint32_t>(each.index)) : nullptr)
            each.position = mark->over.load();
        if (each.index >= lanes_.size() || each.address < arena_.base() ||
            each.address - arena_.base() > protocol::kArenaBytes - protocol::kLaneBytes)
            return CUDA_ERROR_INVALID_VALUE;
        auto lane = std::make_shared<Lane>(*this, each);
        if (each.has_own_stream) SMT_TRY(lane->take_own_stream(each.own_stream));
        lanes_[each.index] = std::move(lane);
    }
    return CUDA_SUCCESS;
}

// Empty, or why one did not start.
std::string Session::start_lanes() {
    std::lock_guard lock(mutex_);
    for (const std::shared_ptr<Lane>& lane : lanes_) {
        if (!lane) continue;
        if (const std::string why = lane->start(); !why.empty()) return "a thread of it gets no lane: " + why;
        lane_count_.fetch_add(1);
    }
    return {};
}

}  // namespace smt::runtime::server
