// The check after almost every call of the driver, in both programs. Includes cuda.h only.
#pragma once

#include <cuda.h>

// Returns from the calling function with the CUresult of `...`, an expression, unless it is CUDA_SUCCESS.
#define SMT_TRY(...)                                                                     \
    do {                                                                                 \
        if (const CUresult status_of_try = (__VA_ARGS__); status_of_try != CUDA_SUCCESS) \
            return status_of_try;                                                        \
    } while (false)
