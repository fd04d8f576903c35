//! nvrtc --name=scale<float> --name=scale<int,4> --name=gather<int,float,char> --name=&nothing<>
// A template is rewritten once; each instantiation that is wanted brings its managed form along.
template <class T, int N = 2>
__global__ void scale(T* a, T by = T(1)) { a[blockIdx.x * N] *= by; }

template <class First, typename... Rest>
__global__ void gather(First* a, Rest... rest) { a[blockIdx.x] = (rest + ... + 0); }

template <class... Values>
__global__ void nothing(Values...) {}

template <class T, class = void> struct Size { static constexpr int value = sizeof(T); };
template <class T, template <class...> class Measure>
__global__ void measured(int* a) { a[blockIdx.x] = Measure<T>::value; }
template __global__ void measured<double, Size>(int*);

template <int N> __global__ void sized(int (*a)[N]) { a[0][blockIdx.x] = N; }
template __global__ void sized<3>(int (*)[3]);

// Twin: no instance of a template that stays as it is.
template <class... Rest>
__global__ void stays(unsigned long long* a, Rest... rest) { asm("mov.u64 %0, %%gridid;" : "=l"(*a)); a[1] = (rest + ... + 0); }
template __global__ void stays<int, char>(unsigned long long*, int, char);
