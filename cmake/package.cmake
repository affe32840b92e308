# make install: the libraries, the header, couplet.pc and a CMake package (couplet::couplet, couplet::static).
include(CMakePackageConfigHelpers)

install(TARGETS couplet couplet_shared EXPORT couplet-targets)
install(FILES include/couplet.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# couplet.pc finds its prefix from its own place, so the installation may be moved or staged.
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_LIBDIR absolute)
if(absolute)
    set(CPL_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
    set(CPL_PC_LIBDIR ${CMAKE_INSTALL_LIBDIR})
else()
    file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
    set(CPL_PC_PREFIX "\${pcfiledir}/${up}")
    set(CPL_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_INCLUDEDIR absolute)
if(absolute)
    set(CPL_PC_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
else()
    set(CPL_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(cmake/couplet.pc.in couplet.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/couplet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/couplet)
install(EXPORT couplet-targets NAMESPACE couplet:: DESTINATION ${package_folder})
configure_package_config_file(cmake/couplet-config.cmake.in couplet-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(couplet-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/couplet-config.cmake ${PROJECT_BINARY_DIR}/couplet-config-version.cmake
        DESTINATION ${package_folder})
