// libnvrtc.so among the program's own libraries; also compiled into plugin.so, for plugin_user.cpp.
#include <dlfcn.h>

#include "tests/capture/calls.h"
#include "tests/preload/program.h"

extern "C" __attribute__((visibility("default"))) Calls linked_calls() {
#ifdef PLUGIN  // whose own libraries only it sees
    REQUIRE(dlsym(RTLD_DEFAULT, "nvrtcCreateProgram"));
    REQUIRE(dlsym(RTLD_DEFAULT, "linked_calls"));
    REQUIRE(!dlsym(RTLD_DEFAULT, "nvrtcNoSuchThing"));
#endif
    return {nvrtcCreateProgram,  nvrtcDestroyProgram,    nvrtcAddNameExpression,
            nvrtcCompileProgram, nvrtcGetPTXSize,        nvrtcGetPTX,
            nvrtcGetLoweredName, nvrtcGetProgramLogSize, nvrtcGetProgramLog};
}

#ifndef PLUGIN
Calls find_calls() { return linked_calls(); }
#endif
