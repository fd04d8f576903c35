// cp.async as a plain copy, complete at once, and the stack: alloca and its kin.
#include "runtime/device/simulated/exec/families/addressing.h"

namespace smt::runtime::device::simulated {
namespace {

// An address operand as 64 bits in a register of its own.
Slot address_value(Decoder& d, const ptx::Instruction& s, const ptx::Operand& operand, Space space) {
    Instruction in;
    ptx::Instruction plain = s;
    plain.modifiers.clear();
    if (space == Space::kGlobal) plain.modifiers.push_back(Modifier::kGlobal);
    decode_address(d, plain, operand, in);
    in.d = d.temporary(64);
    in.unit = Unit::kInteger;
    in.space = Space::kNone;
    in.run = [](Execution& x, const Instruction& i) {
        uint64_t addresses[kLanes];
        find_addresses(x, i, addresses);
        keep(x, x.at<uint64_t>(i.d), addresses);
    };
    d.prepare(in, {in.a}, {in.d});
    return in.d;
}

// a: destination; b: source address; c: bytes to take or a predicate; count: bytes of the copy;
// list[0] offset: 1 c is a number, 2 a predicate.
void run_copy(Execution& x, const Instruction& in) {
    uint64_t to[kLanes];
    Located where;
    locate(x, in, to, in.count, where);
    if (!where.ok) return;
    const uint64_t* from = x.at<uint64_t>(in.b);
    const uint32_t kind = x.group->code->slots[in.list].offset();
    for_lanes(x.mask, [&](int i) {
        uint32_t bytes = in.count;
        if (kind == 1) bytes = std::min(bytes, x.at<uint32_t>(in.c)[i]);
        if (kind == 2 && (x.predicate(in.c) >> i & 1) != 0) bytes = 0;
        std::byte buffer[16] = {};
        if (bytes != 0) {
            // Alignment is that of the whole copy; only what is taken must be there.
            if (from[i] % in.count != 0)
                return x.cta->fail(x, Fault::Kind::kMisaligned, i, Space::kGlobal, from[i], in.count,
                                   "misaligned access");
            for (uint32_t k = 0; k < bytes; k += 1) {
                const std::byte* one = x.cta->global(x, i, from[i] + k, 1, Space::kGlobal);
                if (one == nullptr) return;
                buffer[k] = *one;
            }
        }
        std::memcpy(where.at(i, to), buffer, in.count);
    });
    x.step.space = Space::kGlobal;
    x.step.store = false;
    x.step.transactions = count_sectors(from, x.mask);
}

void decode_copy(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.operands.size() < 3) return d.refuse("the number of operands does not fit");
    const auto bytes = d.immediate(s.operands[2]);
    if (!bytes || (*bytes != 4 && *bytes != 8 && *bytes != 16))
        return d.refuse("4, 8 or 16 bytes are copied");
    const Slot source = address_value(d, s, s.operands[1], Space::kGlobal);
    ptx::Instruction destination = s;
    std::erase(destination.modifiers, Modifier::kGlobal);
    decode_address(d, destination, s.operands[0], in);
    in.count = static_cast<uint8_t>(*bytes);
    in.b = source;
    d.reads(source);
    uint32_t kind = 0;
    const bool hint = s.has(Modifier::kL2CacheHint);
    if (s.operands.size() - (hint ? 1 : 0) > 3) {
        const bool predicate = d.register_width(s.operands[3]) == 1;
        in.c = predicate ? d.read_predicate(s.operands[3]) : d.read(s.operands[3], Type::kB32);
        kind = predicate ? 2 : 1;
    }
    in.list = d.list({Slot(Slot::Base::kConstants, kind)});
    in.run = run_copy;
}

void decode_wait(Decoder&, const ptx::Instruction&, Instruction& in) {
    in.unit = Unit::kNone;
    in.run = [](Execution&, const Instruction&) {};
}

// ---- the stack

void run_alloca(Execution& x, const Instruction& in) {
    Frame& frame = *x.group->frame;
    uint64_t bytes = 0;
    for_lanes(x.mask, [&](int i) {
        bytes = std::max(bytes, in.count == 8 ? x.at<uint64_t>(in.a)[i] : x.at<uint32_t>(in.a)[i]);
    });
    const uint64_t at = (frame.top + in.value - 1) / in.value * in.value;
    if (bytes > LocalMemory::kMost || at + bytes > LocalMemory::kMost ||
        !x.warp->local.grow(static_cast<uint32_t>(at + bytes)))
        return x.cta->fail(x, Fault::Kind::kStackOverflow, std::countr_zero(x.mask), Space::kNone, 0, 0,
                           "stack overflow");
    frame.top = static_cast<uint32_t>(at + bytes);
    for_lanes(x.mask, [&](int i) {
        if (in.count == 8)
            x.at<uint64_t>(in.d)[i] = at;
        else
            x.at<uint32_t>(in.d)[i] = static_cast<uint32_t>(at);
    });
}

void decode_alloca(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read(s.operands[1], s.types[0]);
    in.d = d.write(s.operands[0], s.types[0]);
    in.count = static_cast<uint8_t>(ptx::bits(s.types[0]) / 8);
    in.value = 16;
    if (s.operands.size() > 2) {
        const auto alignment = d.immediate(s.operands[2]);
        if (!alignment || !std::has_single_bit(*alignment))
            return d.refuse("the alignment must be a constant power of two");
        in.value = *alignment;
    }
    in.run = run_alloca;
}

void decode_stack(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const bool saves = s.opcode == Opcode::kStacksave;
    const bool wide = ptx::bits(s.types[0]) == 64;
    if (saves)
        in.d = d.write(s.operands[0], s.types[0]);
    else
        in.a = d.read(s.operands[0], s.types[0]);
    in.count = wide ? 8 : 4;
    if (saves)
        in.run = [](Execution& x, const Instruction& i) {
            const uint32_t top = x.group->frame->top;
            for_lanes(x.mask, [&](int lane) {
                i.count == 8 ? void(x.at<uint64_t>(i.d)[lane] = top) : void(x.at<uint32_t>(i.d)[lane] = top);
            });
        };
    else
        in.run = [](Execution& x, const Instruction& i) {
            const uint64_t to = i.count == 8 ? x.uniform<uint64_t>(i.a) : x.uniform<uint32_t>(i.a);
            Frame& frame = *x.group->frame;
            if (to >= frame.variables && to <= frame.top) frame.top = static_cast<uint32_t>(to);
        };
}

}  // namespace

void add_copy(std::vector<Row>& rows) {
    const auto row = [&](const char* family, Opcode opcode, const char* required, const char* allowed,
                         const char* first, Unit unit, auto decode, const char* note = "") {
        rows.push_back(
            {family, opcode, modifiers(required), modifiers(allowed), types(first), {}, unit, decode, note});
    };
    const char* copies = "Asynchronous copies";
    const char* hints = "ca cg global shared shared::cta L2::cache_hint L2::64B L2::128B L2::256B";
    row(copies, Opcode::kCp, "async shared global", hints, "", Unit::kMemory, decode_copy,
        "complete at once");
    row(copies, Opcode::kCp, "async shared::cta global", hints, "", Unit::kMemory, decode_copy,
        "complete at once");
    row(copies, Opcode::kCp, "async commit_group", "", "", Unit::kNone, decode_wait, "does nothing");
    row(copies, Opcode::kCp, "async wait_group", "", "", Unit::kNone, decode_wait, "does nothing");
    row(copies, Opcode::kCp, "async wait_all", "", "", Unit::kNone, decode_wait, "does nothing");
    const char* stack = "The stack";
    row(stack, Opcode::kAlloca, "", "", "u32 u64", Unit::kInteger, decode_alloca,
        "the most that any thread of the warp asks for");
    row(stack, Opcode::kStacksave, "", "", "u32 u64", Unit::kInteger, decode_stack);
    row(stack, Opcode::kStackrestore, "", "", "u32 u64", Unit::kInteger, decode_stack);
}

}  // namespace smt::runtime::device::simulated
