#pragma once
// What the library and a compiled host kernel share. The macro is expanded here for the library and
// turned into text for the prelude of every kernel (prelude.cpp), so the two cannot drift apart.
//
// furlong_block, which every host kernel takes as its first parameter `const furlong_block& block`:
//   x, y, z                      this block's place in the grid
//   grid_x, grid_y, grid_z       blocks in the grid
//   threads_x, threads_y, threads_z   threads of a block: a host kernel loops over them itself
//   shared, shared_bytes         the launch's dynamic shared bytes: scratch for this block, 64-byte aligned,
//                                contents undefined
//   services                     for the CUDA shim only (cuda_shim.h)

#define FURLONG_HOST_ABI                                            \
  struct furlong_block {                                            \
    unsigned long long x, y, z;                                     \
    unsigned long long grid_x, grid_y, grid_z;                      \
    unsigned threads_x, threads_y, threads_z;                       \
    void* shared;                                                   \
    unsigned long long shared_bytes;                                \
    const void* services;                                           \
  };                                                                \
  struct furlong_parameter {                                        \
    unsigned size;                                                  \
    unsigned is_pointer;                                            \
  };                                                                \
  struct furlong_entry {                                            \
    const char* name;                                               \
    unsigned parameter_count;                                       \
    const furlong_parameter* parameters;                            \
    int (*run)(const furlong_block& block, void* const* arguments); \
  };

namespace furlong::device::host {
FURLONG_HOST_ABI
}
