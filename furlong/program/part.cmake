# The lottery's program file is built into the library, so that a new worker races old packs with the lattice that
# it was built with, wherever it is installed.
set(furlong_lottery_toml ${PROJECT_SOURCE_DIR}/programs/lottery/lottery.toml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${furlong_lottery_toml})
file(READ ${furlong_lottery_toml} FURLONG_LOTTERY_TOML)
configure_file(${dir}/lottery/shipped.cpp.in ${PROJECT_BINARY_DIR}/generated/program/lottery/shipped.cpp @ONLY)
target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/generated/program/lottery/shipped.cpp)

# Likewise those of linear algebra, so that a host program needs no file beside it.
foreach(name gemm gemm_real gemv)
  set(furlong_linear_toml ${PROJECT_SOURCE_DIR}/programs/linear/${name}.toml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${furlong_linear_toml})
  string(TOUPPER ${name} upper_name)
  file(READ ${furlong_linear_toml} FURLONG_LINEAR_${upper_name}_TOML)
endforeach()
configure_file(${dir}/linear/shipped_texts.cpp.in ${PROJECT_BINARY_DIR}/generated/program/linear/shipped_texts.cpp @ONLY)
target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/generated/program/linear/shipped_texts.cpp)
