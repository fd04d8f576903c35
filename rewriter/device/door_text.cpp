// door.h says what the words mean. The first load may get an old frontier from the multiprocessor's cache.
// That is no more than what is admitted, since a frontier never goes back, and it saves most CTAs the way to
// the second-level cache. A CTA that it does not admit asks again, but for early ones, for which the atomic
// operation is soon enough, and so it is for later ones of an exact run, of which no step begins with them.
//
// A final frontier in the cache is final. A CTA that meets one elsewhere has the cache forget (an acquiring
// load does that), so that those behind it on the multiprocessor leave without a way to the second-level
// cache, where all of them would read one word.
//
// The first thread decides for its CTA and the barrier tells the others. All CTAs of a cluster decide alike,
// since they have one index.
//
// A kernel may begin before the one in front of it is over. So the next run is begun only if its frontier is
// untouched, and a unit that moves a frontier looks whether the run was begun meanwhile.
#include "rewriter/device/door_text.h"

#include <cstddef>

#include "rewriter/device/door.h"

namespace smt {

namespace {

// In the texts, where the parameter's name belongs.
constexpr std::string_view kPlaceholder = "PARAMETER";

constexpr const char* kBegin = R"(
{
  .reg .pred none, refused, first, clustered, early, last, asks, exact, beyond, done;
  .reg .b32 x, y, z, n, unit, place, stopped, run, word, limit, shift;
  .reg .b64 stop, frontier;
  ld.param.u64 stop, [PARAMETER];
)";

// A launch that is not to be stopped costs one comparison and a branch.
constexpr const char* kTest = R"(
  setp.eq.u64 none, stop, 0;
  @none bra KERNEL;
)";

constexpr const char* kFirst = R"(
  mov.u32 x, %tid.x;
  mov.u32 y, %tid.y;
  mov.u32 z, %tid.z;
  or.b32 x, x, y;
  or.b32 x, x, z;
  setp.eq.u32 first, x, 0;
  setp.ne.u32 refused, x, x;
  @!first bra AGREE;
  ld.param.u64 frontier, [PARAMETER+8];
  ld.global.u32 word, [frontier];
)";

constexpr const char* kClusters = R"(
  mov.u32 n, %cluster_nctarank;
  setp.gt.u32 clustered, n, 1;
  @!clustered bra SINGLE;
  mov.u32 unit, %clusterid.z;
  mov.u32 n, %nclusterid.y;
  mov.u32 y, %clusterid.y;
  mad.lo.u32 unit, unit, n, y;
  mov.u32 n, %nclusterid.x;
  mov.u32 x, %clusterid.x;
  mad.lo.u32 unit, unit, n, x;
  bra DECIDE;
)";

constexpr const char* kEnd = R"(
SINGLE:
  mov.u32 unit, %ctaid.z;
  mov.u32 n, %nctaid.y;
  mov.u32 y, %ctaid.y;
  mad.lo.u32 unit, unit, n, y;
  mov.u32 n, %nctaid.x;
  mov.u32 x, %ctaid.x;
  mad.lo.u32 unit, unit, n, x;
DECIDE:
  ld.param.u32 place, [PARAMETER+20];
  setp.lt.u32 refused, unit, place;
  ld.param.u32 n, [PARAMETER+24];
  setp.ge.or.u32 refused, unit, n, refused;
  @refused bra AGREE;
  sub.u32 place, unit, place;
  sub.u32 n, n, 1;
  setp.eq.u32 last, unit, n;
  ld.param.u16 n, [PARAMETER+30];
  setp.lt.u32 early, place, n;
  or.pred asks, early, last;
  ld.param.u8 n, [PARAMETER+29];
  setp.gt.u32 exact, n, 1;
  or.pred asks, asks, exact;
  @asks ld.relaxed.gpu.global.u32 stopped, [stop];
  and.b32 n, word, 0x40000000;
  setp.ne.and.u32 done, n, 0, early;
  @done bra ADMITTED;
  ld.param.u8 shift, [PARAMETER+28];
  not.pred done, early;
  and.pred exact, exact, done;
  @exact mov.u32 shift, 31;
  shr.u32 x, unit, shift;
  shl.b32 y, x, shift;
  and.b32 limit, word, 0x3fffffff;
  setp.ge.u32 beyond, unit, limit;
  setp.lt.s32 done, word, 0;
  @done bra FINAL;
  setp.eq.or.u32 done, y, unit, beyond;
  @!done bra ADMITTED;
  or.pred done, early, exact;
  @done bra ASK;
  ld.relaxed.gpu.global.u32 stopped, [stop];
  ld.relaxed.gpu.global.u32 word, [frontier];
  and.b32 limit, word, 0x3fffffff;
  setp.ge.u32 beyond, unit, limit;
  setp.eq.or.u32 done, y, unit, beyond;
  @!done bra ADMITTED;
ASK:
  setp.lt.s32 done, word, 0;
  @done bra NEWS;
  ld.param.u32 run, [PARAMETER+16];
  setp.ge.u32 done, stopped, run;
  @done bra STOP;
  add.u32 x, x, 2;
  shl.b32 x, x, shift;
  ld.param.u8 n, [PARAMETER+29];
  shr.u32 n, n, 2;
  or.b32 n, n, unit;
  @exact add.u32 x, n, 1;
  and.b32 n, word, 0x40000000;
RAISE:
  or.b32 x, x, n;
  atom.relaxed.gpu.global.max.u32 word, [frontier], x;
  setp.lt.s32 done, word, 0;
  @done bra NEWS;
  and.b32 y, word, 0x40000000;
  setp.eq.u32 done, y, n;
  mov.u32 n, y;
  @!done bra RAISE;
  bra ADMITTED;
FINAL:
  @!beyond bra ADMITTED;
  bra JUDGE;
STOP:
  @!beyond bra ADMITTED;
  atom.relaxed.gpu.global.or.b32 word, [frontier], 0x80000000;
NEWS:
  @!beyond bra ADMITTED;
  ld.acquire.gpu.global.u32 word, [frontier];
JUDGE:
  and.b32 limit, word, 0x3fffffff;
  setp.ge.u32 refused, unit, limit;
  and.b32 n, word, 0x40000000;
  setp.eq.u32 done, n, 0;
  not.pred early, early;
  or.pred done, done, early;
  and.pred refused, refused, done;
  @refused bra AGREE;
ADMITTED:
  ld.param.u8 n, [PARAMETER+29];
  and.b32 n, n, 1;
  setp.ne.and.u32 last, n, 0, last;
  @!last bra AGREE;
  ld.param.u32 run, [PARAMETER+16];
  setp.ge.u32 done, stopped, run;
  @done red.relaxed.gpu.global.or.b32 [frontier+4], 0x80000000;
  @!done atom.relaxed.gpu.global.cas.b32 n, [frontier+4], 0, 0x40000000;
AGREE:
  barrier.cta.red.or.aligned.pred refused, 0, refused;
  @!refused bra KERNEL;
  exit;
KERNEL:
)";

static_assert(offsetof(DoorLaunch, run) == 16 && offsetof(DoorLaunch, from) == 20 &&
              offsetof(DoorLaunch, to) == 24 && offsetof(DoorLaunch, step.shift) == 28 &&
              offsetof(DoorLaunch, step.how) == 29 && offsetof(DoorLaunch, step.early) == 30);
static_assert(kDoorDecides == 1 && kDoorExact == 2 && kDoorGroupAt == 2);
static_assert(kFinalFrontier == 0x80000000 && kBegunFrontier == 0x40000000);

}  // namespace

std::string door_text(std::string_view parameter, bool clusters, bool tested) {
    std::string text =
        kBegin + std::string(tested ? "" : kTest) + kFirst + (clusters ? kClusters : "") + kEnd;
    for (size_t at = 0; (at = text.find(kPlaceholder, at)) != text.npos; at += parameter.size())
        text.replace(at, kPlaceholder.size(), parameter);
    return text;
}

}  // namespace smt
