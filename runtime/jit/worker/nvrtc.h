// NVRTC, opened at run time where it is found: nvrtc in SMT_COMPILE, or toolkit.h.
#pragma once

#include <nvrtc.h>

#include <string>

#include "runtime/jit/source.h"

namespace smt::runtime::jit {

class Nvrtc {
public:
    Nvrtc();  // never closed: it lives as long as its process

    const std::string& problem() const { return problem_; }  // empty: it is there
    const std::string& version() const { return version_; }  // "13.0"

    // The source as it stands, with its options. A Result with an image, or with a reason and NVRTC's log.
    // `ptx`: of the same compile, besides.
    Result compile(const Source& source, Form form, std::string* ptx = nullptr) const;

private:
    bool load(const std::string& path);
    void fetch(nvrtcProgram program, Form form, Result& result) const;
    bool fetch(nvrtcProgram program, std::string& ptx) const;

    decltype(&nvrtcVersion) get_version_ = nullptr;
    decltype(&nvrtcGetErrorString) error_string_ = nullptr;
    decltype(&nvrtcCreateProgram) create_ = nullptr;
    decltype(&nvrtcDestroyProgram) destroy_ = nullptr;
    decltype(&nvrtcAddNameExpression) add_name_expression_ = nullptr;
    decltype(&nvrtcCompileProgram) compile_ = nullptr;
    decltype(&nvrtcGetPTXSize) ptx_size_ = nullptr;
    decltype(&nvrtcGetPTX) ptx_ = nullptr;
    decltype(&nvrtcGetCUBINSize) cubin_size_ = nullptr;
    decltype(&nvrtcGetCUBIN) cubin_ = nullptr;
    decltype(&nvrtcGetProgramLogSize) log_size_ = nullptr;
    decltype(&nvrtcGetProgramLog) log_ = nullptr;
    std::string problem_;
    std::string version_;
};

}  // namespace smt::runtime::jit
