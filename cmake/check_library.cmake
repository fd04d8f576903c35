# Fails the build when a library for other people's processes needs more than a glibc of the oldest version
# that they may have, or brings a static constructor.
#   cmake -DREADELF=... -DLIBRARY=... -DSONAME=... -DGLIBC_FLOOR=... -P check_library.cmake
cmake_minimum_required(VERSION 3.25)

function(read_elf option result)
    execute_process(COMMAND ${READELF} ${option} -W ${LIBRARY}
        OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

read_elf(-d dynamic)
string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*\\[[^]]+\\]" needed "${dynamic}")
set(libc "libc\\.so\\.6|libpthread\\.so\\.0|libdl\\.so\\.2|ld-linux-x86-64\\.so\\.2")
foreach(line IN LISTS needed)
    if(NOT line MATCHES "\\[(${libc})\\]$")
        file(REMOVE ${LIBRARY})
        message(FATAL_ERROR "${LIBRARY} may need libc only, but: ${line}")
    endif()
endforeach()
foreach(older IN ITEMS libpthread.so.0 libdl.so.2)
    if(NOT dynamic MATCHES "\\[${older}\\]")
        file(REMOVE ${LIBRARY})
        message(FATAL_ERROR "${LIBRARY} does not need ${older}, which older glibc have functions in")
    endif()
endforeach()
read_elf(--dyn-syms symbols)
string(REGEX MATCHALL " UND [^\n]*@[^\n ]+" asked "${symbols}")
foreach(symbol IN LISTS asked)
    if(NOT symbol MATCHES "@GLIBC_([0-9.]+)$" OR CMAKE_MATCH_1 VERSION_GREATER GLIBC_FLOOR)
        file(REMOVE ${LIBRARY})
        string(REPLACE " UND " "" symbol "${symbol}")
        message(FATAL_ERROR "${LIBRARY} asks for ${symbol}, but runs in programs with glibc ${GLIBC_FLOOR}: \
cmake/older_glibc.h binds functions to older versions")
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
