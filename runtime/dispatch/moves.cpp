#include "runtime/dispatch/moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "rewriter/device/door_text.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

namespace {

constexpr const char* kMovesHeader = R"(.version 7.8
.target sm_70
.address_size 64
)";

constexpr uint32_t kDoorAt = 64;  // in the parameters: behind seven words, at a multiple of 16

// A thread takes elements i, i + 256 and so on of its block's. An element's row is looked for only where
// there are several. Of a block that is whole and in one row all are loaded before the first is stored.
constexpr const char* kMoveBegin = R"(
.visible .entry smt_{0}_{1}(.param .u64 to, .param .u64 to_pitch, .param .u64 from, .param .u64 from_pitch,
    .param .u64 width, .param .u64 count, .param .u32 value, .param .align 16 .b8 door[{2}])
{{
  .reg .pred %p<3>;
  .reg .b32 %r<3>, %v<4>, %w<{3}>;
  .reg .b64 %i, %row, %column, %at, %source, %to, %to_pitch, %from, %from_pitch, %width, %count;
)";
constexpr const char* kMoveBody = R"(
  ld.param.u64 %to, [to];
  ld.param.u64 %to_pitch, [to_pitch];
  ld.param.u64 %from, [from];
  ld.param.u64 %from_pitch, [from_pitch];
  ld.param.u64 %width, [width];
  ld.param.u64 %count, [count];
  ld.param.u32 %v0, [value];
  mov.u32 %v1, %v0;
  mov.u32 %v2, %v0;
  mov.u32 %v3, %v0;
  mov.u32 %r0, %ctaid.x;
  mul.wide.u32 %i, %r0, {1};
  mov.u32 %r1, %tid.x;
  cvt.u64.u32 %at, %r1;
  add.u64 %i, %i, %at;
  mov.u32 %r2, 0;
  add.u64 %at, %i, {5};
  setp.ge.u64 %p0, %at, %width;
  @%p0 bra AGAIN;
  mad.lo.u64 %at, %i, {0}, %to;
  mad.lo.u64 %source, %i, {0}, %from;
{6}  bra OVER;
AGAIN:
  setp.ge.u64 %p0, %i, %count;
  @%p0 bra OVER;
  mov.u64 %row, 0;
  setp.lt.u64 %p1, %i, %width;
  @%p1 bra MOVE;
  div.u64 %row, %i, %width;
MOVE:
  mul.lo.u64 %at, %row, %width;
  sub.u64 %column, %i, %at;
  mul.lo.u64 %at, %row, %to_pitch;
  mad.lo.u64 %at, %column, {0}, %at;
  add.u64 %at, %at, %to;
  mul.lo.u64 %source, %row, %from_pitch;
  mad.lo.u64 %source, %column, {0}, %source;
  add.u64 %source, %source, %from;
  {2}
  add.u64 %i, %i, {3};
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, {4};
  @%p2 bra AGAIN;
OVER:
  ret;
}}
}}
)";

// `values`: "%v" or "%w". `first`: the number of the first of its registers.
std::string values_of(uint32_t bytes, const char* values, uint32_t first) {
    if (bytes != 16) return fmt::format("{}{}", values, first);
    return fmt::format("{{{0}{1}, {0}{2}, {0}{3}, {0}{4}}}", values, first, first + 1, first + 2, first + 3);
}

const char* type_of(uint32_t bytes) {
    return bytes == 16 ? "v4.u32" : bytes == 4 ? "u32" : bytes == 2 ? "u16" : "u8";
}

std::string access_of(uint32_t bytes, bool copies) {
    const std::string values = values_of(bytes, "%v", 0);
    const std::string load =
        copies ? fmt::format("ld.global.{} {}, [%source];\n  ", type_of(bytes), values) : "";
    return load + fmt::format("st.global.{} [%at], {};", type_of(bytes), values);
}

// Of all elements of a thread, with one address.
std::string whole_access_of(uint32_t bytes, bool copies) {
    const uint32_t registers = bytes == 16 ? 4 : 1;
    std::string loads, stores;
    for (uint32_t i = 0; i < MoveLaunch::kEach; ++i) {
        const uint32_t at = i * MoveLaunch::kThreads * bytes;
        const std::string values = copies ? values_of(bytes, "%w", registers * i) : values_of(bytes, "%v", 0);
        loads += fmt::format("  ld.global.{} {}, [%source+{}];\n", type_of(bytes), values, at);
        stores += fmt::format("  st.global.{} [%at+{}], {};\n", type_of(bytes), at, values);
    }
    return (copies ? loads : "") + stores;
}

std::string move_kernel(const char* name, uint32_t bytes, bool copies) {
    constexpr uint32_t kLast = MoveLaunch::kThreads * (MoveLaunch::kEach - 1);
    return fmt::format(kMoveBegin, name, bytes, sizeof(smt::DoorLaunch), 4 * MoveLaunch::kEach) +
           smt::door_text("door", false, false) +
           fmt::format(kMoveBody, bytes, MoveLaunch::kThreads * MoveLaunch::kEach, access_of(bytes, copies),
                       MoveLaunch::kThreads, MoveLaunch::kEach, kLast, whole_access_of(bytes, copies));
}

// The value of four bytes of a fill by smaller elements.
uint32_t repeated(uint32_t value, uint32_t bytes) {
    if (bytes == 1) return (value & 0xff) * 0x01010101u;
    return bytes == 2 ? (value & 0xffff) * 0x00010001u : value;
}

}  // namespace

std::span<void*> MoveLaunch::parameters() {
    each_ = {&to, &to_pitch, &from, &from_pitch, &width, &count, &value, &door_};
    return each_;
}

KernelCall MoveLaunch::call() const {
    KernelCall call;
    call.function = form;
    call.grid[0] = blocks;
    call.block[0] = kThreads;
    const uint64_t words[] = {to, to_pitch, from, from_pitch, width, count, value};
    static_assert(sizeof words == Moves::kBytes && sizeof words <= kDoorAt);
    call.parameters.resize(sizeof words);
    std::memcpy(call.parameters.data(), words, sizeof words);
    return call;
}

CUresult Moves::load() {
    const std::lock_guard lock(mutex_);
    if (loaded()) return CUDA_SUCCESS;
    if (failed()) return CUDA_ERROR_NOT_SUPPORTED;
    const CUresult status = load_all();
    state_.store(status == CUDA_SUCCESS ? State::kLoaded : State::kFailed, std::memory_order_release);
    return status;
}

CUresult Moves::load_all() {
    std::string text = kMovesHeader;
    for (const uint32_t bytes : kSizes)
        text += move_kernel("fill", bytes, false) + move_kernel("copy", bytes, true);
    CUmodule module = nullptr;
    SMT_TRY(driver_.cuModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr));
    const auto find = [&](const char* name, uint32_t bytes, ManagedFunction& form) {
        form.form = Form::kDoor;
        form.launch_offset = kDoorAt;
        return driver_.cuModuleGetFunction(&form.function, module,
                                           fmt::format("smt_{}_{}", name, bytes).c_str());
    };
    for (size_t i = 0; i < std::size(kSizes); ++i) {
        SMT_TRY(find("fill", kSizes[i], fills_[i]));
        SMT_TRY(find("copy", kSizes[i], copies_[i]));
    }
    return CUDA_SUCCESS;
}

CUresult Moves::give_form(uint32_t bytes, MoveLaunch* launch) {
    constexpr uint64_t kBlock = uint64_t{MoveLaunch::kThreads} * MoveLaunch::kEach;
    const uint64_t blocks = (launch->count + kBlock - 1) / kBlock;
    if (blocks == 0 || blocks > smt::kMostDoorUnits) return CUDA_ERROR_NOT_SUPPORTED;
    launch->blocks = static_cast<uint32_t>(blocks);
    for (size_t i = 0; i < std::size(kSizes); ++i)
        if (kSizes[i] == bytes) launch->form = &(launch->copies ? copies_ : fills_)[i];
    return CUDA_SUCCESS;
}

// What lies in one piece is filled by the widest elements that fit.
CUresult Moves::plan(const CUDA_MEMSET_NODE_PARAMS& node, MoveLaunch* launch) {
    const uint32_t bytes = node.elementSize;
    const uint64_t all = uint64_t{node.width} * node.height, row = uint64_t{node.width} * bytes;
    if (bytes != 1 && bytes != 2 && bytes != 4) return CUDA_ERROR_NOT_SUPPORTED;
    if (node.width != 0 && all / node.width != node.height) return CUDA_ERROR_NOT_SUPPORTED;
    uint32_t size = bytes;
    launch->to = node.dst;
    launch->to_pitch = node.pitch;
    launch->width = node.width;
    launch->count = all;
    launch->value = node.value;
    if (node.height == 1 || node.pitch == row) {
        for (const uint32_t wider : kSizes)
            if (wider >= bytes && node.dst % wider == 0 && all * bytes % wider == 0) size = wider;
        launch->width = launch->count = all * bytes / size;
        launch->value = repeated(node.value, bytes);
    }
    return give_form(size, launch);
}

CUresult Moves::plan(const CUDA_MEMCPY3D& node, const OnDevice& on_device, MoveLaunch* launch) {
    const auto device = [&](CUmemorytype type, CUdeviceptr address) {
        return type == CU_MEMORYTYPE_DEVICE || (type == CU_MEMORYTYPE_UNIFIED && on_device(address));
    };
    const bool flat =
        node.Depth == 1 && node.srcZ == 0 && node.dstZ == 0 && node.srcLOD == 0 && node.dstLOD == 0;
    if (!flat || !device(node.srcMemoryType, node.srcDevice) || !device(node.dstMemoryType, node.dstDevice))
        return CUDA_ERROR_NOT_SUPPORTED;
    const uint64_t row = node.WidthInBytes, all = row * node.Height;
    if (row != 0 && all / row != node.Height) return CUDA_ERROR_NOT_SUPPORTED;
    launch->copies = true;
    launch->from = node.srcDevice + node.srcXInBytes + node.srcY * node.srcPitch;
    launch->to = node.dstDevice + node.dstXInBytes + node.dstY * node.dstPitch;
    launch->from_pitch = node.srcPitch;
    launch->to_pitch = node.dstPitch;
    const bool whole = node.Height == 1 || (node.srcPitch == row && node.dstPitch == row);
    const uint64_t pitches = node.Height == 1 ? 0 : launch->from_pitch | launch->to_pitch;
    uint32_t size = 1;
    for (const uint32_t wider : kSizes)
        if ((launch->from | launch->to | row | pitches) % wider == 0) size = wider;
    launch->count = all / size;
    launch->width = whole ? launch->count : row / size;
    return give_form(size, launch);
}

ManagedFunction* Moves::form(uint32_t number) {
    if (number >= kForms || !loaded()) return nullptr;
    return number < std::size(kSizes) ? &fills_[number] : &copies_[number - std::size(kSizes)];
}

std::optional<uint32_t> Moves::number(const ManagedFunction& form) const {
    for (uint32_t i = 0; i < std::size(kSizes); ++i) {
        if (&form == &fills_[i]) return i;
        if (&form == &copies_[i]) return i + static_cast<uint32_t>(std::size(kSizes));
    }
    return std::nullopt;
}

std::optional<Moves::Extents> Moves::extents(uint32_t number, const std::vector<char>& parameters) {
    static_assert(kForms == 2 * std::size(kSizes));
    uint64_t words[kBytes / sizeof(uint64_t)];  // as MoveLaunch::call() writes them
    if (number >= kForms || parameters.size() != kBytes) return std::nullopt;
    std::memcpy(words, parameters.data(), sizeof words);
    const auto [to, to_pitch, from, from_pitch, width, count, value] = words;
    if (count == 0 || width == 0) return std::nullopt;
    const uint64_t size = kSizes[number % std::size(kSizes)], last_row = (count - 1) / width;
    const auto extent = [&](uint64_t address, uint64_t pitch) -> Extent {
        uint64_t row = 0, skipped = 0, bytes = 0, end = 0;
        const bool wraps = __builtin_mul_overflow(std::min(width, count), size, &row) ||
                           __builtin_mul_overflow(last_row, pitch, &skipped) ||
                           __builtin_add_overflow(skipped, row, &bytes) ||
                           __builtin_add_overflow(address, bytes, &end);
        return wraps ? Extent{} : Extent{address, bytes};
    };
    Extents all{extent(to, to_pitch), {}};
    const bool copies = number >= std::size(kSizes);
    if (copies) all.from = extent(from, from_pitch);
    if (all.to.bytes == 0 || (copies && all.from.bytes == 0)) return std::nullopt;
    return all;
}

}  // namespace smt::runtime::dispatch
