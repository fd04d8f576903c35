#include "rewriter/ptx/fence/snippets.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>
#include <variant>

#include "rewriter/device/fence.h"
#include "rewriter/ptx/parser.h"

namespace smt::ptx::fence {

namespace {

constexpr uint32_t kIllegalAddress = 700, kMisaligned = 716;  // CUresult

// `error` becomes the block's if there is none yet; then this thread writes the record, and the word that the
// program looks at. In any case it ends.
constexpr const char* kEnd = R"(
.func smt_fence_end(.param .b32 error, .param .b64 address, .param .b32 what, .param .b32 x, .param .b32 y,
                    .param .b32 z)
{{
    .reg .b64 block, record, image, at;
    .reg .b32 error_is, before, word, tx, ty, tz;
    .reg .pred late;
    ld.const.u64 block, [smt_fence];
    ld.param.b32 error_is, [error];
    atom.global.cas.b32 before, [block+{error}], 0, error_is;
    setp.ne.s32 late, before, 0;
    @late bra leave;
    ld.global.u64 record, [block+{record}];
    ld.param.b64 at, [address];
    st.volatile.global.u64 [record+{record_address}], at;
    ld.const.u64 image, [smt_fence+{image}];
    st.volatile.global.u64 [record+{record_image}], image;
    st.volatile.global.u32 [record+{record_error}], error_is;
    ld.param.b32 word, [what];
    st.volatile.global.u32 [record+{record_what}], word;
    ld.param.b32 word, [x];
    st.volatile.global.u32 [record+{record_block}], word;
    ld.param.b32 word, [y];
    st.volatile.global.u32 [record+{record_block}+4], word;
    ld.param.b32 word, [z];
    st.volatile.global.u32 [record+{record_block}+8], word;
    mov.u32 tx, %tid.x;
    mov.u32 ty, %tid.y;
    mov.u32 tz, %tid.z;
    st.volatile.global.u32 [record+{record_thread}], tx;
    st.volatile.global.u32 [record+{record_thread}+4], ty;
    st.volatile.global.u32 [record+{record_thread}+8], tz;
    ld.global.u64 record, [block+{told}];
    membar.sys;
    st.volatile.global.u32 [record], error_is;
    membar.sys;
leave:
    exit;
}}
.func smt_fence_leave()
{{
    exit;
}}
)";

// `more`: how far the last of several accesses is behind the first. It is less than a granule.
constexpr const char* kLook = R"(
.func smt_fence_look(.param .b64 address, .param .b32 more, .param .b32 what, .param .b32 x, .param .b32 y,
                     .param .b32 z)
{{
    .reg .b64 block, at, last, window, bytes, first, table, mask;
    .reg .b32 further, word, space, state, error, bx, by, bz, offset, use;
    .reg .b32 end;
    .reg .pred bad;
    ld.const.u64 block, [smt_fence];
    ld.param.b64 at, [address];
    ld.param.b32 further, [more];
    ld.param.b32 word, [what];
    cvt.u64.u32 last, further;
    add.s64 last, at, last;
    mov.u32 error, {misaligned};
    and.b32 space, word, 255;
    sub.s32 space, space, 1;
    cvt.u64.u32 mask, space;
    and.b64 mask, at, mask;
    setp.ne.s64 bad, mask, 0;
    @bad bra fault;
    mov.u32 error, {illegal};
    bfe.u32 space, word, 8, 2;
    setp.eq.s32 bad, space, {shared};
    @bad bra fault;
    ld.global.u64 window, [block+{window}];
    ld.global.u64 bytes, [block+{window_bytes}];
    add.s64 table, block, {table};
    sub.s64 first, at, window;
    setp.ge.u64 bad, first, bytes;
    @bad bra elsewhere;
    shr.u64 first, first, {granule};
    add.s64 first, table, first;
    ld.volatile.global.u8 state, [first];
    setp.eq.s32 bad, state, 0;
    @bad bra fault;
    sub.s64 last, last, window;
    setp.ge.u64 bad, last, bytes;
    @bad bra fault;
    shr.u64 last, last, {granule};
    add.s64 last, table, last;
    ld.volatile.global.u8 state, [last];
    setp.eq.s32 bad, state, 0;
    @bad bra fault;
    ret;
elsewhere:
    setp.ne.s32 bad, space, {generic};
    @bad bra fault;
    isspacep.local bad, at;
    @bad bra well;
    isspacep.shared bad, at;
    @bad bra in_shared;
    bfe.u32 use, word, 10, 2;
    setp.ne.s32 bad, use, {load};
    @bad bra fault;
    isspacep.const bad, at;
    @bad bra well;
    isspacep.param bad, at;
    @bad bra well;
fault:
    ld.param.b32 bx, [x];
    ld.param.b32 by, [y];
    ld.param.b32 bz, [z];
    call smt_fence_end, (error, at, word, bx, by, bz);
    ret;
in_shared:
    cvta.to.shared.u64 last, last;
    cvt.u32.u64 offset, last;
    {shared_end}
    setp.ge.u32 bad, offset, end;
    @bad bra fault;
well:
    ret;
}}
)";

// Where the block's shared memory ends, in `end`; an assembler rounds nothing away that a kernel may use.
std::string shared_end(const char* end, int architecture) {
    if (architecture < kFirstWithReserved) return fmt::format("mov.u32 {}, %total_smem_size;", end);
    return fmt::format(
        "{{ .reg .b32 {0}_system; mov.u32 {0}_system, %reserved_smem_offset_end; "
        "mov.u32 {0}, %total_smem_size; add.s32 {0}, {0}, {0}_system; }}",
        end);
}

std::string functions(int architecture) {
    using fmt::arg;
    std::string text = fmt::format(
        kEnd, arg("error", offsetof(FenceBlock, error)), arg("record", offsetof(FenceBlock, record)),
        arg("told", offsetof(FenceBlock, told)), arg("image", offsetof(FenceConstant, image)),
        arg("record_address", offsetof(FenceRecord, address)),
        arg("record_image", offsetof(FenceRecord, image)), arg("record_error", offsetof(FenceRecord, error)),
        arg("record_what", offsetof(FenceRecord, what)), arg("record_block", offsetof(FenceRecord, block)),
        arg("record_thread", offsetof(FenceRecord, thread)));
    return text + fmt::format(kLook, arg("misaligned", kMisaligned), arg("illegal", kIllegalAddress),
                              arg("window", offsetof(FenceBlock, window)),
                              arg("window_bytes", offsetof(FenceBlock, window_bytes)),
                              arg("table", sizeof(FenceBlock)), arg("granule", kFenceGranuleShift),
                              arg("shared", static_cast<uint32_t>(FenceSpace::kShared)),
                              arg("generic", static_cast<uint32_t>(FenceSpace::kGeneric)),
                              arg("load", static_cast<uint32_t>(FenceUse::kLoad)),
                              arg("shared_end", shared_end("end", architecture)));
}

std::string header(int architecture) {
    return fmt::format(".version {}.{}\n.target sm_{}\n.address_size 64\n.const .align 8 .b64 {}[{}];\n",
                       kMajor, kMinor, architecture, kFenceConstant, sizeof(FenceConstant) / 8);
}

// What bodies name, so that they can be parsed by themselves.
constexpr const char* kDeclared = R"(
.func smt_fence_end(.param .b32 e, .param .b64 a, .param .b32 w, .param .b32 x, .param .b32 y, .param .b32 z);
.func smt_fence_look(.param .b64 a, .param .b32 m, .param .b32 w, .param .b32 x, .param .b32 y,
                     .param .b32 z);
.func smt_fence_leave();
)";

}  // namespace

std::vector<Declaration> declarations(int architecture) {
    auto module = parse(header(architecture) + functions(architecture));
    return std::move(std::get<Module>(module).declarations);
}

std::vector<Statement> statements(const std::string& text, const std::vector<std::string>& declared) {
    std::string all = header(kFirstArchitecture) + kDeclared + ".entry k()\n{\n";
    for (const std::string& each : declared) all += fmt::format(".reg .b64 {};\n", each);
    auto parsed = parse(all + text + "}\n");
    auto& kernel = std::get<Function>(std::get<Module>(parsed).declarations.back());
    std::vector<Statement>& found = kernel.body->statements;
    return {std::make_move_iterator(found.begin() + static_cast<std::ptrdiff_t>(declared.size())),
            std::make_move_iterator(found.end())};
}

std::string leave_if_over() {
    return fmt::format(R"({{
    .reg .b64 %fence_block;
    .reg .b32 %fence_error;
    .reg .pred %fence_well;
    ld.const.u64 %fence_block, [smt_fence];
    ld.volatile.global.u32 %fence_error, [%fence_block+{}];
    setp.eq.s32 %fence_well, %fence_error, 0;
    @%fence_well bra goes_on;
    call smt_fence_leave;
goes_on:
}}
)",
                       offsetof(FenceBlock, error));
}

std::vector<Statement> beginning(const Beginning& of) {
    std::string text;
    if (of.kernel) text += leave_if_over();
    if (of.global)
        text += fmt::format(R"(.reg .b64 {0}, {1};
{{
    .reg .b64 %fence_block;
    ld.const.u64 %fence_block, [smt_fence];
    ld.global.v2.u64 {{{0}, {1}}}, [%fence_block+{2}];
}}
)",
                            kRun, kBytes, offsetof(FenceBlock, run));
    if (of.shared) text += fmt::format(".reg .b32 {};\n{}\n", kShared, shared_end(kShared, of.architecture));
    return statements(text, {});
}

}  // namespace smt::ptx::fence
