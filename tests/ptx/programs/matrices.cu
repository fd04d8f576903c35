// Tensor cores through WMMA, half and bfloat16, the small floats.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>

using namespace nvcuda;

__global__ void tensor_cores(const half* a, const half* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

__global__ void integer_cores(const signed char* a, const signed char* b, int* c) {
    wmma::fragment<wmma::matrix_a, 32, 8, 16, signed char, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, signed char, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 32, 8, 16, int> fc;
    wmma::load_matrix_sync(fc, c, 16, wmma::mem_col_major);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc, true);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_col_major);
}

#if __CUDA_ARCH__ >= 800
__global__ void double_cores(const double* a, const double* b, double* c) {
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> fc;
    wmma::fill_fragment(fc, 0.0);
    wmma::load_matrix_sync(fa, a, 4);
    wmma::load_matrix_sync(fb, b, 4);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 8, wmma::mem_row_major);
}
#endif

__global__ void halves(half* out, const half* in, half2* pairs) {
    half a = in[0], b = in[1];
    half r = __hadd(a, b) * a - b / a + __hfma(a, b, a) + hexp(a) + hlog(b) + hsqrt(a) + hrcp(b) + hsin(a) +
             __hmax(a, b);
    half2 p = __hadd2(pairs[0], pairs[1]) * pairs[0] + h2exp2(pairs[1]) + __hmin2(pairs[0], pairs[1]) +
              __habs2(pairs[0]);
    if (__hgt(a, b) && __hbgt2(pairs[0], pairs[1])) r += __low2half(p);
    out[0] = r + __float2half_rz(__half2float(a) * 2) + __int2half_rn(threadIdx.x) + __ushort_as_half(7);
    out[1] = __double2half(1.5 * threadIdx.x);
    pairs[2] = p + __floats2half2_rn(1.0f, threadIdx.x);
    atomicAdd(out + 2, a);
    atomicAdd(pairs + 3, p);
}

#if __CUDA_ARCH__ >= 800
__global__ void brains(__nv_bfloat16* out, const __nv_bfloat16* in, __nv_bfloat162* pairs) {
    __nv_bfloat16 a = in[0], b = in[1];
    out[0] = __hadd(a, b) * a - b / a + __hfma(a, b, a) + hexp(a) + hsqrt(a) + __hmax(a, b) + __habs(a);
    pairs[2] = __hadd2(pairs[0], pairs[1]) * pairs[0] + __hfma2(pairs[0], pairs[1], pairs[0]) +
               __hmin2(pairs[0], pairs[1]);
    out[1] = __float2bfloat16(__bfloat162float(a) * 3) + __int2bfloat16_rn(threadIdx.x);
    if (__hlt(a, b)) atomicAdd(out + 2, a);
}

#endif

__global__ void eights(__nv_fp8_e4m3* out, float* in) {
    out[0] = __nv_fp8_e4m3(in[0]);
    in[1] = float(out[1]) + float(__nv_fp8_e5m2(in[2]));
}
