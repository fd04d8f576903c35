// The smallest machine that runs kernels: blocks one after another, warps in turn, no time. For tests
// and benchmarks of the interpreter by itself.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rewriter/ptx/parser.h"
#include "runtime/device/simulated/exec/cta.h"

namespace smt::test {

namespace sim = runtime::device::simulated;

class BenchDevice : public sim::Environment {
public:
    // False: see error.
    bool load(const std::string& text) {
        auto parsed = ptx::parse(text);
        if (auto* problem = std::get_if<ptx::Diagnostic>(&parsed)) return fail(ptx::to_string(*problem));
        std::vector<ptx::Module> parts;
        parts.push_back(std::move(std::get<ptx::Module>(parsed)));
        return link(std::move(parts));
    }
    bool link(std::vector<ptx::Module> parts) {
        auto loaded = sim::Module::load(std::move(parts), memory);
        if (auto* problem = std::get_if<sim::LoadError>(&loaded))
            return fail(problem->message, problem->line);
        module = std::move(std::get<0>(loaded));
        return true;
    }
    const sim::DecodedKernel* kernel(const std::string& name) {
        auto found = module->kernel(name);
        if (auto* problem = std::get_if<sim::LoadError>(&found)) {
            fail(problem->message, problem->line);
            return nullptr;
        }
        return std::get<const sim::DecodedKernel*>(found);
    }

    // Arguments are copied to the kernel's offsets. True: it ran to its end.
    template <class... T>
    bool launch(const std::string& name, sim::Dim3 grid, sim::Dim3 block, uint32_t shared, T... arguments) {
        const sim::DecodedKernel* found = kernel(name);
        if (found == nullptr) return false;
        sim::Launch launch{found,      grid, block, shared, std::vector<std::byte>(found->parameter_bytes),
                           ++launches, 0};
        size_t i = 0;
        (...,
         std::memcpy(&launch.parameters[found->parameters.at(i++).offset], &arguments, sizeof(arguments)));
        return run(launch);
    }

    bool run(const sim::Launch& launch) {
        for (uint32_t z = 0; z < launch.grid.z; ++z)
            for (uint32_t y = 0; y < launch.grid.y; ++y)
                for (uint32_t x = 0; x < launch.grid.x; ++x)
                    if (!run(launch, {x, y, z})) return false;
        return true;
    }

    template <class T>
    uint64_t copy_in(const std::vector<T>& values) {
        const uint64_t address = memory.obtain(values.size() * sizeof(T));
        std::memcpy(reinterpret_cast<void*>(address), values.data(), values.size() * sizeof(T));
        return address;
    }
    template <class T>
    std::vector<T> copy_out(uint64_t address, size_t count) {
        std::vector<T> values(count);
        std::memcpy(values.data(), reinterpret_cast<const void*>(address), count * sizeof(T));
        return values;
    }

    // Environment
    uint64_t cycles() override { return steps; }
    uint64_t nanoseconds() override { return steps / 2; }
    uint32_t sm() override { return 0; }
    uint32_t sms() override { return 1; }
    void print(std::string_view text) override { printed += text; }
    uint64_t heap_allocate(uint64_t bytes) override { return memory.obtain(bytes); }
    bool heap_free(uint64_t address) override {
        if (memory.find(address).state != sim::Memory::State::kLive) return false;
        memory.give_back(address);
        return true;
    }

    sim::Memory memory;
    std::unique_ptr<sim::Module> module;
    std::string error;  // of the last thing that failed
    std::unique_ptr<sim::Fault> fault;
    bool deadlock = false;
    std::string printed;
    uint64_t steps = 0, lanes = 0, launches = 0;
    uint64_t step_limit = 200'000'000;

private:
    bool fail(std::string why, int line = 0) {
        error = line == 0 ? std::move(why) : "line " + std::to_string(line) + ": " + why;
        return false;
    }
    bool run(const sim::Launch& launch, sim::Dim3 index) {
        sim::Cta cta(launch, index, memory, *this);
        while (!cta.finished()) {
            const uint32_t ready = cta.runnable();
            if (ready == 0) break;
            for (int warp = 0; warp < cta.warps(); ++warp)
                for (int turn = 0; turn < 16 && (cta.runnable() >> warp & 1) != 0; ++turn) {
                    lanes += cta.step(warp).lanes;
                    if (++steps > step_limit) return fail("too many steps in " + launch.kernel->name);
                }
        }
        if (cta.fault() != nullptr) {
            fault = std::make_unique<sim::Fault>(*cta.fault());
            return fail(fault->message);
        }
        deadlock = cta.deadlocked();
        if (deadlock)
            return fail("deadlock at line " + std::to_string(cta.line(0)) + " in " + launch.kernel->name);
        return true;
    }
};

}  // namespace smt::test
