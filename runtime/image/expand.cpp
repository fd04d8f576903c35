#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "runtime/image/image.h"

namespace smt::image {

namespace {

constexpr uint64_t kPiece = 1 << 20;
constexpr uint64_t kMostLz4Ratio = 255;  // more than the format can do

using Expanded = std::variant<std::string, Problem>;

Expanded expand_lz4(const Entry& entry) {
    if (entry.bytes / kMostLz4Ratio > entry.stored.size())
        return Problem{fmt::format("{} LZ4 bytes cannot become {}", entry.stored.size(), entry.bytes)};
    std::string bytes(entry.bytes, '\0');
    int count = LZ4_decompress_safe(entry.stored.data(), bytes.data(), static_cast<int>(entry.stored.size()),
                                    static_cast<int>(bytes.size()));
    if (count < 0) return Problem{"the entry's LZ4 data is broken"};
    if (static_cast<uint64_t>(count) != entry.bytes)
        return Problem{fmt::format("the entry has {} bytes, not {}", count, entry.bytes)};
    return bytes;
}

// In pieces, so that memory is taken for what there is and not for what the header says there is.
Expanded expand_zstd(const Entry& entry) {
    std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
    ZSTD_inBuffer in{entry.stored.data(), entry.stored.size(), 0};
    std::string bytes;
    size_t left = 1;  // bytes that the next call wants; 0: the frame is complete
    while (left != 0) {
        size_t used = bytes.size();
        bytes.resize(std::min(entry.bytes + 1, used + kPiece));  // one more shows that there is too much
        if (bytes.size() == used)
            return Problem{fmt::format("the entry has more than {} bytes", entry.bytes)};
        ZSTD_outBuffer out{bytes.data() + used, bytes.size() - used, 0};
        size_t before = in.pos;
        left = ZSTD_decompressStream(context.get(), &out, &in);
        if (ZSTD_isError(left))
            return Problem{fmt::format("the entry's Zstandard data is broken: {}", ZSTD_getErrorName(left))};
        bytes.resize(used + out.pos);
        if (left != 0 && in.pos == before && out.pos == 0)
            return Problem{"the entry's Zstandard data is cut"};
    }
    if (bytes.size() != entry.bytes)
        return Problem{fmt::format("the entry has {} bytes, not {}", bytes.size(), entry.bytes)};
    return bytes;
}

}  // namespace

Expanded expand(const Entry& entry) {
    if (entry.bytes > kMostBytes || entry.stored.size() > kMostBytes)
        return Problem{fmt::format("an entry of {} bytes: more than {} is taken for a mistake", entry.bytes,
                                   kMostBytes)};
    Expanded expanded = entry.compression == Compression::kNone  ? std::string(entry.stored)
                        : entry.compression == Compression::kLz4 ? expand_lz4(entry)
                                                                 : expand_zstd(entry);
    if (auto* bytes = std::get_if<std::string>(&expanded); bytes && entry.kind == Kind::kPtx)
        bytes->resize(bytes->find_last_not_of('\0') + 1);
    return expanded;
}

}  // namespace smt::image
