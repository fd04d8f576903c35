# Fails the build when a library for other people's processes needs more than libc or brings a static
# constructor.
#   cmake -DREADELF=... -DLIBRARY=... -DSONAME=... -P check_library.cmake
cmake_minimum_required(VERSION 3.25)

function(read_elf option result)
    execute_process(COMMAND ${READELF} ${option} -W ${LIBRARY}
        OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

read_elf(-d dynamic)
string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*\\[[^]]+\\]" needed "${dynamic}")
foreach(line IN LISTS needed)
    if(NOT line MATCHES "\\[(libc\\.so\\.6|ld-linux-x86-64\\.so\\.2)\\]$")
        file(REMOVE ${LIBRARY})
        message(FATAL_ERROR "${LIBRARY} may need libc only, but: ${line}")
    endif()
endforeach()
string(REPLACE "." "\\." soname "${SONAME}")
if(NOT dynamic MATCHES "SONAME[^\n]*\\[${soname}\\]")
    message(FATAL_ERROR "${LIBRARY} must have the soname ${SONAME}")
endif()

# One entry each is the compiler's own (frame_dummy, __do_global_dtors_aux).
if(NOT dynamic MATCHES "INIT_ARRAYSZ\\)[ ]*8 " OR NOT dynamic MATCHES "FINI_ARRAYSZ\\)[ ]*8 ")
    file(REMOVE ${LIBRARY})
    message(FATAL_ERROR "${LIBRARY} has a static constructor or destructor")
endif()
