// Moves, packing, addresses and special registers.
#include "runtime/device/simulated/exec/families/lanes.h"
#include "runtime/device/simulated/exec/families/special.h"
#include "runtime/device/simulated/exec/spaces.h"
#include "runtime/device/simulated/exec/warp.h"

namespace smt::runtime::device::simulated {

Handler special_reader(ptx::Special special) {
    using ptx::Special;
    const auto uniform = [](auto value) -> Handler {
        return [](Execution& x, const Instruction& in) {
            const uint64_t now = decltype(value){}(x);
            for_lanes(x.mask, [&](int i) { x.at<uint64_t>(in.d)[i] = now; });
        };
    };
    switch (special) {
        case Special::kClock:
        case Special::kClock64:
            return uniform([](Execution& x) { return x.cta->environment.cycles(); });
        case Special::kClockHi:
            return uniform([](Execution& x) { return x.cta->environment.cycles() >> 32; });
        case Special::kGlobaltimer:
        case Special::kGlobaltimerLo:
            return uniform([](Execution& x) { return x.cta->environment.nanoseconds(); });
        case Special::kGlobaltimerHi:
            return uniform([](Execution& x) { return x.cta->environment.nanoseconds() >> 32; });
        case Special::kGridid:
            return uniform([](Execution& x) { return x.cta->launch.id; });
        default:
            return nullptr;
    }
}

namespace {

using U128 = unsigned __int128;

template <class F>
Handler for_width(int width, F f) {
    switch (width) {
        case 16:
            return f.template operator()<uint16_t>();
        case 32:
            return f.template operator()<uint32_t>();
        case 64:
            return f.template operator()<uint64_t>();
        case 128:
            return f.template operator()<U128>();
        default:
            return nullptr;
    }
}

template <class T>
void copy(Execution& x, const Instruction& in) {
    if (x.mask == kAll) {
        std::memmove(x.at<T>(in.d), x.at<T>(in.a), sizeof(T) * kLanes);
        return;
    }
    const T* a = x.at<T>(in.a);
    T* d = x.at<T>(in.d);
    for (int i = 0; i < kLanes; ++i) d[i] = (x.mask >> i & 1) != 0 ? a[i] : d[i];
}

// {a, b, ...} of Part into one Whole: the first is the lowest.
template <class Whole, class Part>
void pack_parts(Execution& x, const Instruction& in) {
    Whole values[kLanes] = {};
    for (int k = 0; k < in.count; ++k) {
        const Part* part = x.at<Part>(x.group->code->slots[in.list + static_cast<uint32_t>(k)]);
        for (int i = 0; i < kLanes; ++i)
            values[i] |= static_cast<Whole>(static_cast<Whole>(part[i])
                                            << (8 * sizeof(Part) * static_cast<size_t>(k)));
    }
    keep(x, x.at<Whole>(in.d), values);
}

template <class Whole, class Part>
void unpack_parts(Execution& x, const Instruction& in) {
    Whole source[kLanes];
    std::memcpy(source, x.at<Whole>(in.a), sizeof(source));
    for (int k = 0; k < in.count; ++k) {
        const Slot slot = x.group->code->slots[in.list + static_cast<uint32_t>(k)];
        if (slot == kSink) continue;
        Part values[kLanes];
        for (int i = 0; i < kLanes; ++i)
            values[i] = static_cast<Part>(source[i] >> (8 * sizeof(Part) * static_cast<size_t>(k)));
        keep(x, x.at<Part>(slot), values);
    }
}

// Bytes have 16-bit registers.
template <class Whole>
void pack_bytes(Execution& x, const Instruction& in) {
    Whole values[kLanes] = {};
    for (int k = 0; k < in.count; ++k) {
        const uint16_t* part = x.at<uint16_t>(x.group->code->slots[in.list + static_cast<uint32_t>(k)]);
        for (int i = 0; i < kLanes; ++i)
            values[i] |= static_cast<Whole>(static_cast<Whole>(part[i] & 0xff) << (8 * k));
    }
    keep(x, x.at<Whole>(in.d), values);
}

template <class Whole>
void unpack_bytes(Execution& x, const Instruction& in) {
    Whole source[kLanes];
    std::memcpy(source, x.at<Whole>(in.a), sizeof(source));
    for (int k = 0; k < in.count; ++k) {
        const Slot slot = x.group->code->slots[in.list + static_cast<uint32_t>(k)];
        if (slot == kSink) continue;
        uint16_t values[kLanes];
        for (int i = 0; i < kLanes; ++i) values[i] = static_cast<uint16_t>(source[i] >> (8 * k) & 0xff);
        keep(x, x.at<uint16_t>(slot), values);
    }
}

Type bits_type(int width) {
    return width == 8    ? Type::kB8
           : width == 16 ? Type::kB16
           : width == 32 ? Type::kB32
           : width == 64 ? Type::kB64
                         : Type::kB128;
}

Handler pick_pack(int whole, int part, bool packs) {
    const auto both = [packs](Handler p, Handler u) { return packs ? p : u; };
    if (part == 8 && whole == 16) return both(pack_bytes<uint16_t>, unpack_bytes<uint16_t>);
    if (part == 8 && whole == 32) return both(pack_bytes<uint32_t>, unpack_bytes<uint32_t>);
    if (part == 16 && whole == 32)
        return both(pack_parts<uint32_t, uint16_t>, unpack_parts<uint32_t, uint16_t>);
    if (part == 16 && whole == 64)
        return both(pack_parts<uint64_t, uint16_t>, unpack_parts<uint64_t, uint16_t>);
    if (part == 32 && whole == 64)
        return both(pack_parts<uint64_t, uint32_t>, unpack_parts<uint64_t, uint32_t>);
    if (part == 32 && whole == 128) return both(pack_parts<U128, uint32_t>, unpack_parts<U128, uint32_t>);
    if (part == 64 && whole == 128) return both(pack_parts<U128, uint64_t>, unpack_parts<U128, uint64_t>);
    return nullptr;
}

void decode_vector(Decoder& d, const ptx::Instruction& s, Instruction& in, bool packs) {
    const auto& elements = s.operands[packs ? 1 : 0].elements;
    const int whole = ptx::bits(s.types[0]);
    const int part = elements.empty() ? 0 : whole / static_cast<int>(elements.size());
    in.run = pick_pack(whole, part, packs);
    if (in.run == nullptr) return;
    if (!packs) in.a = d.read(s.operands[1], s.types[0]);
    std::vector<Slot> slots;
    for (const ptx::Operand& element : elements) {
        if (element.kind == ptx::Operand::Kind::kSink && !packs)
            slots.push_back(kSink);
        else
            slots.push_back(packs ? d.read(element, bits_type(part)) : d.write(element, bits_type(part)));
    }
    in.count = static_cast<uint8_t>(slots.size());
    in.list = d.list(slots);
    if (packs) in.d = d.write(s.operands[0], s.types[0]);
}

void decode_mov(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    using Kind = ptx::Operand::Kind;
    if (s.types[0] == Type::kPred) {
        in.a = d.read_predicate(s.operands[1]);
        in.d = d.write_predicate(s.operands[0]);
        in.run = [](Execution& x, const Instruction& i) { x.set_predicate(i.d, x.predicate(i.a)); };
        return;
    }
    if (s.operands[0].kind == Kind::kVector) return decode_vector(d, s, in, false);
    if (s.operands[1].kind == Kind::kVector) return decode_vector(d, s, in, true);
    in.a = d.read(s.operands[1], s.types[0]);
    in.d = d.write(s.operands[0], s.types[0]);
    in.run = for_width(ptx::bits(s.types[0]), []<class T>() -> Handler { return copy<T>; });
}

// ---- generic addresses

Space space_of(const ptx::Instruction& s) {
    if (s.has(Modifier::kShared) || s.has(Modifier::kSharedCta) || s.has(Modifier::kSharedCluster))
        return Space::kShared;
    if (s.has(Modifier::kLocal)) return Space::kLocal;
    if (s.has(Modifier::kParam) || s.has(Modifier::kParamEntry)) return Space::kParameter;
    if (s.has(Modifier::kConst)) return Space::kConstant;
    return Space::kGlobal;
}

uint64_t window_of(Space space) {
    switch (space) {
        case Space::kShared:
            return kSharedWindow;
        case Space::kLocal:
            return kLocalWindow;
        case Space::kParameter:
            return kParameterWindow;
        default:
            return 0;
    }
}

template <class T>
void add_window(Execution& x, const Instruction& in) {
    const T* a = x.at<T>(in.a);
    T values[kLanes];
    for (int i = 0; i < kLanes; ++i) values[i] = static_cast<T>(a[i] + in.value);
    keep(x, x.at<T>(in.d), values);
}

// In a device function, parameters are variables in local memory.
Space place_of_parameters(Decoder& d, Space space) {
    return space == Space::kParameter && !d.function().kernel ? Space::kLocal : space;
}

void decode_cvta(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (ptx::bits(s.types[0]) != 64) return d.refuse("generic addresses have 64 bits");
    const uint64_t window = window_of(place_of_parameters(d, space_of(s)));
    in.value = s.has(Modifier::kTo) ? 0 - window : window;
    in.a = d.read(s.operands[1], s.types[0]);
    in.d = d.write(s.operands[0], s.types[0]);
    in.run = add_window<uint64_t>;
}

bool lies_in(const Execution& x, uint64_t address, Space space) {
    const bool shared = in_window(address, kSharedWindow);
    const bool local = in_window(address, kLocalWindow);
    const bool parameter = in_window(address, kParameterWindow);
    if (space == Space::kShared) return shared;
    if (space == Space::kLocal) return local;
    if (space == Space::kParameter) return parameter;
    if (space == Space::kGlobal) return !shared && !local && !parameter;
    for (const auto& [begin, end] : x.group->code->program->constants)
        if (address >= begin && address < end) return true;
    return false;
}

void run_isspacep(Execution& x, const Instruction& in) {
    const uint64_t* a = x.at<uint64_t>(in.a);
    uint32_t mask = 0;
    for (int i = 0; i < kLanes; ++i) mask |= lies_in(x, a[i], static_cast<Space>(in.target)) ? 1u << i : 0;
    x.set_predicate(in.d, mask);
}

void decode_isspacep(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.target = static_cast<uint32_t>(place_of_parameters(d, space_of(s)));
    in.a = d.read(s.operands[1], Type::kB64);
    in.d = d.write_predicate(s.operands[0]);
    in.run = run_isspacep;
}

// A cluster is one CTA: every shared address is of the CTA itself, whose rank is 0.
void decode_mapa(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read(s.operands[1], s.types[0]);
    in.b = d.read(s.operands[2], Type::kU32);
    in.d = d.write(s.operands[0], s.types[0]);
    in.run = for_width(ptx::bits(s.types[0]), []<class T>() -> Handler { return copy<T>; });
}

void decode_getctarank(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    d.read(s.operands[1], s.types[0]);
    in.a = d.constant(0, 32);
    in.d = d.write(s.operands[0], Type::kU32);
    in.run = copy<uint32_t>;
}

}  // namespace

void add_move(std::vector<Row>& rows) {
    const char* family = "Moves and addresses";
    const auto row = [&](Opcode opcode, const char* allowed, const char* first, auto decode,
                         const char* note = "") {
        rows.push_back(
            {family, opcode, {}, modifiers(allowed), types(first), {}, Unit::kInteger, decode, note});
    };
    row(Opcode::kMov, "", "pred b16 b32 b64 b128 u16 u32 u64 s16 s32 s64 f32 f64", decode_mov,
        "registers, constants, special registers, addresses; packs and unpacks {...}");
    row(Opcode::kCvta, "to global local shared shared::cta shared::cluster const param param::entry", "u64",
        decode_cvta);
    row(Opcode::kIsspacep, "global local shared shared::cta shared::cluster const param param::entry", "",
        decode_isspacep);
    row(Opcode::kMapa, "shared::cluster", "u32 u64", decode_mapa, "a cluster has one CTA");
    row(Opcode::kGetctarank, "shared::cluster", "u32 u64", decode_getctarank, "a cluster has one CTA");
}

}  // namespace smt::runtime::device::simulated
