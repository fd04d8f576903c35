//! nvrtc
// Refused, and the last two not: a barrier with a number of its own, and the number of the SM.
__global__ void adds(unsigned* a) { asm("{ .reg .u32 x; mov.u32 x, %%ctaid.x; add.u32 %0, x, 1; }" : "=r"(*a)); }
__global__ void grid_id(unsigned long long* a) { asm("mov.u64 %0, %%gridid;" : "=l"(*a)); }
__global__ void leaves() { asm volatile("exit;"); }
__global__ void part_of_block() { asm volatile("bar.sync 0, 64;"); }
__global__ void some_barrier(int i) { asm volatile("bar.sync %0, 64;" :: "r"(i)); }
__global__ void by_sm(unsigned* a) { asm("mov.u32 %0, %%smid;\n mov.u32 %1, %%nsmid;" : "=r"(a[0]), "=r"(a[1])); }
__global__ void cluster(unsigned* a) { asm("mov.u32 %0, %%clusterid.x;" : "=r"(*a)); }
#define READ(x) asm("mov.u32 %0, %%ctaid.x;" : "=r"(x))
__global__ void in_macro(unsigned* a) { READ(*a); }
__global__ void named_barrier() { asm volatile("bar.sync 3, 64;"); }
__global__ void sm_number(unsigned* a) { asm("mov.u32 %0, %%smid; // not %%nsmid" : "=r"(*a)); }
