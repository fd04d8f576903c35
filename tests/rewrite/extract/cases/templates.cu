//!
// All instantiations that the file makes, and what templates mean with their arguments.
#include <type_traits>
template <class T> struct Zero;
template <> struct Zero<int> { static constexpr int value = 0; };
template <> struct Zero<float> { static constexpr float value = 0.f; };
template <> struct Zero<char> { static constexpr char value = 0; };
template <class T, int N = 4> struct Array {
    T items[N];
    __device__ T& operator[](int i) { return items[i]; }
    __device__ T first() const { return items[0]; }
};
template <class T> struct Array<T*, 4>;
template <class T, class = void> struct Traits { using Wide = T; };
template <class T> struct Traits<T, std::enable_if_t<std::is_same<T, float>::value>> { using Wide = double; };
template <class T> struct Traits<T*, void> { using Wide = T; };
template <class T> using Wide = typename Traits<T>::Wide;
template <class T> __global__ void widen(const T* a, Wide<T>* b) { *b = *a; }
struct Add { template <class T> __device__ T operator()(T a, T b) const { return a + b; } };
struct Multiply { template <class T> __device__ T operator()(T a, T b) const { return a * b; } };
__device__ int twice(int a) { return 2 * a; }
__device__ float twice(float a) { return 2 * a; }
__device__ double twice(double a) { return 2 * a; }
template <class T> __device__ T all(T a) { return a; }
template <class T, class... Rest> __device__ T all(T a, Rest... rest) { return a + all<T>(rest...); }
template <class T, class Op = Add>
__global__ void fold(Array<T> in, T* out, Op op = Op()) {
    T value = Zero<T>::value;
    for (int i = 0; i < 4; ++i) value = op(value, in[i]);
    out[blockIdx.x] = twice(value) + all(value, T(1), T(2));
}
template <class T, class U> __global__ typename std::enable_if<std::is_same<T, U>::value>::type same(T* a, U* b) { *a = *b; }
template <class T> __global__ void never(T* a) { *a = twice(*a); }
void start() {
    fold<<<1, 1>>>(Array<int>{}, static_cast<int*>(nullptr));
    fold<float, Multiply><<<1, 1>>>({}, nullptr);
    widen<float><<<1, 1>>>(nullptr, nullptr);
    same<int, int><<<1, 1>>>(nullptr, nullptr);
}
