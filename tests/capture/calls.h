// NVRTC as the programs of this folder call it: linked, or looked up in a library that they open.
#pragma once

#include <nvrtc.h>

struct Calls {
    decltype(&nvrtcCreateProgram) create;
    decltype(&nvrtcDestroyProgram) destroy;
    decltype(&nvrtcAddNameExpression) add_name_expression;
    decltype(&nvrtcCompileProgram) compile;
    decltype(&nvrtcGetPTXSize) get_ptx_size;
    decltype(&nvrtcGetPTX) get_ptx;
    decltype(&nvrtcGetLoweredName) get_lowered_name;
    decltype(&nvrtcGetProgramLogSize) get_log_size;
    decltype(&nvrtcGetProgramLog) get_log;
};

// linked.cpp, opened.cpp or plugin_user.cpp
Calls find_calls();
