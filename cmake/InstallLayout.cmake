# Where `cmake --install` puts things, below any prefix, by GNUInstallDirs:
#
#   bin/                 smt, smtd, smt-rewrite, smt-index
#   SMT_LIBRARY_DIR      lib/smt/: libsmt.so, cudart/libcudart.so.*, the demo's programs. Never lib/ itself:
#                        ldconfig would link libsmt.so's SONAME there, libcuda.so.1, and every program would
#                        get it as its driver.
#   SMT_PROGRAM_DIR      libexec/smt/: what only smt and smtd start
#   include/smt/, share/ the header of rewritten files; man pages, completions, documents
#
# The programs find each other from their own places, by the relative paths in install_layout.gen.h, so that
# the installed tree can be moved.
include(GNUInstallDirs)
set(SMT_LIBRARY_DIR ${CMAKE_INSTALL_LIBDIR}/smt)
set(SMT_PROGRAM_DIR ${CMAKE_INSTALL_LIBEXECDIR}/smt)

set(full_bin ${CMAKE_INSTALL_FULL_BINDIR})
file(RELATIVE_PATH SMT_LIBRARIES_FROM_BIN ${full_bin} ${CMAKE_INSTALL_FULL_LIBDIR}/smt)
file(RELATIVE_PATH SMT_PROGRAMS_FROM_BIN ${full_bin} ${CMAKE_INSTALL_FULL_LIBEXECDIR}/smt)
file(RELATIVE_PATH SMT_BIN_FROM_LIBRARIES ${CMAKE_INSTALL_FULL_LIBDIR}/smt ${full_bin})
configure_file(${CMAKE_CURRENT_LIST_DIR}/install_layout.h.in
    ${CMAKE_BINARY_DIR}/generated/install_layout.gen.h)
