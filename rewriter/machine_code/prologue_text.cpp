// door.h says what the words mean. The first thread decides for its CTA and the barrier tells the others. A
// launch that is not to be stopped has no orders: one comparison and a branch.
#include "rewriter/machine_code/prologue_text.h"

#include <fmt/format.h>

#include "rewriter/machine_code/door.h"

namespace smt::machine_code {

namespace {

constexpr int kFirstWithClusters = 90;

constexpr const char* kBegin = R"(
{
  .reg .pred none, refused, first, resumed, clustered, done;
  .reg .b32 x, y, z, n, cta, stopped, run, first_run, before, mine, word, found, mark;
  .reg .b64 orders, map, place;
  ld.param.u64 orders, [door_launch];
  setp.eq.u64 none, orders, 0;
  @none bra KERNEL;
  mov.u32 x, %tid.x;
  mov.u32 y, %tid.y;
  mov.u32 z, %tid.z;
  or.b32 x, x, y;
  or.b32 x, x, z;
  setp.eq.u32 first, x, 0;
  mov.u32 before, 0;
  setp.ne.u32 refused, x, x;
  @!first bra AGREE;
  ld.relaxed.gpu.global.u32 stopped, [orders];
  ld.param.u64 map, [door_launch+8];
  ld.param.u32 run, [door_launch+16];
  ld.param.u32 first_run, [door_launch+20];
)";

// The place is that of the cluster's first CTA: this one's index less where it is in the cluster, which
// follows from its rank. A cluster's word is decided once a run: by the first of its CTAs to come. `found` is
// followed if it is of this run; if it says admitted in an earlier one of this launch, the CTA has run; else
// the word is this CTA's to write, and if another was faster that one is followed.
constexpr const char* kClusters = R"(
  mov.u32 n, %cluster_nctarank;
  setp.gt.u32 clustered, n, 1;
  @!clustered bra SINGLE;
  mov.u32 x, %cluster_ctarank;
  mov.u32 n, %cluster_nctaid.x;
  mov.u32 y, 0;
ROW:
  setp.lt.u32 done, x, n;
  @done bra ROWS;
  sub.u32 x, x, n;
  add.u32 y, y, 1;
  bra ROW;
ROWS:
  mov.u32 n, %cluster_nctaid.y;
  mov.u32 z, 0;
LAYER:
  setp.lt.u32 done, y, n;
  @done bra LAYERS;
  sub.u32 y, y, n;
  add.u32 z, z, 1;
  bra LAYER;
LAYERS:
  mov.u32 n, %ctaid.z;
  sub.u32 cta, n, z;
  mov.u32 n, %ctaid.y;
  sub.u32 y, n, y;
  mov.u32 n, %nctaid.y;
  mad.lo.u32 cta, cta, n, y;
  mov.u32 n, %ctaid.x;
  sub.u32 x, n, x;
  mov.u32 n, %nctaid.x;
  mad.lo.u32 cta, cta, n, x;
  mul.wide.u32 place, cta, 4;
  add.u64 place, place, map;
  setp.ge.u32 refused, stopped, run;
  shl.b32 run, run, 1;
  shl.b32 first_run, first_run, 1;
  selp.u32 mine, 1, 0, refused;
  or.b32 mine, mine, run;
  ld.relaxed.gpu.global.u32 found, [place];
DECIDE:
  xor.b32 word, found, run;
  setp.lt.u32 done, word, 2;
  @done bra FOLLOW;
  and.b32 word, found, 1;
  setp.ge.u32 done, found, first_run;
  setp.eq.and.u32 done, word, 0, done;
  @done bra EARLIER;
  atom.relaxed.gpu.global.cas.b32 word, [place], found, mine;
  setp.eq.u32 done, word, found;
  mov.u32 found, word;
  @!done bra DECIDE;
  mov.u32 found, mine;
FOLLOW:
  and.b32 found, found, 1;
  setp.ne.u32 refused, found, 0;
  bra AGREE;
EARLIER:
  mov.u32 before, 1;
  setp.eq.u32 refused, x, x;
  bra AGREE;
)";

constexpr const char* kEnd = R"(
SINGLE:
  mov.u32 cta, %ctaid.z;
  mov.u32 n, %nctaid.y;
  mov.u32 y, %ctaid.y;
  mad.lo.u32 cta, cta, n, y;
  mov.u32 n, %nctaid.x;
  mov.u32 x, %ctaid.x;
  mad.lo.u32 cta, cta, n, x;
  cvt.u64.u32 place, cta;
  add.u64 place, place, map;
  ld.param.u32 mark, [door_launch+28];
  mov.u32 word, 0;
  setp.gt.u32 resumed, run, first_run;
  @resumed ld.relaxed.gpu.global.u8 word, [place];
  setp.eq.u32 done, word, mark;
  selp.u32 before, 1, 0, done;
  setp.ge.u32 refused, stopped, run;
  selp.u32 mine, 1, 0, refused;
  or.b32 mine, mine, before;
  setp.ne.u32 refused, mine, 0;
  @!refused st.relaxed.gpu.global.u8 [place], mark;
AGREE:
  barrier.cta.red.or.aligned.pred refused, 0, refused;
  @!refused bra KERNEL;
  setp.eq.and.u32 first, before, 0, first;
  ld.param.u32 n, [door_launch+24];
  cvt.u64.u32 place, n;
  add.u64 place, place, orders;
  @first red.relaxed.gpu.global.add.u32 [place], 1;
  exit;
KERNEL:
  trap;
}
)";

// The oldest PTX that knows the architecture.
const char* version_for(int architecture) {
    return architecture < 90 ? "7.8" : architecture < 100 ? "8.0" : "9.0";
}

}  // namespace

std::string prologue_text(int architecture, uint32_t parameter) {
    const std::string before = parameter ? fmt::format(".param .align 16 .b8 others[{}], ", parameter) : "";
    return fmt::format(
               ".version {}\n.target sm_{}\n.address_size 64\n.visible .entry door({}.param .align 16 .b8 "
               "door_launch[{}])",
               version_for(architecture), architecture, before, sizeof(DoorLaunch)) +
           kBegin + (architecture >= kFirstWithClusters ? kClusters : "") + kEnd;
}

}  // namespace smt::machine_code
