#include "rewriter/machine_code/prologue_text.h"

#include <fmt/format.h>

#include "rewriter/device/door.h"
#include "rewriter/device/door_text.h"

namespace smt::machine_code {

std::string prologue_text(int architecture, uint32_t parameter) {
    const std::string before = parameter ? fmt::format(".param .align 16 .b8 others[{}], ", parameter) : "";
    const int version = door_ptx_version(architecture);
    return fmt::format(
               ".version {}.{}\n.target sm_{}\n.address_size 64\n.visible .entry door({}.param .align 16 .b8 "
               "door_launch[{}])",
               version / 10, version % 10, architecture, before, sizeof(DoorLaunch)) +
           door_text("door_launch", architecture >= kFirstDoorWithClusters) + "  trap;\n}\n";
}

}  // namespace smt::machine_code
