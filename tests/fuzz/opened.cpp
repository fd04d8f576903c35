// An image as its worker opens it, also with doors; what the worker says of it must come through the server's
// checks. And answers that are none.
#include <cstdlib>

#include "rewriter/machine_code/patch.h"
#include "runtime/jit/messages.h"
#include "tests/fuzz/prologues.h"

namespace {

using namespace smt::runtime::jit;

// As the worker's (runtime/jit/worker/doors.cpp).
std::string put_doors(std::string_view cubin, std::vector<Door>& doors) {
    static smt::machine_code::Prologues& prologues = *new smt::machine_code::Prologues(read_prologue);
    auto result = smt::machine_code::patch(cubin, prologues);
    auto* patched = std::get_if<smt::machine_code::Patched>(&result);
    if (!patched || patched->entries.size() > kMostItems) return "";
    for (const auto& entry : patched->entries)
        doors.push_back({entry.name, entry.reason, entry.own_registers, entry.door_offset, entry.waits});
    return patched->cubin;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    bool unpacked = false;
    for (const bool links : {false, true})
        for (const bool doors : {false, true}) {
            const Opened opened =
                open_image({{90}, {90}, 1 << 20, true, links, doors, true}, bytes, put_doors);
            if (opened.problem.empty() && !decode_opened(encode(opened), size, &unpacked)) std::abort();
        }
    static_cast<void>(decode_opened(bytes, size, &unpacked));
    static_cast<void>(decode_image_order(bytes));
    return 0;
}
