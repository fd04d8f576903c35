// A GPU in virtual time on which kernels make progress as a policy decides, so that what a policy is worth
// can be told exactly: no thread, no clock, the same in every run.
//
// What it has: multiprocessors that CTAs share by their resources; a pipeline in each, and memory for all of
// them (`Work`), which slow CTAs down where they ask for more than there is; a queue in which launches are
// served in the order in which they came, and one that finds no room at all holds up the later ones. A CTA of
// a managed kernel goes on from block to block until its launch has no more, is stopped, or its
// multiprocessor's quota has fallen; it leaves between two blocks. What begins or grows does so kStart after
// it was decided.
//
// A CTA that is by itself issues for a part of its time and waits for memory in the rest. Where CTAs want
// more of a pipeline than it has, issuing takes all of them so much longer that it is enough, and waiting
// likewise for memory.
#pragma once

#include <limits>
#include <vector>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/policy.h"
#include "tools/fleet/worked.h"

namespace smt::fleet {

using namespace runtime::schedule;  // the words of policies

// Of one CTA by itself.
struct Work {
    double block_ns = 100'000;
    double pipeline = 0;  // of its multiprocessor's, 0 to 1
    double memory = 0;    // of one multiprocessor's part of what memory serves, 0 to 1
    double waits = 0.5;   // for memory, of its time
};

struct Program {
    Kernel kernel;  // as the policy sees it
    Work work;
    double arrives_ns = 0;
    uint64_t launches = 1;  // one after the other; kEndless
    double gap_ns = 0;      // between the end of one and the next
    double alone_ns = 0;    // that a launch takes alone, as policies see what was received; 0: not told
    std::vector<double> requests_ns = {};  // of a service: when they come; each is `launches` in a row
    Target target = {};                    // of a service
    // Of a service: the host's time behind each launch of a request, one behind the other, in which it has no
    // work. None: it launches ahead.
    std::vector<double> host_ns = {};

    // What came of it.
    std::vector<double> ends_ns = {};
    uint64_t blocks = 0;                 // done, of all launches
    uint64_t blocks_before = 0;          // for callers
    double block_ended_ns = 0;           // the last one
    double longest_ns = 0;               // between the ends of two blocks
    double gpu_ns = 0;                   // its CTAs' time: 1 a nanosecond where it fills the GPU
    std::vector<double> served_ns = {};  // when each request was over
    std::vector<double> begun_ns = {};   // and when it began: what came before it was over
};
inline constexpr uint64_t kEndless = std::numeric_limits<uint64_t>::max();

class VirtualGpu {
public:
    static constexpr double kStart = 10'000;  // ns from a decision to the first block
    static constexpr TimePoint kBegin = TimePoint{} + std::chrono::hours(1);  // to policies

    explicit VirtualGpu(const Device& device);
    void add(Program program);
    // Until then, or until all programs are done.
    void run(Policy& policy, double until_ns);
    // Takes those that are done out of `programs`, and so out of all sums over it.
    std::vector<Program> take_done();
    double now_ns() const { return now_; }
    int most_used() const { return most_used_; }  // multiprocessors that had a CTA at once

    std::vector<Program> programs;

private:
    struct Cta {
        size_t program;
        size_t sm;
        double left;  // of its block, 1 to 0
        double speed = 1;
    };
    struct Progress {       // of a program
        bool here = false;  // it has a launch
        Quota quota;
        uint64_t slice_left = 0;
        uint64_t taken = 0;  // blocks of this launch that a CTA has or had
        double begins = 0;   // no further CTA of it before
        uint64_t in_queue = 0;
        int multiprocessors = 0;  // that it is confined to, from the first one on; 0: all
        double part = 0;          // of the GPU that a CTA has
        double arrives = 0;       // where it has none: the next one
        Worked service = {};      // as which policies see it, if it has a target
    };
    struct Group {  // CTAs of a program on a multiprocessor, which are equally fast
        const Work* work;
        size_t program;
        int count;
        double speed = 1;
    };
    struct Alike {  // multiprocessors with the same CTAs
        std::vector<Group> groups;
        int multiprocessors = 0;
    };

    bool done() const;
    void arrive();
    void ask(Policy& policy);
    Service service(size_t index);
    void carry_out(const Confinement& confinement, size_t program);
    void carry_out(const Assignment& assignment);
    void place();
    bool fill(size_t program, std::vector<Resources>& free);
    void set_speeds();
    double memory_use(double waiting);
    double next_event(double until) const;
    void advance(double to);
    void end_blocks();
    void settle(size_t program);
    void end_launch(size_t program);
    void end_request(size_t program);
    void set(size_t program, Kernel::State state);
    int quota(size_t program, size_t sm) const;
    bool may_take(size_t program) const;
    bool takes(size_t program);  // a block, if there is one to take
    int ctas_of(size_t program) const;
    TimePoint time() const { return kBegin + nanoseconds(now_); }

    const Device device_;
    const Resources limits_;
    std::vector<Progress> progress_;
    std::vector<std::vector<int>> counts_;  // of CTAs, by program and multiprocessor
    std::vector<Alike> alike_;
    std::vector<size_t> alike_of_;  // by multiprocessor
    std::vector<Cta> ctas_;
    double now_ = 0;
    double again_ = std::numeric_limits<double>::infinity();
    uint64_t queue_ = 0;
    int most_used_ = 0;
    bool ask_ = false;     // something has happened that policies are asked for
    bool speeds_ = false;  // CTAs have come or gone
};

}  // namespace smt::fleet
