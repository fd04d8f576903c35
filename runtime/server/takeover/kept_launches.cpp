// Launches of a session that the dispatcher kept back when a fault came: no block of them was under way, but
// some may be over. The process that takes over keeps them back in turn. Fills and copies within device
// memory are launches of the server's own kernels (dispatch/moves.h).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/dispatch/managed_stream.h"
#include "runtime/dispatch/quiesce.h"
#include "runtime/protocol/try.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/lane.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

namespace {

constexpr uint32_t kKeptPart = 0x4b455054;

dispatch::ManagedFunction* form_of(const LoadedKernel& kernel, dispatch::Form form) {
    if (form == dispatch::Form::kDoor) return kernel.at_door.function ? &kernel.at_door : nullptr;
    return form == dispatch::Form::kPersistent ? kernel.managed.load() : nullptr;
}

dispatch::Moves& moves_of(Server& server) { return server.dispatcher().supplies().moves(); }

bool keeps_to_own(const TenantMemory& memory, uint32_t number, const std::vector<char>& parameters) {
    const auto extents = dispatch::Moves::extents(number, parameters);
    return extents && memory.may_touch(extents->to.address, extents->to.bytes) &&
           memory.may_touch(extents->from.address, extents->from.bytes);
}

}  // namespace

std::string Session::why_kept_launches_stay() const {
    for (const StreamPointer& stream : streams_.every())
        for (const dispatch::Work& work : stream->kept) {
            if (work.graph) return "a graph of it is kept back";
            if (!moves_of(server_).number(*work.function) && !code_->find(*work.function))
                return "a launch of it is kept back whose kernel is not known";
            if (stream->reference == protocol::kPerThreadStream)
                return "a launch of it is kept back on a thread's default stream";
        }
    return {};
}

void Session::save_kept_launches(protocol::StateWriter& out) const {
    out.part(kKeptPart);
    uint64_t count = 0;
    for (const StreamPointer& stream : streams_.every()) count += stream->kept.size();
    out.scalar(count);
    for (const StreamPointer& stream : streams_.every())
        for (const dispatch::Work& work : stream->kept) {
            const auto move = moves_of(server_).number(*work.function);
            const LoadedKernel* const kernel = move ? nullptr : code_->find(*work.function);
            KeptLaunch saved{};
            saved.stream = stream->reference;
            saved.lane = work.entry.lane;
            saved.kernel = kernel ? kernel->id : 0;
            saved.move = move ? *move + 1 : 0;
            saved.form = static_cast<uint32_t>(work.function->form);
            std::copy_n(work.grid, 3, saved.grid);
            std::copy_n(work.block, 3, saved.block);
            saved.shared_bytes = work.shared_bytes;
            saved.unit = work.unit;
            saved.number = work.number;
            saved.total = work.total;
            saved.done = work.done;
            out.scalar(saved);
            const size_t bytes = std::min<size_t>(work.parameters.size(),
                                                  kernel ? kernel->parameter_bytes : dispatch::Moves::kBytes);
            out.list(std::vector<char>(work.parameters.begin(),
                                       work.parameters.begin() + static_cast<ptrdiff_t>(bytes)));
            out.list(work.attributes);
        }
}

// NOT_SUPPORTED: the kernel has not the form here that the launch is in.
CUresult Session::restore_kept_launches(protocol::Reader& in) {
    if (!protocol::take_part(in, kKeptPart)) return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t left = in.scalar<uint64_t>(); left > 0; --left) {
        TakenLaunch taken;
        taken.launch = in.scalar<KeptLaunch>();
        taken.parameters = protocol::take_list<char>(in);
        taken.attributes = protocol::take_list<CUlaunchAttribute>(in);
        const KeptLaunch& launch = taken.launch;
        if (in.good() && launch.move != 0) {
            SMT_TRY(check_kept_move(taken));
            taken_launches_.push_back(std::move(taken));
            continue;
        }
        const LoadedKernel* const kernel = in.good() ? code_->find(launch.kernel) : nullptr;
        if (!kernel || !kernel->live.load() || taken.parameters.size() != kernel->parameter_bytes ||
            launch.done > launch.total)
            return CUDA_ERROR_INVALID_VALUE;
        if (!form_of(*kernel, static_cast<dispatch::Form>(launch.form))) return CUDA_ERROR_NOT_SUPPORTED;
        taken_launches_.push_back(std::move(taken));
    }
    return CUDA_SUCCESS;
}

// One block takes as many elements in every process of one build.
CUresult Session::check_kept_move(const TakenLaunch& taken) {
    const KeptLaunch& launch = taken.launch;
    dispatch::Moves& moves = moves_of(server_);
    if (!moves.loaded()) {
        const dispatch::Quiesce others(server_.dispatcher(), *dispatched_);
        SMT_TRY(moves.load());
    }
    const bool good = moves.form(launch.move - 1) && launch.done <= launch.total &&
                      launch.total == launch.grid[0] && taken.attributes.empty() &&
                      keeps_to_own(*memory_, launch.move - 1, taken.parameters);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The entry of the launch in the journal, but for its shape.
journal::Entry Session::entry_of_kept(const KeptLaunch& launch) const {
    journal::Entry entry;
    entry.kind = journal::Kind::kLaunch;
    entry.session = id_;
    entry.lane = launch.lane;
    entry.stream = launch.stream;
    entry.text = journal_name_;
    entry.name = moves_name_;
    entry.value = moves_treatment_;
    if (launch.move != 0) return entry;
    const LoadedKernel& kernel = *code_->find(launch.kernel);
    entry.name = kernel.journal_name;
    entry.value = kernel.treatment.load();
    entry.registers = kernel.registers;
    entry.shared_bytes = kernel.static_shared + launch.shared_bytes;
    return entry;
}

CUresult Session::launch_kept() {
    if (taken_launches_.empty()) return CUDA_SUCCESS;
    const auto count = [this](auto is) {
        return std::count_if(taken_launches_.begin(), taken_launches_.end(),
                             [&](const TakenLaunch& each) { return is(each.launch); });
    };
    note(fmt::format("{} launches are kept back anew, {} of them half done, {} of them fills and copies",
                     taken_launches_.size(), count([](const KeptLaunch& each) { return each.done != 0; }),
                     count([](const KeptLaunch& each) { return each.move != 0; })));
    for (TakenLaunch& taken : std::exchange(taken_launches_, {})) {
        const KeptLaunch& launch = taken.launch;
        StreamPointer stream;
        for (const StreamPointer& each : streams_.every())
            if (each->reference == launch.stream) stream = each;
        if (!stream) return CUDA_ERROR_INVALID_HANDLE;
        dispatch::ManagedStream* managed = nullptr;
        SMT_TRY(streams_.manage(*stream, &managed));
        dispatch::Work work;
        work.function = launch.move
                            ? moves_of(server_).form(launch.move - 1)
                            : form_of(*code_->find(launch.kernel), static_cast<dispatch::Form>(launch.form));
        work.entry = entry_of_kept(launch);
        std::copy_n(launch.grid, 3, work.entry.grid);
        std::copy_n(launch.block, 3, work.entry.block);
        std::copy_n(launch.grid, 3, work.grid);
        std::copy_n(launch.block, 3, work.block);
        work.shared_bytes = launch.shared_bytes;
        work.unit = launch.unit;
        work.total = launch.total;
        work.done = launch.done;
        work.attributes = std::move(taken.attributes);
        work.parameters.reserve(work.function->launch_offset +
                                std::max(sizeof(smt::Launch), sizeof(smt::DoorLaunch)));
        work.parameters.assign(taken.parameters.begin(), taken.parameters.end());
        stream->in_flight.name(stream->in_flight.begin(), work.entry.name);
        SMT_TRY(managed->launch(std::move(work)));
        streams_.note_use(*stream);
    }
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server
