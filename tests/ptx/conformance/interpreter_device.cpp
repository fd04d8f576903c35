// The interpreter without a machine or driver around it.
#include "tests/ptx/conformance/device.h"
#include "tests/ptx/exec/bench_device.h"

namespace smt::conformance {
namespace {

class InterpreterDevice : public Device {
public:
    bool run(const Case& one, std::vector<Value>* outputs, std::string* error) override {
        test::BenchDevice device;
        device.step_limit = 1'000'000;
        bool ok = device.load(module_text(one));
        if (ok) {
            const uint64_t in = device.copy_in(input_words(one));
            const size_t words = 2 * one.outputs.size() * one.rows.size();
            const uint64_t out = device.copy_in(std::vector<uint64_t>(words, kUnwritten));
            ok = device.launch("test", {1, 1, 1}, {static_cast<uint32_t>(one.rows.size()), 1, 1}, one.shared,
                               in, out);
            const auto got = device.copy_out<uint64_t>(out, words);
            for (size_t i = 0; i < words; i += 2)
                outputs->push_back({got[i], got[i + 1], false, false, false});
        }
        *error = device.error;
        return ok;
    }
};

}  // namespace

std::unique_ptr<Device> open_interpreter() { return std::make_unique<InterpreterDevice>(); }

}  // namespace smt::conformance
