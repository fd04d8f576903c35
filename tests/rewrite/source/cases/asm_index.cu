//! nvrtc
// A plain mov of one component becomes an assignment.
__device__ unsigned place() {
    unsigned x;
    asm("mov.u32 %0, %%ctaid.x;" : "=r"(x));
    return x;
}
__global__ void reads(unsigned* a) {
    unsigned y, sm;
    asm volatile("mov.u32 %0, %%nctaid.y;" : "=r"(y));
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("{ mov.b32 %0, %%ctaid.z; }" : "=r"(a[sm]));
    a[place()] = y + sm;
}
