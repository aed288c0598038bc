target_link_libraries(${target} PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
