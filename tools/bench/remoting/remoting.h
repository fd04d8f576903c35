// What the two halves of bench_remoting share: the groups of metrics a child measures.
#pragma once

namespace smt::bench {

// Measures one group and prints `NAME VALUE` lines; the exit code of the child.
int measure(const char* group);

}  // namespace smt::bench
