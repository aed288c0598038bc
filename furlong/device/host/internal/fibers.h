#pragma once
// The threads of one CUDA block as fibers of one system thread, so that barriers and shuffles of the shim
// (cuda_shim.h) can wait. Deterministic: fibers run in order of their thread number.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "furlong/device/host/internal/abi.h"

/// Shared with the shim's prelude as text, as FURLONG_HOST_ABI is.
///   furlong_cuda_state   the running CUDA thread's place, read by threadIdx; set before a fiber goes on
///   furlong_exchange     what the lanes of a warp brought to one warp operation, and which lanes did
///   furlong_services     called by the prelude
#define FURLONG_CUDA_ABI                                                                        \
  struct furlong_uint3 {                                                                        \
    unsigned x, y, z;                                                                           \
  };                                                                                            \
  struct furlong_cuda_state {                                                                   \
    furlong_uint3 thread, block, block_dim, grid_dim;                                           \
    void* shared;                                                                               \
    const void* services;                                                                       \
  };                                                                                            \
  struct furlong_exchange {                                                                     \
    unsigned long long values[32];                                                              \
    unsigned lanes;                                                                             \
  };                                                                                            \
  struct furlong_services {                                                                     \
    int (*run_block)(furlong_cuda_state * state, void (*body)(void* argument), void* argument); \
    unsigned (*sync_block)(int predicate, unsigned* participants);                              \
    const furlong_exchange* (*exchange)(unsigned mask, unsigned long long value);               \
    unsigned (*active_lanes)();                                                                 \
  };

namespace furlong::device::host {
FURLONG_CUDA_ABI

/// What a trampoline of the shim answers besides 0.
enum ShimAnswer : int {
  kShimDeadlock = 1,  ///< threads wait for each other at different barriers
  kShimGridTooLarge,  ///< a side of the grid does not fit 32 bits
  kShimThrew,         ///< a C++ exception left the kernel
  kShimNoMemory,      ///< no memory for the fibers' stacks
};

/// The functions that a shim kernel calls; valid for the whole program, usable from every thread.
const furlong_services& cuda_services();

}  // namespace furlong::device::host
