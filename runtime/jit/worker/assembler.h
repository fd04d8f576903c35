// The PTX assembler: nvJitLink, opened at run time where it is found (SMT_NVJITLINK, or toolkit.h).
#pragma once

#include <nvJitLink.h>

#include <string>

namespace smt::runtime::jit {

class Assembler {
public:
    Assembler();   // never closed: it lives as long as its process
    const std::string& problem() const { return problem_; }   // empty: it is there

    // A cubin for "sm_90"; empty: it is not to be made, and `reason` says why.
    std::string assemble(const std::string& ptx, const std::string& architecture, std::string& reason) const;

private:
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
    std::string problem_;
};

}  // namespace smt::runtime::jit
