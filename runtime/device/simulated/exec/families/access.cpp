// Loads and stores. Orders and cache hints mean nothing here: instructions take effect one after
// another, so every access is as strong as sequentially consistent.
#include "runtime/device/simulated/exec/families/addressing.h"

namespace smt::runtime::device::simulated {
namespace {

using U128 = unsigned __int128;

// Lanes of T into registers of `width` bytes, extended as T is signed or not.
template <class T>
void keep_wide(const Execution& x, Slot slot, uint32_t width, const T* values) {
    const auto as = [&]<class D>(D* to) {
        D wide[kLanes];
        for (int i = 0; i < kLanes; ++i) wide[i] = static_cast<D>(values[i]);
        keep(x, to, wide);
    };
    if (width == sizeof(T)) return keep(x, x.at<T>(slot), values);
    if constexpr (sizeof(T) < 16) {
        if (width == 2) as(x.at<uint16_t>(slot));
        if (width == 4) as(x.at<uint32_t>(slot));
        if (width == 8) as(x.at<uint64_t>(slot));
        if (width == 16) as(x.at<U128>(slot));
    }
}

template <class T>
void load(Execution& x, const Instruction& in) {
    uint64_t addresses[kLanes];
    Located where;
    locate(x, in, addresses, static_cast<uint32_t>(sizeof(T)) * in.count, where);
    if (!where.ok) return;
    const uint32_t width = in.target & 0xff;
    const Slot* slots = &x.group->code->slots[in.list];
    T values[8][kLanes];
    const bool all = where.together;  // inactive lanes then have an address that may be read, too
    for (int k = 0; k < in.count; ++k) {
        const size_t at = sizeof(T) * static_cast<size_t>(k);
        if (all)
            for (int i = 0; i < kLanes; ++i)
                std::memcpy(&values[k][i], reinterpret_cast<const void*>(where.base + addresses[i] + at),
                            sizeof(T));
        else
            for_lanes(x.mask, [&](int i) { std::memcpy(&values[k][i], where.pointers[i] + at, sizeof(T)); });
    }
    for (int k = 0; k < in.count; ++k)
        if (slots[k] != kSink) keep_wide(x, slots[k], width, values[k]);
}

// A kernel's parameter at an address known from the text: the same for all threads.
template <class T>
void load_parameter(Execution& x, const Instruction& in) {
    const uint32_t bytes = static_cast<uint32_t>(sizeof(T)) * in.count;
    const std::byte* from = x.cta->parameter_at(x, std::countr_zero(x.mask), in.value, bytes);
    if (from == nullptr) return;
    const Slot* slots = &x.group->code->slots[in.list];
    for (int k = 0; k < in.count; ++k) {
        if (slots[k] == kSink) continue;
        T one;
        std::memcpy(&one, from + sizeof(T) * static_cast<size_t>(k), sizeof(T));
        T values[kLanes];
        for (T& value : values) value = one;
        keep_wide(x, slots[k], in.target & 0xff, values);
    }
}

template <class T>
void store(Execution& x, const Instruction& in) {
    uint64_t addresses[kLanes];
    Located where;
    locate(x, in, addresses, static_cast<uint32_t>(sizeof(T)) * in.count, where);
    if (!where.ok) return;
    const size_t width = in.target & 0xff;
    const Slot* slots = &x.group->code->slots[in.list];
    for (int k = 0; k < in.count; ++k) {
        const size_t at = sizeof(T) * static_cast<size_t>(k);
        const std::byte* values = x.at<std::byte>(slots[k]);
        for_lanes(x.mask, [&](int i) {
            std::memcpy(where.at(i, addresses) + at, values + width * static_cast<size_t>(i), sizeof(T));
        });
    }
}

template <class F>
Handler for_memory(Type type, F f) {
    switch (type) {
        case Type::kS8:
            return f.template operator()<int8_t>();
        case Type::kB8:
        case Type::kU8:
            return f.template operator()<uint8_t>();
        case Type::kS16:
            return f.template operator()<int16_t>();
        case Type::kS32:
            return f.template operator()<int32_t>();
        default:
            break;
    }
    switch (ptx::bits(type)) {
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

std::vector<ptx::Operand> elements_of(const ptx::Operand& operand) {
    return operand.kind == ptx::Operand::Kind::kVector ? operand.elements
                                                       : std::vector<ptx::Operand>{operand};
}

// The elements' slots, all of one width, which goes into the target.
bool list_elements(Decoder& d, const ptx::Instruction& s, const ptx::Operand& operand, Instruction& in,
                   bool write) {
    const auto elements = elements_of(operand);
    if (static_cast<int>(elements.size()) != s.vector_width()) {
        d.refuse("as many elements as the vector has belong here");
        return false;
    }
    int width = 0;
    std::vector<Slot> slots;
    for (const ptx::Operand& element : elements) {
        if (write && element.kind == ptx::Operand::Kind::kSink) {
            slots.push_back(kSink);
            continue;
        }
        int own = 0;
        slots.push_back(write ? d.write_any(element, s.types[0], &own)
                              : d.read_any(element, s.types[0], &own));
        if (width != 0 && own != width) d.refuse("elements of different widths are not supported");
        width = own;
    }
    if (width == 0) width = std::max(16, ptx::bits(s.types[0]));
    if (width < ptx::bits(s.types[0])) d.refuse("the register is narrower than what is in memory");
    in.count = static_cast<uint8_t>(slots.size());
    in.list = d.list(slots);
    in.target |= static_cast<uint32_t>(width / 8);
    return !d.failed();
}

bool small_enough(Decoder& d, const ptx::Instruction& s) {
    if (ptx::bits(s.types[0]) * s.vector_width() <= 256) return true;
    d.refuse("the vector is too long");
    return false;
}

void decode_load(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (!small_enough(d, s)) return;
    decode_address(d, s, s.operands[1], in);
    if (d.failed() || !list_elements(d, s, s.operands[0], in, true)) return;
    if (in.space == Space::kParameter && (in.target & kNoBase) != 0)
        in.run = for_memory(s.types[0], []<class T>() -> Handler { return load_parameter<T>; });
    else
        in.run = for_memory(s.types[0], []<class T>() -> Handler { return load<T>; });
}

void decode_store(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (!small_enough(d, s)) return;
    decode_address(d, s, s.operands[0], in);
    if (d.failed()) return;
    if (in.space == Space::kConstant) return d.refuse("constant memory cannot be written");
    if (in.space == Space::kParameter) return d.refuse("a kernel's parameters cannot be written");
    if (!list_elements(d, s, s.operands[1], in, false)) return;
    in.store = true;
    in.run = for_memory(s.types[0], []<class T>() -> Handler { return store<T>; });
}

// Hints: nothing is fetched, and no address is looked at.
void decode_hint(Decoder&, const ptx::Instruction&, Instruction& in) {
    in.unit = Unit::kNone;
    in.run = [](Execution&, const Instruction&) {};
}

// A cache policy is an opaque value.
void decode_policy(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.d = d.write(s.operands[0], Type::kB64);
    in.run = lanewise<uint64_t>([]() { return uint64_t{0}; });
}

}  // namespace

void add_access(std::vector<Row>& rows) {
    const char* family = "Loads and stores";
    const auto row = [&](Opcode opcode, const char* allowed, const char* first, auto decode,
                         const char* note = "") {
        rows.push_back(
            {family, opcode, {}, modifiers(allowed), types(first), {}, Unit::kMemory, decode, note});
    };
    const char* all = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64";
    row(Opcode::kLd,
        "weak volatile relaxed acquire mmio ca cg cs lu cv nc v2 v4 v8 cta cluster gpu sys const global "
        "local param param::entry "
        "param::func shared shared::cta shared::cluster L1::evict_normal L1::evict_unchanged L1::evict_first "
        "L1::evict_last "
        "L1::no_allocate L2::cache_hint L2::64B L2::128B L2::256B L2::evict_normal L2::evict_first "
        "L2::evict_last",
        all, decode_load, "every access is sequentially consistent; hints mean nothing");
    row(Opcode::kLdu, "global v2 v4", all, decode_load);
    row(Opcode::kSt,
        "weak volatile relaxed release mmio wb cg cs wt v2 v4 v8 cta cluster gpu sys global local param "
        "param::func shared shared::cta "
        "shared::cluster L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate "
        "L2::cache_hint "
        "L2::evict_normal L2::evict_first L2::evict_last",
        all, decode_store);
    row(Opcode::kPrefetch, "global local L1 L2 L2::evict_last L2::evict_normal", "", decode_hint,
        "does nothing");
    row(Opcode::kPrefetchu, "L1", "", decode_hint, "does nothing");
    row(Opcode::kApplypriority, "global L2::evict_normal", "", decode_hint, "does nothing");
    row(Opcode::kDiscard, "global L2", "", decode_hint, "does nothing");
    row(Opcode::kCreatepolicy,
        "fractional range cvt L2 global L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged",
        "b64", decode_policy, "gives 0, which nothing looks at");
}

}  // namespace smt::runtime::device::simulated
