#include "rewriter/machine_code/prologue_text.h"

#include <fmt/format.h>

#include <cstddef>

#include "rewriter/device/door.h"
#include "rewriter/device/door_text.h"

namespace smt::machine_code {

namespace {

// Run numbers begin with 1, so the word is 0 in a launch that is not to be stopped alone.
constexpr const char* kHeadText = R"(
{
  .reg .pred used;
  .reg .b32 run;
  ld.param.u32 run, [door_launch+16];
  setp.ne.u32 used, run, 0;
  @used exit;
  trap;
}
)";
static_assert(offsetof(DoorLaunch, run) == 16);

}  // namespace

std::string prologue_text(int architecture, uint32_t parameter) {
    const std::string before = parameter ? fmt::format(".param .align 16 .b8 others[{}], ", parameter) : "";
    const int version = door_ptx_version(architecture);
    const auto begin = [&](const char* name) {
        return fmt::format(".visible .entry {}({}.param .align 16 .b8 door_launch[{}])", name, before,
                           sizeof(DoorLaunch));
    };
    return fmt::format(".version {}.{}\n.target sm_{}\n.address_size 64\n", version / 10, version % 10,
                       architecture) +
           begin("head") + kHeadText + begin("door") +
           door_text("door_launch", architecture >= kFirstDoorWithClusters, true) + "  trap;\n}\n";
}

}  // namespace smt::machine_code
