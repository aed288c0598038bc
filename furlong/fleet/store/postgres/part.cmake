# Headers alone: the library is opened at run time.
pkg_get_variable(FURLONG_LIBPQ_INCLUDE libpq includedir)
find_path(FURLONG_LIBPQ_HEADERS libpq-fe.h HINTS ${FURLONG_LIBPQ_INCLUDE} PATH_SUFFIXES postgresql REQUIRED)
target_include_directories(${target} SYSTEM PUBLIC $<BUILD_INTERFACE:${FURLONG_LIBPQ_HEADERS}>)  # for its tests
