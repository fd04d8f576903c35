//! nvrtc --name=store<float> --name=store<int>
template <class T> __global__ void store(T* a, T value) { a[blockIdx.x] = value; }
template <> __global__ void store<int>(int* a, int value) { a[blockIdx.x] = value + 1; }

template <class T> __global__ void only_special(T* a);
template <> __global__ void only_special<int>(int* a) { a[blockIdx.x] = 1; }
