target_link_libraries(${target} PUBLIC nlohmann_json::nlohmann_json PRIVATE tomlplusplus::tomlplusplus spdlog::spdlog PkgConfig::SODIUM SQLite::SQLite3)
