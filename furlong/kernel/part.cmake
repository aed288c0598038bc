# Kept choices name the version that made them: another one may make other text of the same program.
target_compile_definitions(${target} PRIVATE FURLONG_LIBRARY_VERSION="${PROJECT_VERSION}")
