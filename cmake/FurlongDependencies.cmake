# The third-party libraries, in one place. Parts link the names that are set here (FURLONG_FMT and so on), because with
# FURLONG_PORTABLE they stand for something else: Debian's fmt, spdlog and toml++ have no static library, so their
# header-only modes are taken, and of everything else the archive (.a), so that a program needs only glibc.
if(FURLONG_PORTABLE)
  if(FURLONG_SANITIZE)
    message(FATAL_ERROR "FURLONG_PORTABLE and FURLONG_SANITIZE exclude each other: the sanitizers' runtimes need more than glibc")
  endif()
  # For every find_package and pkg_check_modules below this line, also those of bench/: a library without an archive is
  # then an error at configuration and not a dependency of the program.
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With fmt in the headers g++ 12 inlines otherwise and takes a moved std::expected for uninitialized. The release
    # preset compiles the same sources with this warning.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
  # No folder of the machine that built it stands in what is carried.
  add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
  add_link_options(-static-libstdc++ -static-libgcc)
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(tomlplusplus REQUIRED)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)

set(FURLONG_JSON nlohmann_json::nlohmann_json)
set(FURLONG_SODIUM PkgConfig::SODIUM)
set(FURLONG_SQLITE SQLite::SQLite3)
set(FURLONG_ZLIB ZLIB::ZLIB)
if(FURLONG_PORTABLE)
  set(FURLONG_FMT fmt::fmt-header-only)
  # spdlog's own header-only target links the shared fmt.
  add_library(furlong_portable_spdlog INTERFACE IMPORTED)
  target_include_directories(furlong_portable_spdlog SYSTEM INTERFACE
    $<TARGET_PROPERTY:spdlog::spdlog_header_only,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(furlong_portable_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
  target_link_libraries(furlong_portable_spdlog INTERFACE ${FURLONG_FMT} Threads::Threads)
  set(FURLONG_SPDLOG furlong_portable_spdlog)
  add_library(furlong_portable_toml INTERFACE IMPORTED)
  target_include_directories(furlong_portable_toml SYSTEM INTERFACE
    $<TARGET_PROPERTY:tomlplusplus::tomlplusplus,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(furlong_portable_toml INTERFACE TOML_HEADER_ONLY=1)
  set(FURLONG_TOML furlong_portable_toml)
else()
  set(FURLONG_FMT fmt::fmt)
  set(FURLONG_SPDLOG spdlog::spdlog)
  set(FURLONG_TOML tomlplusplus::tomlplusplus)
endif()

# Every program goes through here. In a portable build it is read once it is linked, and one that would not start on a
# bare machine fails the build.
function(furlong_program target)
  if(FURLONG_PORTABLE)
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/tools/portable)
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
      COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/portable --quiet --source ${PROJECT_SOURCE_DIR}
        $<TARGET_FILE:${target}>)
  endif()
endfunction()
if(FURLONG_PORTABLE)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
