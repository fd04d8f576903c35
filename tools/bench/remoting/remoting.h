// What the two halves of bench_remoting share: the groups of metrics a child measures.
#pragma once

namespace smt::bench {

// Measures one group and prints `NAME VALUE` lines; the exit code of the child. Counts of calls are divided
// by `divisor`.
int measure(const char* group, int divisor = 1);

}  // namespace smt::bench
