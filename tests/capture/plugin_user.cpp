// libnvrtc.so among the libraries of a plugin that is opened for itself alone, as Python does with
// extensions.
#include <dlfcn.h>

#include "tests/capture/calls.h"
#include "tests/preload/program.h"

Calls find_calls() {
    void* plugin = dlopen(SMT_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(plugin);
    REQUIRE(!dlsym(RTLD_DEFAULT, "linked_calls"));
    REQUIRE(!dlsym(RTLD_DEFAULT, "nvrtcCreateProgram"));
    auto calls = reinterpret_cast<Calls (*)()>(dlsym(plugin, "linked_calls"));
    REQUIRE(calls);
    return calls();
}
