// What becomes of an image that a program loads: the managed form that stands in for it, or why there is
// none. From its source where that was captured or indexed, else from its PTX; what has neither is unmanaged.
//
// The one place where this is decided: the server asks here, and so does `smt inspect`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/jit/service.h"

namespace smt::runtime::jit {

// What a decision waits for.
struct Awaited {
    std::string source, ptx;  // as the service knows them; empty: not asked for, or settled
    PtxChoice choice;         // to be asked for if the source cannot be used
    std::string reason;       // why the source cannot be used
};

struct Decision {
    ResultPointer compiled;          // to be loaded in place of the program's; null: load that one
    std::string reason;              // why there is none
    ResultPointer refused;           // and what was said about its kernels, if they were looked at
    std::optional<Awaited> awaited;  // a compile goes on: decide_again() knows more when it is over

    // Of a kernel of the image: why it is not managed, in words; empty: it is.
    std::string why_unmanaged(std::string_view kernel) const;
    // Whether it is known to have atomics for the whole system.
    bool system_atomics(std::string_view kernel) const;
    bool by_ptx() const { return compiled && compiled->language == Language::kPtx; }
};

struct Deciding {
    // Waits for what a request returned (Service::wait_for), as long as the caller thinks fit.
    std::function<Service::Answer(const std::string& identity)> wait;
    // Each reason when it is met; a source that cannot be used may have PTX beside it. Not that PTX is not
    // looked at at all (ptx=0 in SMT_COMPILE).
    std::function<void(const std::string& reason)> say;
    TenantId tenant = kNoTenant;  // that loads the image
    // Why the last wait ended before what it was for was there.
    std::function<std::string()> late = [] { return std::string("its managed form was not there in time"); };
};

// `image`: a fatbin, a cubin or a text, of which only the first bytes are read here; `choices` are its own.
// Compiles what is not in the cache; any thread.
Decision decide(Service& service, std::string_view image, Choices choices, const Target& target,
                const Deciding& how);
// Of the same image, whose bytes are not needed any more.
Decision decide_again(Service& service, Awaited awaited, const Target& target, const Deciding& how);

}  // namespace smt::runtime::jit
