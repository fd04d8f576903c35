#include "runtime/jit/worker/ptx_rewriter.h"

#ifdef SMT_HAVE_PTX_REWRITER
#include "rewriter/ptx/persistent/persist.h"
#endif

namespace smt::runtime::jit {

#ifdef SMT_HAVE_PTX_REWRITER

Result rewrite_ptx(const Order& order) {
    ptx::persistent::Output output = ptx::persistent::persist(order.source.text, order.inside);
    Result result;
    result.image = std::move(output.text);
    result.reason = std::move(output.reason);
    for (ptx::persistent::PersistentKernel& kernel : output.kernels) {
        CompiledKernel& made = result.kernels.emplace_back();
        made = {kernel.name, kernel.name, kernel.managed, kernel.reason, kernel.reuse, kernel.system_atomics};
        made.waits = kernel.waits;
        if (kernel.checked) made.checked = std::move(kernel.effects);
        made.unchecked = std::move(kernel.unchecked);
    }
    result.language = Language::kPtx;
    result.lasting = true;
    return result;
}

#else

Result rewrite_ptx(const Order&) {
    Result result;
    result.language = Language::kPtx;
    result.reason = "this build of smt has no PTX rewriter: there was no nvcc";
    return result;
}

#endif

}  // namespace smt::runtime::jit
