// The persistent loop (rewriter/device/smt_worker.h) in nine forms, compiled to PTX when smt is built. Where
// a form has the line `.pragma "smt_body"`, the rewriter puts a kernel's body; the registers %smt_block0 to 2
// and %smt_grid0 to 2 hold the block's index and the grid's size there.
#include "smt_worker.h"

#define SMT_REGISTERS(b0, b1, b2, g0, g1, g2)                                                       \
    "{\n\t.reg .b32 %%smt_block<3>;\n\t.reg .b32 %%smt_grid<3>;\n\t"                                \
    "mov.b32 %%smt_block0, " b0 ";\n\tmov.b32 %%smt_block1, " b1 ";\n\tmov.b32 %%smt_block2, " b2   \
    ";\n\tmov.b32 %%smt_grid0, " g0 ";\n\tmov.b32 %%smt_grid1, " g1 ";\n\tmov.b32 %%smt_grid2, " g2 \
    ";\n\t.pragma \"smt_body\";\n\t"
#define SMT_INDEX(worker)                                                                      \
    "r"(worker.block().x), "r"(worker.block().y), "r"(worker.block().z), "r"(worker.grid().x), \
        "r"(worker.grid().y), "r"(worker.grid().z)
#define SMT_BODY(worker) \
    asm volatile(SMT_REGISTERS("%0", "%1", "%2", "%3", "%4", "%5") "}" ::SMT_INDEX(worker) : "memory")

// A body with checks leads to $smt_abandon where a thread leaves the block before its end.
#define SMT_CHECKED_BODY(worker, abandoned)                                                            \
    asm volatile(                                                                                      \
        SMT_REGISTERS(                                                                                 \
            "%1", "%2", "%3", "%4", "%5",                                                              \
            "%6") "mov.b32 %0, 0;\n\tbra $smt_left;\n$smt_abandon:\n\tmov.b32 %0, 1;\n$smt_left:\n\t}" \
        : "=r"(abandoned)                                                                              \
        : SMT_INDEX(worker)                                                                            \
        : "memory")

extern "C" __global__ void smt_form_worker(smt::Launch launch) {
    smt::Worker worker(launch);
    while (worker.next()) SMT_BODY(worker);
}

extern "C" __global__ void smt_form_free(smt::Launch launch) {
    smt::FreeWorker worker(launch);
    while (worker.next()) SMT_BODY(worker);
}

extern "C" __global__ void smt_form_warp(smt::Launch launch) {
    smt::WarpWorker worker(launch);
    while (worker.next()) SMT_BODY(worker);
}

extern "C" __global__ void smt_form_shared(smt::Launch launch) {
    smt::SharedWorker worker(launch);
    while (worker.next()) SMT_BODY(worker);
}

// One block a worker. What stands behind the body is how a thread leaves.
extern "C" __global__ void smt_form_single(smt::Launch launch) {
    smt::SingleWorker worker(launch);
    if (!worker.next()) return;
    SMT_BODY(worker);
    smt::depart(launch);
}

extern "C" __global__ void smt_form_single_shared(smt::Launch launch) {
    smt::SharedSingleWorker worker(launch);
    if (!worker.next()) return;
    SMT_BODY(worker);
    smt::depart(launch);
}

extern "C" __global__ void smt_form_worker_checked(smt::Launch launch) {
    smt::AbandoningWorker worker(launch);
    while (worker.next()) {
        unsigned abandoned;
        SMT_CHECKED_BODY(worker, abandoned);
        if (abandoned) worker.abandon();
    }
}

extern "C" __global__ void smt_form_free_checked(smt::Launch launch) {
    smt::AbandoningFreeWorker worker(launch);
    while (worker.next()) {
        unsigned abandoned;
        SMT_CHECKED_BODY(worker, abandoned);
        if (abandoned) worker.abandon();
    }
}

extern "C" __global__ void smt_form_single_checked(smt::Launch launch) {
    smt::AbandoningSingleWorker worker(launch);
    if (!worker.next()) return;
    unsigned abandoned;
    SMT_CHECKED_BODY(worker, abandoned);
    if (abandoned) worker.abandon();
    smt::depart(launch);
}
