//! nvrtc
// Refused: there is no managed form of the template to specialise.
template <class T> __global__ void store(T* a) { asm volatile("exit;"); }
template <> __global__ void store<int>(int* a) { a[blockIdx.x] = 1; }
