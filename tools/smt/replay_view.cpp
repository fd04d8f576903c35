// See replay_view.h.
#include "tools/smt/replay_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/journal/printable.h"

namespace smt::tools {

using namespace runtime::schedule;

namespace {

double milliseconds(Duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

std::string name_of(const Kernel& kernel) {
    return fmt::format("{}#{}", runtime::journal::printable(kernel.tenant), kernel.id);
}

std::string situation(const Kernel& kernel) {
    static constexpr const char* kStates[] = {"runs", "stops", "waits"};
    std::string text = fmt::format("{} {}", name_of(kernel), kStates[static_cast<int>(kernel.state)]);
    if (kernel.blocks) text += fmt::format(", {} of {} blocks done", kernel.blocks_done, kernel.blocks);
    if (kernel.priority) text += fmt::format(", priority {}", kernel.priority);
    if (!kernel.managed) text += ", unmanaged";
    return text;
}

std::string words(const Assignment& assignment) {
    if (assignment.action == Assignment::Action::kWait) return "waits";
    std::string text = "runs";
    if (assignment.quota.size() == 1) text += fmt::format(" with {} CTAs an SM", assignment.quota[0]);
    // Many SMs with the same number in a row are said once.
    for (size_t i = 0; assignment.quota.size() > 1 && i < assignment.quota.size();) {
        size_t last = i;
        while (last + 1 < assignment.quota.size() && assignment.quota[last + 1] == assignment.quota[i])
            ++last;
        text += fmt::format("{} {} on SM {}", i ? "," : " with", assignment.quota[i],
                            last == i ? fmt::format("{}", i) : fmt::format("{}-{}", i, last));
        i = last + 1;
    }
    if (assignment.slice) text += fmt::format(", {} blocks at a time", assignment.slice);
    return text;
}

}  // namespace

ReplayView::ReplayView(const std::vector<std::string>& policies) {
    recorded_.name = "decided";
    for (const std::string& name : policies) {
        sides_.emplace_back();
        sides_.back().name = name;
        sides_.back().policy = make_policy(name);
    }
}

void ReplayView::take(Side& side, const Record& record, const Decision& decision) {
    for (const Assignment& each : decision.assignments) side.runs[each.kernel] = words(each);
    for (const Confinement& each : decision.confinements)
        side.confined[each.kernel] =
            each.multiprocessors ? fmt::format(" (unmanaged on {} SMs)", each.multiprocessors) : "";
    const auto gone = [&](const auto& entry) {
        return std::none_of(record.snapshot.kernels.begin(), record.snapshot.kernels.end(),
                            [&](const Kernel& kernel) { return kernel.id == entry.first; });
    };
    std::erase_if(side.runs, gone);
    std::erase_if(side.confined, gone);
}

// A kernel of which nothing was said goes on as it is.
std::string ReplayView::standing(const Side& side, const Record& record) {
    std::string text;
    for (const Kernel& kernel : record.snapshot.kernels) {
        const auto run = side.runs.find(kernel.id);
        const auto confined = side.confined.find(kernel.id);
        const char* as_it_is = kernel.state == Kernel::State::kRunning ? "runs" : "waits";
        text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", name_of(kernel),
                            run == side.runs.end() ? as_it_is : run->second,
                            confined == side.confined.end() ? "" : confined->second);
    }
    return text.empty() ? "nothing to decide" : text;
}

std::string ReplayView::show(const Record& record, bool only_differences) {
    if (decisions_++ == 0) begin_ = record.now;
    end_ = record.now;
    take(recorded_, record, record.decision);
    const std::string decided = standing(recorded_, record);
    std::string text = fmt::format("{}  +{:.3f} ms", decisions_, milliseconds(record.now - begin_));
    for (const Kernel& kernel : record.snapshot.kernels) text += "\n     " + situation(kernel);
    text += fmt::format("\n  {:<16} {}   (by {})\n", recorded_.name, decided, record.policy);
    bool differs = false;
    for (Side& side : sides_) {
        take(side, record, study_and_decide(*side.policy, record.snapshot, record.now));
        const std::string would = standing(side, record);
        side.differ += would != decided;
        differs |= would != decided;
        text += fmt::format("  {:<16} {}\n", side.name, would == decided ? "the same" : would);
    }
    return only_differences && !differs ? "" : text;
}

std::string ReplayView::summary() const {
    std::string text = fmt::format("{} decisions in {:.3f} ms\n", decisions_, milliseconds(end_ - begin_));
    for (const Side& side : sides_)
        text += fmt::format("  {:<16} {} would have been different\n", side.name, side.differ);
    return text;
}

}  // namespace smt::tools
