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

// `error`, or what is wrong with the address if that is 0, becomes the block's if there is none yet; then
// this thread writes the record, and the word that the program looks at. In any case it ends.
constexpr const char* kEnd = R"(
.func smt_fence_end(.param .b32 error, .param .b64 address, .param .b32 what, .param .b32 x, .param .b32 y,
                    .param .b32 z)
.noreturn
{{
    .reg .b64 block, record, image, at;
    .reg .b32 error_is, before, word, tx, ty, tz;
    .reg .pred late;
    ld.const.u64 block, [smt_fence];
    ld.param.b64 at, [address];
    ld.param.b32 word, [what];
    ld.param.b32 error_is, [error];
    setp.ne.s32 late, error_is, 0;
    @late bra known;
    and.b32 before, word, 255;
    sub.s32 before, before, 1;
    cvt.u32.u64 tx, at;
    and.b32 before, before, tx;
    setp.eq.s32 late, before, 0;
    selp.b32 error_is, {illegal}, {misaligned}, late;
known:
    atom.global.cas.b32 before, [block+{error}], 0, error_is;
    setp.ne.s32 late, before, 0;
    @late bra leave;
    ld.global.u64 record, [block+{record}];
    st.volatile.global.u64 [record+{record_address}], at;
    ld.const.u64 image, [smt_fence+{image}];
    st.volatile.global.u64 [record+{record_image}], image;
    st.volatile.global.u32 [record+{record_error}], error_is;
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
.noreturn
{{
    exit;
}}
)";

// Where the block's shared memory ends, in `end`: %total_smem_size is rounded up as the hardware gives it,
// and begins at the end of what the system may reserve (0x400 on an H100), of which it uses less (0x120).
std::string shared_end(const char* end, int architecture) {
    if (architecture < kFirstWithReserved) return fmt::format("mov.u32 {}, %total_smem_size;", end);
    return fmt::format(
        "{{ .reg .b32 {0}_system; mov.u32 {0}_system, %reserved_smem_offset_cap; "
        "mov.u32 {0}, %total_smem_size; add.s32 {0}, {0}, {0}_system; }}",
        end);
}

std::string functions() {
    using fmt::arg;
    return fmt::format(
        kEnd, arg("illegal", kIllegalAddress), arg("misaligned", kMisaligned),
        arg("error", offsetof(FenceBlock, error)), arg("record", offsetof(FenceBlock, record)),
        arg("told", offsetof(FenceBlock, told)), arg("image", offsetof(FenceConstant, image)),
        arg("record_address", offsetof(FenceRecord, address)),
        arg("record_image", offsetof(FenceRecord, image)), arg("record_error", offsetof(FenceRecord, error)),
        arg("record_what", offsetof(FenceRecord, what)), arg("record_block", offsetof(FenceRecord, block)),
        arg("record_thread", offsetof(FenceRecord, thread)));
}

std::string header(int architecture) {
    return fmt::format(".version {}.{}\n.target sm_{}\n.address_size 64\n.const .align 8 .b64 {}[{}];\n",
                       kMajor, kMinor, architecture, kFenceConstant, sizeof(FenceConstant) / 8);
}

// What bodies name, so that they can be parsed by themselves.
constexpr const char* kDeclared = R"(
.func smt_fence_end(.param .b32 e, .param .b64 a, .param .b32 w, .param .b32 x, .param .b32 y, .param .b32 z);
.func smt_fence_leave();
)";

}  // namespace

std::vector<Declaration> declarations(int architecture) {
    auto module = parse(header(architecture) + functions());
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

std::string look_further(const Further& of) {
    const char* const elsewhere = of.generic ? "elsewhere" : "wrong";
    // Whether the granule at the offset %fence_in in the window is open.
    const std::string granule = fmt::format(R"(shr.u64 %fence_in, %fence_in, {};
add.s64 %fence_in, %fence_in, %fence_block;
ld.volatile.global.u8 %fence_open, [%fence_in+{}];
setp.eq.s32 %fence_not_well, %fence_open, 0;
@%fence_not_well bra wrong;
)",
                                            kFenceGranuleShift, sizeof(FenceBlock));
    std::string text = fmt::format(R"(.reg .b64 %fence_block, %fence_window, %fence_end;
.reg .b32 %fence_open;
and.b64 %fence_in, %fence_at, {};
setp.ne.s64 %fence_not_well, %fence_in, 0;
@%fence_not_well bra wrong;
ld.const.u64 %fence_block, [smt_fence];
ld.global.v2.u64 {{%fence_window, %fence_end}}, [%fence_block+{}];
sub.s64 %fence_in, %fence_at, %fence_window;
setp.ge.u64 %fence_not_well, %fence_in, %fence_end;
@%fence_not_well bra {};
)",
                                   of.bytes - 1, offsetof(FenceBlock, window), elsewhere);
    if (of.spread != 0)
        text += fmt::format(R"(add.s64 %fence_window, %fence_in, {};
setp.ge.u64 %fence_not_well, %fence_window, %fence_end;
@%fence_not_well bra wrong;
)",
                            of.spread);
    text += granule;
    if (of.spread != 0) text += "mov.u64 %fence_in, %fence_window;\n" + granule;
    text += "bra goes_on;\n";
    if (!of.generic) return text;
    constexpr const char* kReadOnly = R"(isspacep.const %fence_not_well, %fence_at;
@%fence_not_well bra goes_on;
isspacep.param %fence_not_well, %fence_at;
@%fence_not_well bra goes_on;
)";
    return text + fmt::format(R"(elsewhere:
isspacep.local %fence_not_well, %fence_at;
@%fence_not_well bra goes_on;
{}isspacep.shared %fence_not_well, %fence_at;
@!%fence_not_well bra wrong;
add.s64 %fence_in, %fence_at, {};
cvta.to.shared.u64 %fence_in, %fence_in;
cvt.u32.u64 %fence_open, %fence_in;
setp.lt.u32 %fence_not_well, %fence_open, {};
@%fence_not_well bra goes_on;
)",
                              of.reads ? kReadOnly : "", of.spread, kShared);
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
