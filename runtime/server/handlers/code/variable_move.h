// An image's variables on their way into the session's own memory (code/moved_variables.h), where a process
// may take the session over. Without that nothing is moved.
//
//   VariableMove variables(call, opened);
//   SMT_TRY(variables.begin(code));
//   ... the driver loads `code`, perhaps a second time
//   if (loaded) SMT_TRY(variables.end());
//   if (loaded) variables.give(*image);       // else the memory is given back
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "runtime/jit/opened.h"
#include "runtime/server/call.h"

namespace smt::runtime::server {
struct Image;
}

namespace smt::runtime::server::handlers {

class VariableMove {
public:
    VariableMove(Call& call, const jit::Opened& opened);  // `opened` lives as long
    ~VariableMove();
    VariableMove(const VariableMove&) = delete;
    VariableMove& operator=(const VariableMove&) = delete;

    // `code` is what was opened. NOT_SUPPORTED, here and from end(): the session was taken over, and its
    // variables are those of other code.
    CUresult begin(std::vector<char>& code);
    CUresult end();
    void give(Image& image);

private:
    CUresult move_in_cubin(std::vector<char>& code);
    uint64_t place(uint64_t bytes, const std::string& layout, bool all, bool* filled);
    bool take(uint64_t bytes);
    void give_back();

    Call& call_;
    const jit::Opened& opened_;
    const bool active_;
    bool placed_ = false;  // the device places them
    bool all_ = false;     // no other variable is left
    bool fresh_ = false;   // `memory_` is given back if the load fails
    CUdeviceptr memory_ = 0;
    std::string code_, layout_;  // digests
};

}  // namespace smt::runtime::server::handlers
