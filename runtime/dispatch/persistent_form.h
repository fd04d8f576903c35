// Launches of persistent forms: workers that take tickets from the stream's control block.
//
// In pass-through mode launches share the control block, in which each has its own tickets, so none waits for
// another (smt_worker.h: pass-through mode). In quota mode one launch runs, its workers keep to a quota
// table, and further workers for it are sent on growth streams.
#pragma once

#include <array>
#include <utility>

#include "runtime/dispatch/launch_form.h"

namespace smt::runtime::dispatch {

class PersistentForm final : public LaunchForm {
public:
    explicit PersistentForm(const Parts& parts);
    ~PersistentForm() override;

    CUresult open() { return control_.open(control_stream()); }
    bool may_follow(size_t) const override { return !tickets_used_up(); }
    CUresult prepare(const Work& work, bool idle, bool* anew) override;
    CUresult launch(Work& work) override;
    CUresult prepare_run(const Work& work, const QuotaTable& quotas, bool* anew) override;
    CUresult run(Work& work, uint64_t blocks) override;
    bool ends_blocks(const Work& work) const override;
    CUresult stop(bool inside) override { return control_.stop(control_stream(), inside); }
    CUresult report(const Work&, const Work&) override;
    CUresult collect(const Work&) override;
    void settle(Work& work) override;
    void settle_run(Work& work, bool halted) override;

    // Of the run of quota mode, `work`:
    CUresult change(const QuotaTable& quotas);
    CUresult send(Work& work, uint32_t workers);  // further workers
    bool has_grown() const;                       // all workers that were sent have left
    // The GPU has no work of this stream: the next launch counts its tickets from 0.
    CUresult rest(bool* anew);
    ControlBlock& control() { return control_; }
    // Blocks that were under way or over and are run again, since the last call.
    uint64_t take_lost() { return std::exchange(lost_, 0); }

private:
    struct Growth {
        CUstream stream = nullptr;  // made on demand
        uint64_t marker = 0;        // the last one
    };
    bool tickets_used_up() const;
    bool has_grown(size_t i) const;
    void describe(Work& work, uint64_t blocks, bool passes_through, smt::Launch* launch, uint32_t* workers);
    uint32_t ticket_blocks(const Work& work, uint64_t each) const;
    uint64_t expected_block_ns(const Work& work) const;
    SaturatingCtas::Try ctas_for(const Work& work, uint32_t fits) const;
    CUresult launch_workers(Work& work, CUstream stream, const smt::Launch& launch, uint32_t workers);
    CUstream control_stream() const;

    ControlBlock control_;
    bool used_ = false;  // the control block was used since its reset
    uint32_t next_ticket_ = 0;
    uint32_t taken_ = 0;  // tickets taken and not refused, by the last report
    uint32_t run_ = 0;    // those of them that were not taken back
    uint64_t lost_ = 0;   // blocks of those that were
    QuotaTable quotas_;   // of the run of quota mode
    // Quota-mode runs in a row in which no worker found a place.
    uint32_t fruitless_ = 0;
    uint64_t fruitless_of_ = 0;                          // launch of these runs
    std::array<Growth, StreamWords::kGrowths> growths_;  // streams for further workers
    size_t crowded_ = 0;                                 // times that none was idle
    CUevent begun_ = nullptr;                            // recorded when the run's control block is ready
};

}  // namespace smt::runtime::dispatch
