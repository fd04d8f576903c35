// Bytes between smtd and its compile worker, and in the cache.
//
//   worker -> smtd   Head{kReady},  ready  := string nvrtc, string problem, string lacking
//   smtd -> worker   Head{kOrder},  order  := u32 form, string architecture, u32 language, u64 count,
//                                             { string kernel, u32 registers }, string ptx, string directory,
//                                             string proves, array image, list variables, u64 count, { input
//                                             }, source
//   worker -> smtd   Head{kResult}, result := array image, u64 count, { kernel }, string reason, string log,
//                                             u32 language, u32 lasting, u32 refuted, u32 shared, u32 trouble
//
// An image is opened in memory that both have (shared.h): the image stands at its beginning, what is unpacked
// behind.
//
//   smtd -> worker   Head{kOpen},   open   := u64 bytes, u32 architecture, u32 cubins, u32 ptx, u32 target,
//   u32 text only,
//                                             u64 PTX bytes, u32 prints, u32 links
//   worker -> smtd   Head{kOpened}, opened := string problem, u32 code, u64 at, u64 bytes, u32 is unpacked,
//   u32 architecture,
//                                             u32 variant, u32 all print, string why, list kernels, u64
//                                             variable bytes, managed, string code, array PTX, { u64 count, {
//                                             string kernel, u32 registers } }, string reason
//   managed := u64 bytes, u64 count, { string name, u64 offset, u64 bytes }, array initials, array fixups,
//              u64 count, { u64 size at, u64 at, u64 entry bytes, array dropped }
//
//   input  := u32 type, u32 packed, u64 bytes, string name, array data
//   kernel := string name, string symbol, string managed, string reason, u32 reuse
//   source := string name, string text, list headers (name, text, name, text ...), list options,
//             list name_expressions
//   list   := u64 count, { string }
//
// In the index only:
//
//   indexed := u64 count, { source, list codes }, list variables
//
// Scalars, strings and arrays are those of runtime/protocol/codec.h. A reader trusts nothing: sizes are
// checked against what is there, and the bytes of a Head against kMostBytes before anything is allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/jit/opened.h"
#include "runtime/jit/source.h"
#include "runtime/protocol/codec.h"

namespace smt::runtime::jit {

enum class Message : uint32_t { kReady = 1, kOrder = 2, kResult = 3, kOpen = 4, kOpened = 5 };

struct Head {
    uint64_t magic = kMagic;
    Message message = Message::kReady;
    uint32_t reserved = 0;
    uint64_t bytes = 0;                                   // that follow
    static constexpr uint64_t kMagic = 0x31544a2d544d53;  // "SMT-JT1"
};
static_assert(sizeof(Head) == 24);

inline constexpr uint64_t kMostBytes = 256ull << 20;
inline constexpr uint64_t kMostItems = 1u << 16;  // of any list

struct Ready {
    std::string nvrtc;    // its version, "13.0"
    std::string problem;  // why nothing can be compiled
    std::string lacking;  // of what confines the worker, in words; empty: nothing
};

std::string encode(const Ready& ready);
std::string encode(const Order& order);
std::string encode(const Result& result);
std::optional<Ready> decode_ready(std::string_view bytes);
std::optional<Order> decode_order(std::string_view bytes);
std::optional<Result> decode_result(std::string_view bytes);
std::string encode(const Indexed& indexed);
std::optional<Indexed> decode_indexed(std::string_view bytes);

// Of an image of so many bytes.
struct ImageOrder {
    OpenOrder asked;
    uint64_t bytes = 0;
};
std::string encode(const ImageOrder& asked);
std::string encode(const Opened& opened);  // without what is unpacked, which stands in the shared memory
std::optional<ImageOrder> decode_image_order(std::string_view bytes);
// `image_bytes`: what was opened. Nothing also where the answer leads out of the image or out of what is
// unpacked.
std::optional<Opened> decode_opened(std::string_view bytes, uint64_t image_bytes, bool* is_unpacked);

// A source inside another message; reader.good() tells whether it was one.
Source read_source(protocol::Reader& reader);
std::string read_string(protocol::Reader& reader);
std::vector<std::string> read_list(protocol::Reader& reader);

// One whole message, on a blocking descriptor. False: the other end is gone.
bool write_message(int descriptor, Message message, std::string_view bytes);
std::optional<std::string> read_message(int descriptor, Message expected);

}  // namespace smt::runtime::jit
