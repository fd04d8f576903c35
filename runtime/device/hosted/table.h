#pragma once

#include "driver_api.gen.h"

namespace smt::runtime::device::hosted {

void fill(DriverApi& api);  // with the functions of this folder; the rest stays null

}  // namespace smt::runtime::device::hosted
