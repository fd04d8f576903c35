# smt_runs_in_programs(TARGET SONAME): a library for other people's processes. It needs glibc 2.31 or newer
# and nothing else, no libstdc++ either (what would need that is a link error with a name), and brings no
# static constructor. Sanitized libraries need the sanitizer's runtime.
set(SMT_GLIBC_FLOOR 2.31)

function(smt_runs_in_programs target soname)
    if(SMT_SANITIZE)
        return()
    endif()
    set(folder ${PROJECT_SOURCE_DIR}/cmake)
    target_sources(${target} PRIVATE ${folder}/older_glibc.cpp)
    set_source_files_properties(${folder}/older_glibc.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    smt_binds_older_glibc(${target})
    target_link_options(${target} PRIVATE -nodefaultlibs -Wl,--no-undefined -Wl,-z,now)
    # Before glibc 2.34 these two have functions of their own; from then on they are empty.
    target_link_libraries(${target} PRIVATE
        c gcc -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--pop-state)
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${folder}/check_library.cmake)
    add_custom_command(TARGET ${target} POST_BUILD
        COMMAND ${CMAKE_COMMAND} -DREADELF=${CMAKE_READELF} -DLIBRARY=$<TARGET_FILE:${target}>
                -DSONAME=${soname} -DGLIBC_FLOOR=${SMT_GLIBC_FLOOR} -P ${folder}/check_library.cmake
        VERBATIM)
endfunction()

# What such a library is compiled of.
function(smt_binds_older_glibc target)
    if(NOT SMT_SANITIZE)
        target_compile_options(${target} PRIVATE "SHELL:-include ${PROJECT_SOURCE_DIR}/cmake/older_glibc.h")
    endif()
endfunction()
