// Compares our own declarations with the Khronos headers, where those are installed.
#include "furlong/device/opencl/internal/cl.h"

#include <gtest/gtest.h>

#if __has_include(<CL/cl.h>)
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#define FURLONG_HAS_CL_HEADERS 1
#endif

namespace furlong::device::cl {
namespace {

TEST(OpenClDeclarations, AgreeWithTheKhronosHeaders) {
#ifdef FURLONG_HAS_CL_HEADERS
  EXPECT_EQ(kDeviceNotFound, CL_DEVICE_NOT_FOUND);
  EXPECT_EQ(kAllocationFailure, CL_MEM_OBJECT_ALLOCATION_FAILURE);
  EXPECT_EQ(kDeviceNotAvailable, CL_DEVICE_NOT_AVAILABLE);
  EXPECT_EQ(kCompilerNotAvailable, CL_COMPILER_NOT_AVAILABLE);
  EXPECT_EQ(kMisalignedSubBuffer, CL_MISALIGNED_SUB_BUFFER_OFFSET);
  EXPECT_EQ(kInvalidDevice, CL_INVALID_DEVICE);
  EXPECT_EQ(kInvalidContext, CL_INVALID_CONTEXT);
  EXPECT_EQ(kInvalidQueue, CL_INVALID_COMMAND_QUEUE);
  EXPECT_EQ(kInvalidKernelArgs, CL_INVALID_KERNEL_ARGS);
  EXPECT_EQ(kInvalidWorkDimension, CL_INVALID_WORK_DIMENSION);
  EXPECT_EQ(kInvalidWorkItemSize, CL_INVALID_WORK_ITEM_SIZE);
  EXPECT_EQ(kInvalidGlobalOffset, CL_INVALID_GLOBAL_OFFSET);
  EXPECT_EQ(kInvalidGlobalSize, CL_INVALID_GLOBAL_WORK_SIZE);
  EXPECT_EQ(kPlatformName, Uint{CL_PLATFORM_NAME});
  EXPECT_EQ(kOutOfResources, CL_OUT_OF_RESOURCES);
  EXPECT_EQ(kOutOfHostMemory, CL_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(kInvalidArgIndex, CL_INVALID_ARG_INDEX);
  EXPECT_EQ(kInvalidArgValue, CL_INVALID_ARG_VALUE);
  EXPECT_EQ(kInvalidArgSize, CL_INVALID_ARG_SIZE);
  EXPECT_EQ(kInvalidKernelName, CL_INVALID_KERNEL_NAME);
  EXPECT_EQ(kInvalidWorkGroupSize, CL_INVALID_WORK_GROUP_SIZE);
  EXPECT_EQ(kInvalidBufferSize, CL_INVALID_BUFFER_SIZE);
  EXPECT_EQ(kPlatformVersion, Uint{CL_PLATFORM_VERSION});
  EXPECT_EQ(kDeviceTypeInfo, Uint{CL_DEVICE_TYPE});
  EXPECT_EQ(kDeviceMaxComputeUnits, Uint{CL_DEVICE_MAX_COMPUTE_UNITS});
  EXPECT_EQ(kDeviceMaxWorkGroupSize, Uint{CL_DEVICE_MAX_WORK_GROUP_SIZE});
  EXPECT_EQ(kDeviceMaxWorkItemSizes, Uint{CL_DEVICE_MAX_WORK_ITEM_SIZES});
  EXPECT_EQ(kDeviceMaxAllocation, Uint{CL_DEVICE_MAX_MEM_ALLOC_SIZE});
  EXPECT_EQ(kDeviceGlobalMemory, Uint{CL_DEVICE_GLOBAL_MEM_SIZE});
  EXPECT_EQ(kDeviceLocalMemory, Uint{CL_DEVICE_LOCAL_MEM_SIZE});
  EXPECT_EQ(kDeviceName, Uint{CL_DEVICE_NAME});
  EXPECT_EQ(kDeviceVendor, Uint{CL_DEVICE_VENDOR});
  EXPECT_EQ(kDriverVersion, Uint{CL_DRIVER_VERSION});
  EXPECT_EQ(kDeviceVersion, Uint{CL_DEVICE_VERSION});
  EXPECT_EQ(kDeviceExtensions, Uint{CL_DEVICE_EXTENSIONS});
  EXPECT_EQ(kProgramBinarySizes, Uint{CL_PROGRAM_BINARY_SIZES});
  EXPECT_EQ(kProgramBinaries, Uint{CL_PROGRAM_BINARIES});
  EXPECT_EQ(kProgramBuildLog, Uint{CL_PROGRAM_BUILD_LOG});
  EXPECT_EQ(kKernelArgumentCount, Uint{CL_KERNEL_NUM_ARGS});
  EXPECT_EQ(kKernelArgAddress, Uint{CL_KERNEL_ARG_ADDRESS_QUALIFIER});
  EXPECT_EQ(kKernelArgTypeName, Uint{CL_KERNEL_ARG_TYPE_NAME});
  EXPECT_EQ(kArgAddressGlobal, Uint{CL_KERNEL_ARG_ADDRESS_GLOBAL});
  EXPECT_EQ(kArgAddressLocal, Uint{CL_KERNEL_ARG_ADDRESS_LOCAL});
  EXPECT_EQ(kArgAddressConstant, Uint{CL_KERNEL_ARG_ADDRESS_CONSTANT});
  EXPECT_EQ(kArgAddressPrivate, Uint{CL_KERNEL_ARG_ADDRESS_PRIVATE});
  EXPECT_EQ(kKernelWorkGroupSize, Uint{CL_KERNEL_WORK_GROUP_SIZE});
  EXPECT_EQ(kKernelCompileWorkGroupSize, Uint{CL_KERNEL_COMPILE_WORK_GROUP_SIZE});
  EXPECT_EQ(kKernelLocalMemory, Uint{CL_KERNEL_LOCAL_MEM_SIZE});
  EXPECT_EQ(kKernelPrivateMemory, Uint{CL_KERNEL_PRIVATE_MEM_SIZE});
  EXPECT_EQ(kBufferCreateRegion, Uint{CL_BUFFER_CREATE_TYPE_REGION});
  EXPECT_EQ(kProfilingStart, Uint{CL_PROFILING_COMMAND_START});
  EXPECT_EQ(kProfilingEnd, Uint{CL_PROFILING_COMMAND_END});
  EXPECT_EQ(kDeviceTypeCpu, Bits{CL_DEVICE_TYPE_CPU});
  EXPECT_EQ(kDeviceTypeAll, Bits{CL_DEVICE_TYPE_ALL});
  EXPECT_EQ(kQueueProfiling, Bits{CL_QUEUE_PROFILING_ENABLE});
  EXPECT_EQ(kMemoryReadWrite, Bits{CL_MEM_READ_WRITE});
  EXPECT_EQ(sizeof(Region), sizeof(cl_buffer_region));
  EXPECT_EQ(offsetof(Region, size), offsetof(cl_buffer_region, size));
#else
  GTEST_SKIP() << "the OpenCL headers (opencl-headers) are not installed";
#endif
}

}  // namespace
}  // namespace furlong::device::cl
