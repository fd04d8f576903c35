// Textures and surfaces.
#include <cuda_runtime.h>

__global__ void textures(float4* out, cudaTextureObject_t t, float x, float y, float z) {
    out[0] = tex1D<float4>(t, x);
    out[1] = tex2D<float4>(t, x, y);
    out[2] = tex3D<float4>(t, x, y, z);
    out[3] = tex1DLayered<float4>(t, x, 1);
    out[4] = tex2DLayered<float4>(t, x, y, 2);
    out[5] = texCubemap<float4>(t, x, y, z);
    out[6] = texCubemapLayered<float4>(t, x, y, z, 1);
    out[7] = tex2DLod<float4>(t, x, y, z);
    out[8] = tex2DGrad<float4>(t, x, y, make_float2(x, y), make_float2(y, x));
    out[9] = tex2Dgather<float4>(t, x, y, 2);
    out[10].x = tex1Dfetch<float>(t, 5);
    out[11].x = tex2D<unsigned char>(t, x, y) + tex1Dfetch<int2>(t, 7).y;
}

__global__ void surfaces(int* out, cudaSurfaceObject_t s, int x, int y) {
    out[0] = surf1Dread<int>(s, 4 * x);
    out[1] = surf2Dread<int4>(s, 16 * x, y).z;
    out[2] = surf3Dread<short>(s, 2 * x, y, 3, cudaBoundaryModeClamp);
    out[3] = surf2DLayeredread<unsigned char>(s, x, y, 1, cudaBoundaryModeZero);
    surf1Dwrite(x, s, 4 * x);
    surf2Dwrite(make_float4(1, 2, 3, 4), s, 16 * x, y);
    surf3Dwrite(make_short2(1, 2), s, 4 * x, y, 3, cudaBoundaryModeClamp);
}
