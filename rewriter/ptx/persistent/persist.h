// Turns the kernels of a PTX module into persistent form (rewriter/device/smt_worker.h).
//
// In: a module's text. Out: the text with every kernel twice (its own form as it was, and the managed form,
// smt_ or smt_single_ before its name, with smt::Launch as its last parameter), and a line for each kernel:
// managed, or refused with a reason. The module is transformed as a whole, so its variables live once.
//
// A pure function of the text, which is not trusted: nothing in it crashes or hangs it. Any thread. Runs in
// the compile worker and in tools, never in the server.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace smt::ptx::persistent {

struct Kernel {
    std::string name;
    std::string managed;  // name of the managed form; empty: refused
    std::string reason;   // why it was refused
    std::string once;     // why a worker runs one block only (kSingle); empty: many
    std::string form;     // of the loop: worker, free, shared, single, single_shared (forms.cu)
};

struct Output {
    std::string text;             // empty: no kernel is managed
    std::vector<Kernel> kernels;  // in the module's order
    std::string reason;           // why there is no text
};

// What is known of kernels besides their text, by name: how many registers a thread of the program's own form
// has on the device, from its machine code. With the loop around it a kernel may be given more, and fewer of
// its blocks would fit an SM; so its managed form is held to what the hardware hands out for that many.
using Registers = std::map<std::string, uint32_t>;

Output persist(std::string_view text, const Registers& registers = {});

}  // namespace smt::ptx::persistent
