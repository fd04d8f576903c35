// libnvrtc.so among the program's own libraries; also compiled into plugin.so, for plugin_user.cpp.
#include "tests/capture/calls.h"

extern "C" __attribute__((visibility("default"))) Calls linked_calls() {
    return {nvrtcCreateProgram, nvrtcDestroyProgram, nvrtcAddNameExpression, nvrtcCompileProgram,   nvrtcGetPTXSize,
            nvrtcGetPTX,        nvrtcGetLoweredName, nvrtcGetProgramLogSize, nvrtcGetProgramLog};
}

#ifndef PLUGIN
Calls find_calls() { return linked_calls(); }
#endif
