// A device of a few SMs on which kernels make progress as a policy decides, block by block, to see who never
// does. Each program launches the same kernel again and again, at once.
//
// A step is the time of one block. Launches are served in the order in which they came, and one that finds
// no room at all holds up the later ones, as in the hardware's queue. A CTA stays until its launch ends, is
// stopped, or its quota falls. A stop takes one step.
#pragma once

#include <algorithm>
#include <numeric>

#include "runtime/schedule/estimate.h"
#include "tests/policy/snapshots.h"

namespace smt::tests {

struct Program {
    Kernel kernel;
    Quota quota;
    uint64_t slice_left = 0;  // 0: no slice
    uint64_t launches = 0;    // that ended
    uint64_t blocks = 0;      // done, of all launches
    uint64_t in_queue = 0;
    std::vector<int> ctas;  // on each SM
};

class SmallDevice {
public:
    static constexpr auto kStep = std::chrono::microseconds(100);

    explicit SmallDevice(const Device& device) : device_(device) {}

    void add(Kernel kernel) {
        kernel.since = now_;
        programs.push_back({std::move(kernel), {}, 0, 0, 0, ++queue_, no_ctas()});
    }

    void step(Policy& policy) {
        Snapshot snapshot{device_, {}};
        for (const Program& program : programs) snapshot.kernels.push_back(program.kernel);
        for (const Assignment& each : policy.decide(snapshot, now_).assignments) carry_out(each);
        now_ += kStep;
        run_blocks();
        for (Program& program : programs) end_of_step(program);
    }

    std::vector<Program> programs;

private:
    void carry_out(const Assignment& assignment) {
        for (Program& program : programs) {
            if (program.kernel.id != assignment.kernel) continue;
            if (assignment.action == Action::kWait) {
                if (program.kernel.state == State::kRunning) set(program, State::kStopping);
                continue;
            }
            program.quota = assignment.quota;
            program.slice_left = assignment.slice;
            if (program.kernel.state == State::kRunning) continue;
            set(program, State::kRunning);
            program.in_queue = ++queue_;
        }
    }

    std::vector<int> no_ctas() const {
        return std::vector<int>(static_cast<size_t>(device_.multiprocessors));
    }

    static int quota(const Program& program, size_t sm) {
        const Quota& quota = program.quota;
        return quota.empty() ? 255 : quota.size() == 1 ? quota[0] : quota[sm];
    }

    void run_blocks() {
        const Resources limits = limits_of(device_);
        std::vector<Resources> free(static_cast<size_t>(device_.multiprocessors), limits);
        std::vector<Program*> order;
        for (Program& program : programs) {
            const Resources cta = cta_of(program.kernel, limits);
            for (size_t sm = 0; sm < free.size(); ++sm) {
                program.ctas[sm] = std::min(program.ctas[sm], quota(program, sm));
                take(free[sm], cta, program.ctas[sm]);
            }
            if (program.kernel.state == State::kRunning) order.push_back(&program);
        }
        std::sort(order.begin(), order.end(),
                  [](const Program* a, const Program* b) { return a->in_queue < b->in_queue; });
        for (Program* program : order) {
            if (!fill(*program, cta_of(program->kernel, limits), free)) break;
        }
        for (Program& program : programs) run_blocks(program);
    }

    // Whether all of its CTAs found room: as many as fit on an SM, and no more than it has blocks.
    static bool fill(Program& program, const Resources& cta, std::vector<Resources>& free) {
        const uint64_t left = blocks_left(program.kernel);
        auto all = static_cast<uint64_t>(std::accumulate(program.ctas.begin(), program.ctas.end(), 0));
        bool found_room = false;
        for (size_t sm = 0; sm < free.size() && all < left; ++sm) {
            const int room = std::min(fitting(free[sm], cta), quota(program, sm) - program.ctas[sm]);
            const int more =
                static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(std::max(0, room)), left - all));
            take(free[sm], cta, more);
            program.ctas[sm] += more;
            all += static_cast<uint64_t>(more);
            found_room |= program.ctas[sm] > 0;
        }
        return found_room || all >= left;
    }

    void run_blocks(Program& program) {
        Kernel& kernel = program.kernel;
        const auto ctas = static_cast<uint64_t>(std::accumulate(program.ctas.begin(), program.ctas.end(), 0));
        uint64_t done = std::min(ctas, blocks_left(kernel));
        if (program.slice_left) done = std::min(done, program.slice_left);
        kernel.blocks_done += done;
        program.blocks += done;
        if (program.slice_left && !(program.slice_left -= done) && kernel.state == State::kRunning)
            set(program, State::kStopping);
    }

    void end_of_step(Program& program) {
        Kernel& kernel = program.kernel;
        if (kernel.state == State::kStopping) {
            set(program, State::kWaiting);
            program.ctas = no_ctas();
        }
        if (kernel.blocks_done < kernel.blocks) return;
        program.ctas = no_ctas();
        ++program.launches;
        ++kernel.launch;
        kernel.blocks_done = 0;
        program.in_queue = ++queue_;
    }

    void set(Program& program, State state) {
        program.kernel.state = state;
        program.kernel.since = now_;
    }

    Device device_;
    TimePoint now_ = kBegin;
    uint64_t queue_ = 0;
};

}  // namespace smt::tests
