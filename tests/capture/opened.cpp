// libnvrtc.so opened by path and looked up with dlsym. On the way, that dlsym is the one that programs know.
#include <dlfcn.h>

#include <cstring>

#include "tests/capture/calls.h"
#include "tests/preload/program.h"

namespace {

void check_dlsym() {
    REQUIRE(dlsym(RTLD_DEFAULT, "nvrtcCreateProgram") == nullptr);  // before it is opened
    REQUIRE(dlerror() != nullptr);
    void* self = dlopen(nullptr, RTLD_NOW);
    REQUIRE(dlsym(self, "nvrtcGetPTX") == nullptr);
    REQUIRE(dlsym(RTLD_DEFAULT, "malloc") != nullptr);
    REQUIRE(dlsym(RTLD_NEXT, "main") == nullptr);  // behind us there is none
    REQUIRE(dlsym(RTLD_NEXT, "cuInit") ==
            dlsym(RTLD_DEFAULT, "cuInit"));  // behind the program, not behind libsmt.so
    REQUIRE(dlsym(RTLD_NEXT, "nvrtcNoSuchThing") == nullptr);
    REQUIRE(dlsym(RTLD_DEFAULT, "n") == nullptr);
    REQUIRE(dlsym(RTLD_DEFAULT, "") == nullptr);
    const char* why = dlerror();
    REQUIRE(why && std::strstr(why, "undefined symbol"));
}

template <typename Function>
void find(void* library, Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    REQUIRE(function);
    REQUIRE(dlsym(library, name) == reinterpret_cast<void*>(function));
}

}  // namespace

Calls find_calls() {
    check_dlsym();
    void* library = dlopen(SMT_TEST_NVRTC, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library);
    Calls calls{};
    find(library, calls.create, "nvrtcCreateProgram");
    find(library, calls.destroy, "nvrtcDestroyProgram");
    find(library, calls.add_name_expression, "nvrtcAddNameExpression");
    find(library, calls.compile, "nvrtcCompileProgram");
    find(library, calls.get_ptx_size, "nvrtcGetPTXSize");
    find(library, calls.get_ptx, "nvrtcGetPTX");
    find(library, calls.get_lowered_name, "nvrtcGetLoweredName");
    find(library, calls.get_log_size, "nvrtcGetProgramLogSize");
    find(library, calls.get_log, "nvrtcGetProgramLog");
    REQUIRE(dlsym(library, "nvrtcNoSuchThing") == nullptr);
    return calls;
}
