# {fmt} as a static library that is compiled once: smt_fmt. With fmt's headers alone each file compiles all of
# it, which is most of the time of a build; with Debian's shared library a program does not run on a machine
# that has smt and no fmt.
find_package(fmt 9 REQUIRED)   # Debian's libfmt-dev
add_library(smt_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cpp)
if(fmt_VERSION VERSION_LESS 10)
    target_include_directories(smt_fmt
        SYSTEM PUBLIC $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
else()
    message(STATUS
        "fmt ${fmt_VERSION}: each file compiles all of it; fmt.cpp instantiates what fmt 9 declares")
    target_link_libraries(smt_fmt PUBLIC fmt::fmt-header-only)
endif()
