#pragma once
// The part of NVIDIA's driver interface that the back end uses, declared here (so that no vendor header is
// needed to build) and bound at run time. Numbers are those of NVIDIA's documentation of the driver API;
// driver_api_test.cpp compares them with NVIDIA's header where that is installed.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "furlong/base/error.h"

namespace furlong::device::cuda {

using Card = int;  // CUdevice
using Context = struct ContextTag*;
using ModuleHandle = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;
using Address = std::uint64_t;  // CUdeviceptr, in the card's memory
using Status32 = int;           // CUresult

enum : Status32 {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForCard = 209,
  kEccUncorrectable = 214,
  kNvlinkUncorrectable = 220,
  kUnsupportedPtxVersion = 222,
  kInvalidHandle = 400,
  kNotFound = 500,
  kIllegalAddress = 700,
  kOutOfResources = 701,
  kLaunchTimeout = 702,
  kContextDestroyed = 709,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kContained = 721,
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kDriverMismatch = 803,
  kCompatNotSupported = 804,
  kMpsClientEnded = 809,
  kUnknown = 999,
};

enum : int {
  kAttributeMaxThreadsPerBlock = 1,
  kAttributeMaxBlockX = 2,
  kAttributeMaxBlockY = 3,
  kAttributeMaxBlockZ = 4,
  kAttributeMaxGridX = 5,
  kAttributeMaxGridY = 6,
  kAttributeMaxGridZ = 7,
  kAttributeSharedPerBlock = 8,
  kAttributeWarpSize = 10,
  kAttributeRegistersPerBlock = 12,
  kAttributeMultiprocessors = 16,
  kAttributeIntegrated = 18,
  kAttributeComputeMode = 20,
  kAttributePciBus = 33,
  kAttributePciDevice = 34,
  kAttributeMemoryClockKhz = 36,
  kAttributeL2Bytes = 38,
  kAttributeThreadsPerMultiprocessor = 39,
  kAttributePciDomain = 50,
  kAttributeMajor = 75,
  kAttributeMinor = 76,
  kAttributeSharedPerBlockOptin = 97,
};
enum : int {
  kFunctionMaxThreads = 0,
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicShared = 8,
};
constexpr unsigned kContextBlockingSync = 4;
constexpr unsigned kStreamNonBlocking = 1;
constexpr int kCaptureThreadLocal = 1;
constexpr int kComputeModeExclusive = 3;  // one process at a time
constexpr int kComputeModeProhibited = 2;

struct Uuid {
  std::uint8_t bytes[16];
};

/// name in this struct, parameters, the names in the library, newest first. Each returns CUresult. Required:
/// a driver for CUDA 11.2 or newer has them all.
#define FURLONG_CUDA_REQUIRED(X)                                                                     \
  X(init, (unsigned), "cuInit")                                                                      \
  X(driver_version, (int*), "cuDriverGetVersion")                                                    \
  X(card_count, (int*), "cuDeviceGetCount")                                                          \
  X(card, (Card*, int), "cuDeviceGet")                                                               \
  X(card_name, (char*, int, Card), "cuDeviceGetName")                                                \
  X(card_attribute, (int*, int, Card), "cuDeviceGetAttribute")                                       \
  X(card_memory, (std::size_t*, Card), "cuDeviceTotalMem_v2")                                        \
  X(create_context, (Context*, unsigned, Card), "cuCtxCreate_v2")                                    \
  X(destroy_context, (Context), "cuCtxDestroy_v2")                                                   \
  X(set_context, (Context), "cuCtxSetCurrent")                                                       \
  X(memory_info, (std::size_t*, std::size_t*), "cuMemGetInfo_v2")                                    \
  X(allocate, (Address*, std::size_t), "cuMemAlloc_v2")                                              \
  X(free, (Address), "cuMemFree_v2")                                                                 \
  X(allocate_pinned, (void**, std::size_t, unsigned), "cuMemHostAlloc")                              \
  X(free_pinned, (void*), "cuMemFreeHost")                                                           \
  X(copy_to_card, (Address, const void*, std::size_t, Stream), "cuMemcpyHtoDAsync_v2")               \
  X(copy_to_host, (void*, Address, std::size_t, Stream), "cuMemcpyDtoHAsync_v2")                     \
  X(fill_bytes, (Address, unsigned char, std::size_t, Stream), "cuMemsetD8Async")                    \
  X(load_module, (ModuleHandle*, const void*), "cuModuleLoadData")                                   \
  X(unload_module, (ModuleHandle), "cuModuleUnload")                                                 \
  X(find_function, (Function*, ModuleHandle, const char*), "cuModuleGetFunction")                    \
  X(function_attribute, (int*, int, Function), "cuFuncGetAttribute")                                 \
  X(set_function_attribute, (Function, int, int), "cuFuncSetAttribute")                              \
  X(launch,                                                                                          \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, \
     void**),                                                                                        \
    "cuLaunchKernel")                                                                                \
  X(create_stream, (Stream*, unsigned), "cuStreamCreate")                                            \
  X(destroy_stream, (Stream), "cuStreamDestroy_v2")                                                  \
  X(wait_stream, (Stream), "cuStreamSynchronize")                                                    \
  X(create_event, (Event*, unsigned), "cuEventCreate")                                               \
  X(destroy_event, (Event), "cuEventDestroy_v2")                                                     \
  X(record_event, (Event, Stream), "cuEventRecord")                                                  \
  X(wait_event, (Event), "cuEventSynchronize")                                                       \
  X(elapsed_ms, (float*, Event, Event), "cuEventElapsedTime_v2", "cuEventElapsedTime")

/// Optional, one by one. Without error_name and error_text numbers are shown; without uuid a card is known by
/// its place; without occupancy it is not told; without parameter_info a launch's arguments are not checked;
/// without any of the graph functions a batch is enqueued launch by launch.
#define FURLONG_CUDA_OPTIONAL(X)                                                               \
  X(error_name, (Status32, const char**), "cuGetErrorName")                                    \
  X(error_text, (Status32, const char**), "cuGetErrorString")                                  \
  X(uuid, (Uuid*, Card), "cuDeviceGetUuid_v2", "cuDeviceGetUuid")                              \
  X(blocks_per_multiprocessor, (int*, Function, int, std::size_t),                             \
    "cuOccupancyMaxActiveBlocksPerMultiprocessor")                                             \
  X(parameter_info, (Function, std::size_t, std::size_t*, std::size_t*), "cuFuncGetParamInfo") \
  X(begin_capture, (Stream, int), "cuStreamBeginCapture_v2")                                   \
  X(end_capture, (Stream, Graph*), "cuStreamEndCapture")                                       \
  X(instantiate, (GraphExec*, Graph, unsigned long long), "cuGraphInstantiateWithFlags")       \
  X(launch_graph, (GraphExec, Stream), "cuGraphLaunch")                                        \
  X(destroy_graph, (Graph), "cuGraphDestroy")                                                  \
  X(destroy_graph_exec, (GraphExec), "cuGraphExecDestroy")

struct Api {
#define FURLONG_CUDA_MEMBER(member, parameters, ...) Status32(*member) parameters = nullptr;
  FURLONG_CUDA_REQUIRED(FURLONG_CUDA_MEMBER)
  FURLONG_CUDA_OPTIONAL(FURLONG_CUDA_MEMBER)
#undef FURLONG_CUDA_MEMBER
  std::string file;      ///< or name, of the library that was opened
  int version = 0;       ///< newest CUDA that the driver runs: 13000 is 13.0
  Status32 started = 0;  ///< what init answered

  bool has_graphs() const {
    return begin_capture != nullptr && end_capture != nullptr && instantiate != nullptr &&
           launch_graph != nullptr && destroy_graph != nullptr && destroy_graph_exec != nullptr;
  }
  /// "CUDA_ERROR_ILLEGAL_ADDRESS (700)"
  std::string name_of(Status32 code) const;
  /// The attribute's value; `fallback` where the driver does not know it.
  int attribute(Card card, int which, int fallback = 0) const;
};

/// The driver's functions, from $FURLONG_CUDA_DRIVER (a file) or libcuda.so.1. Opened and started once, never
/// closed. Thread safe. `unavailable` where there is none, saying what to install; `incompatible` names the
/// function that a too old one lacks. Where starting it fails, Api::started tells the code.
Result<const Api*> load_driver();
/// A given library, not kept. For tests.
Result<Api> bind_driver(const std::string& library);

/// What to do about a failure to start or to open a card; empty where the code tells nothing.
std::string_view start_advice(Status32 code);

/// `exhausted`, `unavailable`, `incompatible`, `timeout`, else `internal`, with the code's name and what to
/// do where the code tells.
Error error_of(const Api& api, Status32 code, std::string_view doing);
/// The same for a launch that the driver refuses: `invalid` for its shape or arguments.
Error launch_error(const Api& api, Status32 code, std::string_view doing);
/// Whether a kernel's own doing brings this code: a wild access, a trap, an assert, a time limit.
bool blames_kernel(Status32 code);
/// Whether the context is gone after this code, with every buffer and module in it.
bool loses_context(Status32 code);

}  // namespace furlong::device::cuda
