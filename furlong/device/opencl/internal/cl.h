#pragma once
// The part of the OpenCL 1.2 C interface that the back end uses, declared here (so that no vendor header is
// needed to build) and bound at run time. Numbers are those of the Khronos specification; cl_test.cpp
// compares them with the Khronos headers where those are installed.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::device::cl {

using PlatformId = struct PlatformTag*;
using DeviceId = struct DeviceTag*;
using Context = struct ContextTag*;
using Queue = struct QueueTag*;
using Memory = struct MemoryTag*;
using Program = struct ProgramTag*;
using Kernel = struct KernelTag*;
using Event = struct EventTag*;
using Int = std::int32_t;
using Uint = std::uint32_t;
using Bits = std::uint64_t;
using Properties = std::intptr_t;

enum : Int {
  kSuccess = 0,
  kDeviceNotFound = -1,
  kDeviceNotAvailable = -2,
  kCompilerNotAvailable = -3,
  kAllocationFailure = -4,
  kOutOfResources = -5,
  kOutOfHostMemory = -6,
  kMisalignedSubBuffer = -13,
  kInvalidDevice = -33,
  kInvalidContext = -34,
  kInvalidQueue = -36,
  kInvalidKernelName = -46,
  kInvalidArgIndex = -49,
  kInvalidArgValue = -50,
  kInvalidArgSize = -51,
  kInvalidKernelArgs = -52,
  kInvalidWorkDimension = -53,
  kInvalidWorkGroupSize = -54,
  kInvalidWorkItemSize = -55,
  kInvalidGlobalOffset = -56,
  kInvalidBufferSize = -61,
  kInvalidGlobalSize = -63,
  kPlatformNotFound = -1001,
  kIllegalAccessNv = -9999,
};

enum : Uint {
  kPlatformVersion = 0x0901,
  kPlatformName = 0x0902,
  kDeviceTypeInfo = 0x1000,
  kDeviceMaxComputeUnits = 0x1002,
  kDeviceMaxWorkGroupSize = 0x1004,
  kDeviceMaxWorkItemSizes = 0x1005,
  kDeviceMaxAllocation = 0x1010,
  kDeviceGlobalMemory = 0x101F,
  kDeviceLocalMemory = 0x1023,
  kDeviceName = 0x102B,
  kDeviceVendor = 0x102C,
  kDriverVersion = 0x102D,
  kDeviceVersion = 0x102F,
  kDeviceExtensions = 0x1030,
  kDeviceUuid = 0x106A,     // cl_khr_device_uuid
  kDeviceMajorNv = 0x4000,  // cl_nv_device_attribute_query, as the next two
  kDeviceMinorNv = 0x4001,
  kDeviceWarpNv = 0x4003,
  kDeviceBoardNameAmd = 0x4038,  // cl_amd_device_attribute_query, as the next
  kDeviceWavefrontAmd = 0x4043,
  kProgramBinarySizes = 0x1165,
  kProgramBinaries = 0x1166,
  kProgramBuildLog = 0x1183,
  kKernelArgumentCount = 0x1191,
  kKernelArgAddress = 0x1196,
  kKernelArgTypeName = 0x1198,
  kArgAddressGlobal = 0x119B,
  kArgAddressLocal = 0x119C,
  kArgAddressConstant = 0x119D,
  kArgAddressPrivate = 0x119E,
  kKernelWorkGroupSize = 0x11B0,
  kKernelCompileWorkGroupSize = 0x11B1,
  kKernelLocalMemory = 0x11B2,
  kKernelPrivateMemory = 0x11B4,
  kBufferCreateRegion = 0x1220,
  kProfilingStart = 0x1282,
  kProfilingEnd = 0x1283,
};

constexpr Bits kDeviceTypeCpu = 1u << 1;
constexpr Bits kDeviceTypeAll = 0xFFFFFFFF;
constexpr Bits kQueueProfiling = 1u << 1;
constexpr Bits kMemoryReadWrite = 1u << 0;

struct Region {
  std::size_t origin;
  std::size_t size;
};

/// name in this struct, name in the library, return type, parameters. Required: OpenCL 1.2 has them all.
#define FURLONG_OPENCL_REQUIRED(X)                                                                        \
  X(get_platforms, clGetPlatformIDs, Int, (Uint, PlatformId*, Uint*))                                     \
  X(platform_info, clGetPlatformInfo, Int, (PlatformId, Uint, std::size_t, void*, std::size_t*))          \
  X(get_devices, clGetDeviceIDs, Int, (PlatformId, Bits, Uint, DeviceId*, Uint*))                         \
  X(device_info, clGetDeviceInfo, Int, (DeviceId, Uint, std::size_t, void*, std::size_t*))                \
  X(create_context, clCreateContext, Context,                                                             \
    (const Properties*, Uint, const DeviceId*, void (*)(const char*, const void*, std::size_t, void*),    \
     void*, Int*))                                                                                        \
  X(release_context, clReleaseContext, Int, (Context))                                                    \
  X(create_queue, clCreateCommandQueue, Queue, (Context, DeviceId, Bits, Int*))                           \
  X(release_queue, clReleaseCommandQueue, Int, (Queue))                                                   \
  X(create_buffer, clCreateBuffer, Memory, (Context, Bits, std::size_t, void*, Int*))                     \
  X(create_sub_buffer, clCreateSubBuffer, Memory, (Memory, Bits, Uint, const void*, Int*))                \
  X(release_memory, clReleaseMemObject, Int, (Memory))                                                    \
  X(create_program, clCreateProgramWithSource, Program,                                                   \
    (Context, Uint, const char**, const std::size_t*, Int*))                                              \
  X(build_program, clBuildProgram, Int,                                                                   \
    (Program, Uint, const DeviceId*, const char*, void (*)(Program, void*), void*))                       \
  X(program_info, clGetProgramInfo, Int, (Program, Uint, std::size_t, void*, std::size_t*))               \
  X(build_info, clGetProgramBuildInfo, Int, (Program, DeviceId, Uint, std::size_t, void*, std::size_t*))  \
  X(release_program, clReleaseProgram, Int, (Program))                                                    \
  X(create_kernel, clCreateKernel, Kernel, (Program, const char*, Int*))                                  \
  X(release_kernel, clReleaseKernel, Int, (Kernel))                                                       \
  X(set_argument, clSetKernelArg, Int, (Kernel, Uint, std::size_t, const void*))                          \
  X(kernel_info, clGetKernelInfo, Int, (Kernel, Uint, std::size_t, void*, std::size_t*))                  \
  X(work_group_info, clGetKernelWorkGroupInfo, Int,                                                       \
    (Kernel, DeviceId, Uint, std::size_t, void*, std::size_t*))                                           \
  X(enqueue_kernel, clEnqueueNDRangeKernel, Int,                                                          \
    (Queue, Kernel, Uint, const std::size_t*, const std::size_t*, const std::size_t*, Uint, const Event*, \
     Event*))                                                                                             \
  X(enqueue_write, clEnqueueWriteBuffer, Int,                                                             \
    (Queue, Memory, Uint, std::size_t, std::size_t, const void*, Uint, const Event*, Event*))             \
  X(enqueue_read, clEnqueueReadBuffer, Int,                                                               \
    (Queue, Memory, Uint, std::size_t, std::size_t, void*, Uint, const Event*, Event*))                   \
  X(flush, clFlush, Int, (Queue))                                                                         \
  X(finish, clFinish, Int, (Queue))                                                                       \
  X(release_event, clReleaseEvent, Int, (Event))                                                          \
  X(profiling, clGetEventProfilingInfo, Int, (Event, Uint, std::size_t, void*, std::size_t*))

/// Optional: without fill, buffers are filled by writes; without argument_info, launches are checked by the
/// platform alone.
#define FURLONG_OPENCL_OPTIONAL(X)                                                                   \
  X(enqueue_fill, clEnqueueFillBuffer, Int,                                                          \
    (Queue, Memory, const void*, std::size_t, std::size_t, std::size_t, Uint, const Event*, Event*)) \
  X(argument_info, clGetKernelArgInfo, Int, (Kernel, Uint, Uint, std::size_t, void*, std::size_t*))

struct Api {
#define FURLONG_OPENCL_MEMBER(member, symbol, result, parameters) result(*member) parameters = nullptr;
  FURLONG_OPENCL_REQUIRED(FURLONG_OPENCL_MEMBER)
  FURLONG_OPENCL_OPTIONAL(FURLONG_OPENCL_MEMBER)
#undef FURLONG_OPENCL_MEMBER
};

/// The loader's functions. It is opened once and never closed: vendor libraries keep threads. Thread safe.
/// `unavailable` says what to install; `incompatible` names the function that a too old loader lacks.
Result<const Api*> load_api();

/// "CL_INVALID_WORK_GROUP_SIZE (-54)".
std::string error_name(Int code);
/// `exhausted` for the out-of-memory codes, `unavailable` where the device or its compiler is not there, else
/// `internal`; with what to do about it where the code tells.
Error error_of(Int code, std::string_view doing);
/// The same for setting an argument or enqueueing a kernel: `invalid` for a shape or an argument that the
/// platform refuses.
Error launch_error(Int code, std::string_view doing);
/// The same for a transfer to or from memory that is there already. `internal` for CL_OUT_OF_RESOURCES, by
/// which platforms tell then that a kernel queued before it failed.
Error transfer_error(Int code, std::string_view doing);

/// The values of clGet…Info queries of a fixed type; `fallback` when the platform does not know the query.
template <class T>
T device_value(const Api& api, DeviceId device, Uint query, T fallback) {
  T value{};
  return api.device_info(device, query, sizeof value, &value, nullptr) == kSuccess ? value : fallback;
}
std::string device_text(const Api& api, DeviceId device, Uint query);
std::string platform_text(const Api& api, PlatformId platform, Uint query);

}  // namespace furlong::device::cl
