// Barriers of a CTA, mbarriers, fences and waiting.
#include "runtime/device/simulated/exec/families/synchronization.h"

#include <fmt/format.h>

#include "runtime/device/simulated/exec/families/addressing.h"

namespace smt::runtime::device::simulated {

// ---- bar and barrier: a is the barrier, b the thread count, c the predicate of a reduction

namespace {

enum BarrierOperation : uint32_t { kSync, kArrive, kRedPopc, kRedAnd, kRedOr };

void run_barrier(Execution& x, const Instruction& in) {
    const uint32_t id = x.uniform<uint32_t>(in.a);
    const uint32_t threads = in.count > 0 ? x.uniform<uint32_t>(in.b) : 0;
    const uint32_t votes = in.target >= kRedPopc ? x.predicate(in.c) : 0;
    if (in.target == kArrive && threads == 0)
        return x.cta->fail(x, Fault::Kind::kBadBarrier, std::countr_zero(x.mask), Space::kNone, 0, 0,
                           "bar.arrive needs a thread count");
    x.cta->barrier_arrive(x, in, id, threads, in.target != kArrive, votes);
}

void note_barrier(Decoder& d, const ptx::Operand& operand) {
    const auto id = d.immediate(operand);
    d.code().barriers = std::max(d.code().barriers, id && *id < 16 ? static_cast<uint32_t>(*id) + 1 : 16u);
}

void decode_barrier(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const bool reduces = s.has(Modifier::kRed);
    const size_t first = reduces ? 1 : 0;
    const size_t sources = s.operands.size() - first - (reduces ? 1 : 0);  // barrier and perhaps a count
    if (sources < 1 || sources > 2) return d.refuse("the number of operands does not fit");
    note_barrier(d, s.operands[first]);
    in.a = d.read(s.operands[first], Type::kU32);
    if (sources == 2) {
        in.b = d.read(s.operands[first + 1], Type::kU32);
        in.count = 1;
    }
    in.target = s.has(Modifier::kArrive) ? kArrive : kSync;
    if (reduces) {
        in.target = s.has(Modifier::kPopc) ? kRedPopc : s.has(Modifier::kAnd) ? kRedAnd : kRedOr;
        in.c = d.read_predicate(s.operands.back());
        in.d = in.target == kRedPopc ? d.write(s.operands[0], Type::kU32) : d.write_predicate(s.operands[0]);
    }
    in.run = run_barrier;
}

// ---- mbarrier: our own layout of the 64 bits, which programs may not look into

struct MemoryBarrier {
    uint64_t pending : 20;   // arrivals still to come in this phase
    uint64_t expected : 20;  // in each phase
    uint64_t bytes : 23;     // of asynchronous copies still to come, two's complement
    uint64_t phase : 1;      // changes when a phase is complete
};
static_assert(sizeof(MemoryBarrier) == 8);

void complete_if_due(MemoryBarrier& barrier) {
    if (barrier.pending != 0 || barrier.bytes != 0) return;
    barrier.phase ^= 1;
    barrier.pending = barrier.expected;
}

enum Operation : uint32_t {
    kInit,
    kInval,
    kExpectTx,
    kCompleteTx,
    kMArrive,
    kArriveDrop,
    kArriveExpectTx,
    kTest,
    kTestParity,
    kNoCount
};

// One thread's operation; gives the old state or, of a test, whether the phase is complete.
uint64_t operate(uint32_t operation, MemoryBarrier& barrier, uint64_t operand) {
    const uint64_t before = std::bit_cast<uint64_t>(barrier);
    switch (operation) {
        case kInit:
            barrier = {operand & 0xf'ffff, operand & 0xf'ffff, 0, 0};
            break;
        case kExpectTx:
            barrier.bytes += operand;
            break;
        case kCompleteTx:
            barrier.bytes -= operand;
            complete_if_due(barrier);
            break;
        case kArriveExpectTx:
            barrier.bytes += operand;
            barrier.pending -= 1;
            complete_if_due(barrier);
            break;
        case kArriveDrop:
            barrier.expected -= operand;
            [[fallthrough]];
        case kMArrive:
            barrier.pending -= operand;
            complete_if_due(barrier);
            break;
        case kTest:
            return barrier.phase != std::bit_cast<MemoryBarrier>(operand).phase ? 1 : 0;
        case kTestParity:
            return barrier.phase != (operand & 1) ? 1 : 0;
        default:
            break;
    }
    return before;
}

// b: the operand (count 1: 32 bits, 2: 64 bits, 0: none, it is 1). The operation is in the list, as a
// slot's offset: target and value are the address's.
void run_mbarrier(Execution& x, const Instruction& in) {
    uint64_t addresses[kLanes];
    Located where;
    locate(x, in, addresses, 8, where);
    if (!where.ok) return;
    const uint32_t operation = x.group->code->slots[in.list].offset();
    const bool tests = operation == kTest || operation == kTestParity;
    const Slot result = x.group->code->slots[in.list + 1];
    uint64_t before[kLanes];
    uint32_t complete = 0;
    for_lanes(x.mask, [&](int i) {
        const uint64_t operand = in.count == 0   ? 1
                                 : in.count == 1 ? x.at<uint32_t>(in.b)[i]
                                                 : x.at<uint64_t>(in.b)[i];
        MemoryBarrier barrier;
        std::memcpy(&barrier, where.at(i, addresses), 8);
        before[i] = operate(operation, barrier, operand);
        std::memcpy(where.at(i, addresses), &barrier, 8);
        if (before[i] != 0) complete |= 1u << i;
    });
    if (tests)
        x.set_predicate(result, complete);
    else if (result != kSink)
        keep(x, x.at<uint64_t>(result), before);
}

void finish_mbarrier(Decoder& d, Instruction& in, uint32_t operation, Slot result) {
    in.unit = Unit::kBarrier;
    in.store = in.atomic = true;
    in.list = d.list({Slot(Slot::Base::kConstants, operation), result});
    in.run = run_mbarrier;
}

void take_operand(Decoder& d, const ptx::Operand& operand, Instruction& in, bool wide) {
    in.b = d.read(operand, wide ? Type::kB64 : Type::kB32);
    in.count = wide ? 2 : 1;
}

bool decode_shared_address(Decoder& d, const ptx::Instruction& s, const ptx::Operand& operand,
                           Instruction& in) {
    decode_address(d, s, operand, in);
    return !d.failed();
}

// init, inval, expect_tx, complete_tx: [address]{, operand}
void decode_mbarrier_set(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (!decode_shared_address(d, s, s.operands[0], in)) return;
    if (s.operands.size() > 1) take_operand(d, s.operands[1], in, false);
    const uint32_t operation = s.has(Modifier::kInit)       ? kInit
                               : s.has(Modifier::kInval)    ? kInval
                               : s.has(Modifier::kExpectTx) ? kExpectTx
                                                            : kCompleteTx;
    finish_mbarrier(d, in, operation, kSink);
}

// arrive and arrive_drop: state, [address]{, count}; state is _ or absent for another CTA's
void decode_mbarrier_arrive(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const bool gives = s.operands[0].kind != ptx::Operand::Kind::kAddress;
    const size_t address = gives ? 1 : 0;
    if (s.operands.size() <= address) return d.refuse("an address belongs here");
    if (!decode_shared_address(d, s, s.operands[address], in)) return;
    if (s.operands.size() > address + 1) take_operand(d, s.operands[address + 1], in, false);
    const bool state = gives && s.operands[0].kind != ptx::Operand::Kind::kSink;
    const Slot result = state ? d.write(s.operands[0], Type::kB64) : kSink;
    const bool drop = s.has(Modifier::kArriveDrop);
    const bool expects = s.has(Modifier::kExpectTx);
    if (drop && expects) return d.refuse("this combination is not supported");
    finish_mbarrier(d, in, expects ? kArriveExpectTx : drop ? kArriveDrop : kMArrive, result);
}

// test_wait and try_wait: done, [address], state or parity{, time}. Neither waits.
void decode_mbarrier_test(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.operands.size() < 3) return d.refuse("the number of operands does not fit");
    if (!decode_shared_address(d, s, s.operands[1], in)) return;
    const bool parity = s.has(Modifier::kParity);
    take_operand(d, s.operands[2], in, !parity);
    finish_mbarrier(d, in, parity ? kTestParity : kTest, d.write_predicate(s.operands[0]));
    in.store = in.atomic = false;
}

void decode_pending_count(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read(s.operands[1], Type::kB64);
    in.d = d.write(s.operands[0], Type::kB32);
    in.run = lanewise<uint32_t, uint64_t>(
        [](uint64_t a) { return static_cast<uint32_t>(std::bit_cast<MemoryBarrier>(a).pending); });
}

// Copies are complete at once, so the barrier has nothing to wait for: .noinc arrives, the other form
// would count one up and arrive.
void decode_copy_arrive(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (!decode_shared_address(d, s, s.operands[0], in)) return;
    finish_mbarrier(d, in, s.has(Modifier::kNoinc) ? kMArrive : kInval, kSink);
}

// ---- what takes no effect, and sleeping

void decode_nothing(Decoder&, const ptx::Instruction&, Instruction& in) {
    in.run = [](Execution&, const Instruction&) {};
}

void decode_sleep(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read(s.operands[0], Type::kU32);
    in.run = [](Execution& x, const Instruction& i) {
        for_lanes(x.mask, [&](int lane) {
            x.step.nanoseconds = std::max(x.step.nanoseconds, x.at<uint32_t>(i.a)[lane]);
        });
    };
}

}  // namespace

void barrier_result(Execution& x, const Instruction& in, uint32_t votes, uint32_t voters) {
    if (in.target == kRedAnd) x.set_predicate(in.d, votes == voters ? kAll : 0);
    if (in.target == kRedOr) x.set_predicate(in.d, votes != 0 ? kAll : 0);
    if (in.target == kRedPopc) for_lanes(x.mask, [&](int i) { x.at<uint32_t>(in.d)[i] = votes; });
}

void add_synchronization(std::vector<Row>& rows) {
    const char* family = "Synchronization";
    const auto row = [&](Opcode opcode, const char* required, const char* allowed, const char* first,
                         Unit unit, auto decode, const char* note = "") {
        rows.push_back(
            {family, opcode, modifiers(required), modifiers(allowed), types(first), {}, unit, decode, note});
    };
    for (Opcode opcode : {Opcode::kBar, Opcode::kBarrier}) {
        row(opcode, "sync", "cta aligned", "", Unit::kBarrier, decode_barrier,
            "a warp has arrived when all its threads that have not exited have");
        row(opcode, "arrive", "cta aligned", "", Unit::kBarrier, decode_barrier);
        row(opcode, "red popc", "cta aligned", "u32", Unit::kBarrier, decode_barrier);
        row(opcode, "red and", "cta aligned", "pred", Unit::kBarrier, decode_barrier);
        row(opcode, "red or", "cta aligned", "pred", Unit::kBarrier, decode_barrier);
    }
    const char* shared = "shared shared::cta";
    const char* order = "shared shared::cta shared::cluster noComplete release acquire relaxed cta cluster";
    for (const char* each : {"init", "inval"})
        row(Opcode::kMbarrier, each, shared, "b64", Unit::kBarrier, decode_mbarrier_set);
    for (const char* each : {"expect_tx", "complete_tx"})
        row(Opcode::kMbarrier, each, order, "b64", Unit::kBarrier, decode_mbarrier_set);
    row(Opcode::kMbarrier, "arrive",
        "shared shared::cta shared::cluster noComplete release relaxed cta cluster expect_tx", "b64",
        Unit::kBarrier, decode_mbarrier_arrive);
    row(Opcode::kMbarrier, "arrive_drop", order, "b64", Unit::kBarrier, decode_mbarrier_arrive);
    for (const char* each : {"test_wait", "try_wait"})
        row(Opcode::kMbarrier, each, "shared shared::cta acquire relaxed cta cluster parity", "b64",
            Unit::kBarrier, decode_mbarrier_test, "does not wait");
    row(Opcode::kMbarrier, "pending_count", "", "b64", Unit::kInteger, decode_pending_count);
    row(Opcode::kCp, "async mbarrier arrive", "noinc shared shared::cta", "b64", Unit::kBarrier,
        decode_copy_arrive, "copies are complete at once");
    row(Opcode::kMembar, "", "cta gl sys proxy alias", "", Unit::kMemory, decode_nothing,
        "every access is sequentially consistent");
    row(Opcode::kFence, "",
        "sc acq_rel acquire release cta cluster gpu sys proxy alias async global shared::cta mbarrier_init",
        "", Unit::kMemory, decode_nothing, "every access is sequentially consistent");
    row(Opcode::kGriddepcontrol, "", "launch_dependents wait", "", Unit::kNone, decode_nothing,
        "does nothing: a kernel starts when what it depends on is complete");
    row(Opcode::kSetmaxnreg, "", "inc dec sync aligned", "u32", Unit::kNone, decode_nothing, "does nothing");
    row(Opcode::kPmevent, "", "mask", "", Unit::kNone, decode_nothing, "does nothing");
    row(Opcode::kNanosleep, "", "", "u32", Unit::kNone, decode_sleep,
        "the warp asks the machine for the time");
}

}  // namespace smt::runtime::device::simulated
