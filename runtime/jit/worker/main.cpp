// smt-compile: the compile worker, a child of smtd. See runtime/jit/README.md.
#include "runtime/jit/worker/worker.h"

int main(int count, char** arguments) {
    return smt::runtime::jit::worker_main(count, arguments, smt::runtime::jit::rewrite_source);
}
