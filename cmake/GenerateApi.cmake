# Generates the driver's API from its table (runtime/protocol/api/) into ${CMAKE_BINARY_DIR}/generated.
#
#   smt_generated                the target that produces it; depend on it
#   generated_headers            all that sources include and the build generates: for tools/tidy.py
#   SMT_GENERATED_DIR            the include folder
#   SMT_GENERATED_CLIENT_SOURCES what libsmt.so compiles
#   SMT_GENERATED_SERVER_SOURCES what smtd compiles
#   SMT_EXPORTS_MAP              the linker's version script of libsmt.so

set(SMT_GENERATED_DIR ${CMAKE_BINARY_DIR}/generated)
set(SMT_API_DIR ${PROJECT_SOURCE_DIR}/runtime/protocol/api)

execute_process(
    COMMAND ${Python3_EXECUTABLE} -B ${SMT_API_DIR}/generate.py --list
    OUTPUT_VARIABLE names OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" names "${names}")
list(TRANSFORM names PREPEND ${SMT_GENERATED_DIR}/ OUTPUT_VARIABLE generated)

file(GLOB api_inputs CONFIGURE_DEPENDS ${SMT_API_DIR}/*.api ${SMT_API_DIR}/*.py)

# The files are written only when they change, so the stamp is what the build compares.
add_custom_command(
    OUTPUT ${SMT_GENERATED_DIR}/stamp
    BYPRODUCTS ${generated}
    COMMAND ${Python3_EXECUTABLE} -B ${SMT_API_DIR}/generate.py ${SMT_GENERATED_DIR}
    COMMAND ${CMAKE_COMMAND} -E touch ${SMT_GENERATED_DIR}/stamp
    DEPENDS ${api_inputs}
    COMMENT "Generating the driver API from its table"
    VERBATIM)

set(SMT_GENERATED_CLIENT_SOURCES ${SMT_GENERATED_DIR}/stubs.gen.cpp)
set(SMT_GENERATED_SERVER_SOURCES ${SMT_GENERATED_DIR}/handlers.gen.cpp)
set(SMT_EXPORTS_MAP ${SMT_GENERATED_DIR}/exports.gen.map)
set_source_files_properties(${SMT_GENERATED_CLIENT_SOURCES} ${SMT_GENERATED_SERVER_SOURCES}
    ${SMT_GENERATED_DIR}/signature_check.gen.cpp PROPERTIES GENERATED TRUE)

# The same for our CUDA runtime (runtime/device/simulated/cudart/), whose CMakeLists.txt names the files.
set(SMT_CUDART_DIR ${PROJECT_SOURCE_DIR}/runtime/device/simulated/cudart)
execute_process(
    COMMAND ${Python3_EXECUTABLE} -B ${SMT_CUDART_DIR}/generate.py --list
    OUTPUT_VARIABLE names OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" names "${names}")
list(TRANSFORM names PREPEND ${SMT_GENERATED_DIR}/ OUTPUT_VARIABLE cudart_generated)
file(GLOB cudart_inputs CONFIGURE_DEPENDS ${SMT_CUDART_DIR}/api/*.api
    ${SMT_CUDART_DIR}/older/*.api)
add_custom_command(
    OUTPUT ${SMT_GENERATED_DIR}/cudart_stamp
    BYPRODUCTS ${cudart_generated}
    COMMAND ${Python3_EXECUTABLE} -B ${SMT_CUDART_DIR}/generate.py ${SMT_GENERATED_DIR}
    COMMAND ${CMAKE_COMMAND} -E touch ${SMT_GENERATED_DIR}/cudart_stamp
    DEPENDS ${cudart_inputs} ${SMT_CUDART_DIR}/generate.py
    COMMENT "Generating the CUDA runtime from its table"
    VERBATIM)
set_source_files_properties(${cudart_generated} PROPERTIES GENERATED TRUE)

add_custom_target(smt_generated DEPENDS ${SMT_GENERATED_DIR}/stamp ${SMT_GENERATED_DIR}/cudart_stamp)
add_custom_target(generated_headers)
add_dependencies(generated_headers smt_generated)

# Compiles to nothing: it is the compiler's comparison of the table with cuda.h.
add_library(smt_signature_check OBJECT ${SMT_GENERATED_DIR}/signature_check.gen.cpp)
add_dependencies(smt_signature_check smt_generated)
target_include_directories(smt_signature_check SYSTEM PRIVATE ${SMT_CUDA_INCLUDE_DIR})
target_compile_features(smt_signature_check PRIVATE cxx_std_20)
