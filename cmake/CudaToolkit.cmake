# Finds a CUDA toolkit: its headers (always needed) and nvcc (needed for the GPU tests only).
# Places, in order: SMT_CUDA_DIR, CUDA_HOME, /usr/local/cuda, /usr/local/cuda-13*, the nvcc on PATH,
# build/cuda (where bootstrap.sh unpacks NVIDIA's wheels).
#
#   SMT_CUDA_INCLUDE_DIR   folder of cuda.h
#   SMT_CUDA_DIR           the toolkit's root
#   SMT_NVCC               nvcc, or SMT_NVCC-NOTFOUND
#
# The driver library is never linked: smtd and libsmt.so open it at run time.
set(SMT_CUDA_DIR "" CACHE PATH "Root of the CUDA toolkit; empty: look for one")
set(SMT_CUDA_MINIMUM 13000)

set(candidates ${SMT_CUDA_DIR} $ENV{CUDA_HOME} /usr/local/cuda)
file(GLOB versioned /usr/local/cuda-13*)
list(SORT versioned COMPARE NATURAL ORDER DESCENDING)
list(APPEND candidates ${versioned})
find_program(path_nvcc nvcc NO_CACHE)
if(path_nvcc)
    file(REAL_PATH ${path_nvcc} path_nvcc)
    cmake_path(GET path_nvcc PARENT_PATH path_bin)
    cmake_path(GET path_bin PARENT_PATH path_root)
    list(APPEND candidates ${path_root})
endif()
list(APPEND candidates ${PROJECT_SOURCE_DIR}/build/cuda/nvidia/cu13)

unset(found)
foreach(root IN LISTS candidates)
    if(NOT EXISTS ${root}/include/cuda.h OR NOT EXISTS ${root}/include/cudaTypedefs.h)
        continue()
    endif()
    file(STRINGS ${root}/include/cuda.h line REGEX "^#define CUDA_VERSION [0-9]+")
    string(REGEX MATCH "[0-9]+" version "${line}")
    if(version LESS SMT_CUDA_MINIMUM)
        message(STATUS "CUDA toolkit ${root} is too old (${version}), need ${SMT_CUDA_MINIMUM}")
        continue()
    endif()
    set(found ${root})
    break()
endforeach()
if(NOT found)
    list(JOIN candidates ", " looked)
    message(FATAL_ERROR "no CUDA 13 toolkit in ${looked}. Run ./bootstrap.sh build, which fetches one, "
                        "or say where it is with -DSMT_CUDA_DIR=...")
endif()

set(SMT_CUDA_DIR ${found})
set(SMT_CUDA_INCLUDE_DIR ${found}/include)
find_program(SMT_NVCC nvcc PATHS ${found}/bin NO_DEFAULT_PATH)
message(STATUS "CUDA toolkit: ${SMT_CUDA_DIR} (${version}), nvcc: ${SMT_NVCC}")

# smt_nvcc_object(OBJECT SOURCE COMMENT [OPTIONS ...] [DEPENDS ...]). ccache goes by the files that nvcc says
# it has read, and not by preprocessed text, of which there is one for the host and one for each architecture.
# It does not go by the options that nvcc takes from these variables, so with one of them nvcc runs alone. Of
# the toolkit it goes by nvcc itself, and not by ptxas and cicc, which are installed together with nvcc.
set(nvcc_variables "$ENV{NVCC_PREPEND_FLAGS}$ENV{NVCC_APPEND_FLAGS}$ENV{NVCC_CCBIN}")
if(CCACHE AND nvcc_variables STREQUAL "")
    set(nvcc_ccache ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_DIRECT=1 ${CCACHE})
else()
    set(nvcc_ccache)
endif()
function(smt_nvcc_object object source comment)
    cmake_parse_arguments(PARSE_ARGV 3 made "" "" "OPTIONS;DEPENDS")
    add_custom_command(OUTPUT ${object}
        COMMAND ${nvcc_ccache} ${SMT_NVCC} ${made_OPTIONS} -MD -MF ${object}.d -c ${source} -o ${object}
        DEPENDS ${source} ${made_DEPENDS} COMMENT "nvcc ${comment}" VERBATIM)
endfunction()

# nvPTXCompiler, a static library that some toolkits lack: bootstrap.sh fetches it into build/. Without it the
# driver compiles PTX.
set(ptx_compiler_roots ${SMT_CUDA_DIR} ${PROJECT_SOURCE_DIR}/build/nvptxcompiler/nvidia/cu13)
find_library(SMT_PTX_COMPILER_LIBRARY libnvptxcompiler_static.a PATHS ${ptx_compiler_roots}
             PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib NO_DEFAULT_PATH)
find_path(SMT_PTX_COMPILER_INCLUDE_DIR nvPTXCompiler.h PATHS ${ptx_compiler_roots}
    PATH_SUFFIXES include targets/x86_64-linux/include NO_DEFAULT_PATH)
if(NOT SMT_PTX_COMPILER_INCLUDE_DIR)
    unset(SMT_PTX_COMPILER_LIBRARY CACHE)
endif()
if(NOT SMT_PTX_COMPILER_LIBRARY)
    message(STATUS
        "no libnvptxcompiler_static.a in ${ptx_compiler_roots}: "
        "smtd's driver compiles PTX, not the compile worker")
endif()
