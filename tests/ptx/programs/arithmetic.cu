// Arithmetic of all widths, the mathematical functions and intrinsics.
template <typename T>
__device__ T mix(T a, T b) {
    T c = a * b + (a ^ b) - (a & ~b) + (a | b);
    if (b != 0) c += a / b + a % b;
    return static_cast<T>(c << 3) + static_cast<T>(c >> 2);
}
template <typename T>
__global__ void integers(T* out, const T* in) {
    int i = threadIdx.x;
    out[i] = mix(in[i], in[i + 1]);
}
template __global__ void integers<char>(char*, const char*);
template __global__ void integers<unsigned char>(unsigned char*, const unsigned char*);
template __global__ void integers<short>(short*, const short*);
template __global__ void integers<unsigned>(unsigned*, const unsigned*);
template __global__ void integers<int>(int*, const int*);
template __global__ void integers<long long>(long long*, const long long*);
template __global__ void integers<unsigned long long>(unsigned long long*, const unsigned long long*);
template __global__ void integers<__int128>(__int128*, const __int128*);
template __global__ void integers<unsigned __int128>(unsigned __int128*, const unsigned __int128*);

template <typename T>
__global__ void functions(T* out, const T* in) {
    int i = threadIdx.x;
    T x = in[i], y = in[i + 1];
    T r = sin(x) + cos(y) + tan(x) + exp(x) + log(y) + pow(x, y) + sqrt(x) + rsqrt(y) + cbrt(x) + erf(x) +
          tgamma(y);
    r += floor(x) + ceil(y) + trunc(x) + rint(y) + round(x) + fmod(x, y) + remainder(x, y) + fma(x, y, r) +
         hypot(x, y);
    r += fmin(x, y) + fmax(x, y) + fabs(x) + copysign(x, y) + ldexp(x, 3) + asinh(x) + atan2(x, y) + j0(x) +
         sinpi(y);
    out[i] = isnan(r) ? T(0) : isinf(r) ? T(1) : r;
}
template __global__ void functions<float>(float*, const float*);
template __global__ void functions<double>(double*, const double*);

__global__ void intrinsics(float* f, double* d, int* n, unsigned* u, long long* l, unsigned long long* v) {
    f[0] =
        __fadd_rn(f[1], f[2]) + __fmul_rz(f[1], f[2]) + __fmaf_ru(f[1], f[2], f[3]) + __fdividef(f[1], f[2]);
    f[1] = __sinf(f[0]) + __cosf(f[1]) + __expf(f[2]) + __logf(f[3]) + __powf(f[0], f[1]) + __saturatef(f[2]);
    f[2] = __frcp_rn(f[0]) + __fsqrt_rd(f[1]) + __frsqrt_rn(f[2]) + __fdiv_rn(f[0], f[1]) + __tanf(f[3]);
    d[0] = __dadd_ru(d[1], d[2]) + __dmul_rd(d[1], d[2]) + __fma_rn(d[0], d[1], d[2]) +
           __ddiv_rz(d[0], d[1]) + __drcp_rn(d[2]);
    n[0] = __popc(u[0]) + __clz(n[1]) + __ffs(n[2]) + __mulhi(n[0], n[1]) + __mul24(n[1], n[2]) +
           __sad(n[0], n[1], u[2]);
    n[1] = __popcll(l[0]) + __clzll(l[1]) + __ffsll(l[2]) + __hadd(n[0], n[1]) + __rhadd(n[1], n[2]) +
           __dp4a(n[0], n[1], n[2]);
    u[0] = __brev(u[1]) + __byte_perm(u[0], u[1], 0x5140) + __umulhi(u[1], u[2]) +
           __funnelshift_l(u[0], u[1], u[2]);
    u[1] = __funnelshift_rc(u[0], u[1], u[2]) + __vadd4(u[0], u[1]) + __vabsdiffu2(u[0], u[1]) +
           __vcmpgtu4(u[1], u[2]);
    u[2] = __vmaxs2(u[0], u[1]) + __vavgu4(u[0], u[1]) + __vsadu4(u[1], u[2]) + __vsubss2(u[0], u[2]);
    l[0] = __mul64hi(l[1], l[2]) + __brevll(v[1]) + __double2ll_rn(d[0]) + __float2ll_rz(f[0]);
    v[0] = __umul64hi(v[1], v[2]) + __double_as_longlong(d[1]) + __float_as_uint(f[1]) + __double2hiint(d[0]);
    f[3] = __int2float_rz(n[0]) + __ull2float_rn(v[0]) + __double2float_ru(d[0]) + __int_as_float(n[1]);
    d[1] = __hiloint2double(n[0], n[1]) + __ll2double_rd(l[0]) + __uint2double_rn(u[0]) + (double)f[0];
    n[2] = __float2int_rn(f[0]) + __double2int_ru(d[1]) + (int)f[1] + (short)f[2] + (unsigned char)f[3] +
           (char)d[2];
}
