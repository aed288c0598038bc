# The installed library: every part's target and public headers, and find_package(Furlong).
if(FURLONG_PORTABLE)  # installs the program alone: its library links what only this build knows
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(targets furlong_everything)
foreach(part ${FURLONG_PARTS})
  furlong_target_name(${part} target)
  list(APPEND targets ${target})
endforeach()
set_target_properties(furlong_everything PROPERTIES EXPORT_NAME furlong)
install(TARGETS ${targets} EXPORT FurlongTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY furlong DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h"
  PATTERN "internal" EXCLUDE
  PATTERN "testdata" EXCLUDE
  PATTERN "*_fuzz" EXCLUDE)
install(EXPORT FurlongTargets NAMESPACE Furlong:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Furlong)
configure_package_config_file(cmake/FurlongConfig.cmake.in ${PROJECT_BINARY_DIR}/FurlongConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Furlong)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/FurlongConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/FurlongConfig.cmake ${PROJECT_BINARY_DIR}/FurlongConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Furlong)
