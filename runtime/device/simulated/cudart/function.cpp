// Kernel functions: their attributes, and the driver's handles for them.
#include "cudart_written.gen.h"

namespace smt::cudart {

namespace {

// The field that receives an attribute.
template <typename T>
struct Field {
    CUfunction_attribute attribute;
    T cudaFuncAttributes::* field;
};
constexpr Field<size_t> kSizes[] = {
    {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &cudaFuncAttributes::sharedSizeBytes},
    {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &cudaFuncAttributes::constSizeBytes},
    {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &cudaFuncAttributes::localSizeBytes},
};
constexpr Field<int> kNumbers[] = {
    {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &cudaFuncAttributes::maxThreadsPerBlock},
    {CU_FUNC_ATTRIBUTE_NUM_REGS, &cudaFuncAttributes::numRegs},
    {CU_FUNC_ATTRIBUTE_PTX_VERSION, &cudaFuncAttributes::ptxVersion},
    {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &cudaFuncAttributes::binaryVersion},
    {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &cudaFuncAttributes::cacheModeCA},
    {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &cudaFuncAttributes::maxDynamicSharedSizeBytes},
    {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &cudaFuncAttributes::preferredShmemCarveout},
    {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &cudaFuncAttributes::clusterDimMustBeSet},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &cudaFuncAttributes::requiredClusterWidth},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &cudaFuncAttributes::requiredClusterHeight},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &cudaFuncAttributes::requiredClusterDepth},
    {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
     &cudaFuncAttributes::clusterSchedulingPolicyPreference},
    {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &cudaFuncAttributes::nonPortableClusterSizeAllowed},
};

}  // namespace

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const RegisteredKernel& kernel) {
    if (!attributes) return cudaErrorInvalidValue;
    *attributes = {};
    int value = 0;
    for (const Field<size_t>& row : kSizes) {
        if (CUresult status = driver().cuFuncGetAttribute(&value, row.attribute, kernel.function))
            return from_driver(status);
        attributes->*row.field = value;
    }
    for (const Field<int>& row : kNumbers) {
        if (CUresult status = driver().cuFuncGetAttribute(&value, row.attribute, kernel.function))
            return from_driver(status);
        attributes->*row.field = value;
    }
    return cudaSuccess;
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const RegisteredKernel& kernel) {
    if (!function) return cudaErrorInvalidValue;
    *function = kernel.function;
    return cudaSuccess;
}

cudaError_t cudaGetKernel(cudaKernel_t* found, const RegisteredKernel& kernel) {
    if (!found) return cudaErrorInvalidValue;
    *found = kernel.kernel;
    return cudaSuccess;
}

}  // namespace smt::cudart
