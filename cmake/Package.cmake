# What is installed beside the programs, and `cpack -G DEB`: see docs/install.md.
file(GLOB documents ${PROJECT_SOURCE_DIR}/docs/*.md)
install(FILES ${documents} DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_CURRENT_LIST_DIR}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The server for several users, which an administrator enables: always lib/, where systemd looks.
install(FILES ${CMAKE_CURRENT_LIST_DIR}/smtd@.service DESTINATION lib/systemd/system)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/smt.sysusers DESTINATION lib/sysusers.d RENAME smt.conf)

# What `smt demo` becomes, in the build, too. Its programs are examples/'s, no part of `all`.
configure_file(${PROJECT_SOURCE_DIR}/tools/demo.sh ${PROJECT_BINARY_DIR}/libexec/smt/demo.sh COPYONLY)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/demo.sh DESTINATION ${SMT_PROGRAM_DIR})
if(NOT TARGET demo_programs)   # no nvcc
    add_custom_target(demo_programs)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME smt)
set(CPACK_PACKAGE_CONTACT "smt's maintainers <smt@localhost>" CACHE STRING "Maintainer of the package")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "CUDA programs share one GPU, unmodified")
set(CPACK_PACKAGE_DESCRIPTION
    "A library stands in for the CUDA driver in each program and hands what the program\n\
asks to a server, which owns the GPU's one context and orders, preempts and places the\n\
kernels of all programs. Without a GPU a simulated device runs them. No CUDA toolkit is\n\
needed; NVRTC and nvJitLink are used where they are found.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# libcuda.so.1 and libcudart.so.* are libraries of this package's, of folders that only smt puts in a
# program's way.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS $<TARGET_FILE_DIR:smt> $<TARGET_FILE_DIR:smt_cudart>)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "bash-completion, man-db")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
include(CPack)
