pkg_check_modules(LMDB REQUIRED IMPORTED_TARGET lmdb)
target_link_libraries(${target} PRIVATE PkgConfig::LMDB)
