#include "runtime/device/call_clock.h"

#include "driver_functions.gen.h"
#include "runtime/device/device.h"

namespace smt::runtime::device {

namespace {

DriverApi& untimed = *new DriverApi;

template <auto member>
struct Timed {  // functions without a type are for native programs, and never called here
    static void put(DriverApi&) {}
};

template <typename... Arguments, CUresult (*DriverApi::*member)(Arguments...)>
struct Timed<member> {
    static CUresult call(Arguments... arguments) {
        const auto at =
            reinterpret_cast<const char*>(&(untimed.*member)) - reinterpret_cast<const char*>(&untimed);
        const InDriver timed(static_cast<uint32_t>(static_cast<size_t>(at) / sizeof(AnyFunction)));
        return (untimed.*member)(arguments...);
    }
    static void put(DriverApi& api) {
        if (api.*member) api.*member = call;
    }
};

}  // namespace

void Device::time_driver() {
    untimed = driver_;
#define PUT(name) Timed<&DriverApi::name>::put(driver_);
    SMT_DRIVER_FUNCTIONS(PUT)
#undef PUT
}

}  // namespace smt::runtime::device
