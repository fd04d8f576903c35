// nvJitLink, opened at run time where it is found (nvjitlink in SMT_COMPILE, or toolkit.h): the linker, and
// an assembler to look at what it makes.
#pragma once

#include <nvJitLink.h>

#include <string>

#include "runtime/jit/source.h"

namespace smt::runtime::jit {

class Assembler {
public:
    Assembler();                                             // never closed: it lives as long as its process
    const std::string& problem() const { return problem_; }  // empty: it is there

    // A cubin for "sm_90"; empty: it is not to be made, and `reason` says why.
    std::string assemble(const std::string& ptx, const std::string& architecture, std::string& reason) const;

    // All inputs of the order together. The log is nvJitLink's; a reason may have several lines.
    Result link(const Order& order) const;

private:
    Result link(const Order& order, const std::string& architecture, nvJitLinkResult& status) const;
    bool load(const std::string& path);
    std::string log_of(nvJitLinkHandle link) const;

    decltype(&nvJitLinkCreate) create_ = nullptr;
    decltype(&nvJitLinkDestroy) destroy_ = nullptr;
    decltype(&nvJitLinkAddData) add_ = nullptr;
    decltype(&nvJitLinkComplete) complete_ = nullptr;
    decltype(&nvJitLinkGetLinkedCubinSize) cubin_size_ = nullptr;
    decltype(&nvJitLinkGetLinkedCubin) cubin_ = nullptr;
    decltype(&nvJitLinkGetErrorLogSize) log_size_ = nullptr;
    decltype(&nvJitLinkGetErrorLog) log_ = nullptr;
    decltype(&nvJitLinkGetInfoLogSize) info_size_ = nullptr;
    decltype(&nvJitLinkGetInfoLog) info_ = nullptr;
    std::string problem_;
};

}  // namespace smt::runtime::jit
