// The persistent loop (rewriter/device/smt_worker.h) in six forms, compiled to PTX when smt is built. Where a
// form has the line `.pragma "smt_body"`, the rewriter puts a kernel's body; the registers %smt_block0 to 2
// and %smt_grid0 to 2 hold the block's index and the grid's size there.
#include "smt_worker.h"

#define SMT_BODY(worker)                                                                          \
    asm volatile(                                                                                 \
        "{\n\t.reg .b32 %%smt_block<3>;\n\t.reg .b32 %%smt_grid<3>;\n\t"                          \
        "mov.b32 %%smt_block0, %0;\n\tmov.b32 %%smt_block1, %1;\n\tmov.b32 %%smt_block2, %2;\n\t" \
        "mov.b32 %%smt_grid0, %3;\n\tmov.b32 %%smt_grid1, %4;\n\tmov.b32 %%smt_grid2, %5;\n\t"    \
        ".pragma \"smt_body\";\n\t}" ::"r"(worker.block().x),                                     \
        "r"(worker.block().y), "r"(worker.block().z), "r"(worker.grid().x), "r"(worker.grid().y), \
        "r"(worker.grid().z)                                                                      \
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
