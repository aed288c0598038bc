# HTTP server: Asio and Beast are headers, compiled once in internal/beast/library.cpp; TLS is OpenSSL's.
find_package(OpenSSL REQUIRED)
find_path(FURLONG_BOOST_INCLUDE_DIR boost/beast/http/basic_parser.hpp REQUIRED)
target_link_libraries(${target} PRIVATE OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
target_include_directories(${target} SYSTEM PRIVATE ${FURLONG_BOOST_INCLUDE_DIR})
target_compile_definitions(${target} PRIVATE BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION
  BOOST_ASIO_NO_DEPRECATED)
if(FURLONG_SANITIZE MATCHES "thread")  # which does not know fences; Asio's queue has a lock besides
  target_compile_definitions(${target} PRIVATE BOOST_ASIO_DISABLE_FENCED_BLOCK)
endif()
# GET /v1/openapi.json is this file, so that the program and its description are of one build.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${dir}/openapi.json)
file(READ ${dir}/openapi.json FURLONG_OPENAPI)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/openapi.cpp @ONLY CONTENT
"// Generated at configuration from furlong/fleet/hub/openapi.json.
#include \"furlong/fleet/hub/openapi.h\"
namespace furlong::fleet {
std::string_view openapi_text() {
  static constexpr std::string_view text = R\"openapi(@FURLONG_OPENAPI@)openapi\";
  return text;
}
}  // namespace furlong::fleet
")
target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/generated/openapi.cpp)
