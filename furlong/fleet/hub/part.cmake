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
