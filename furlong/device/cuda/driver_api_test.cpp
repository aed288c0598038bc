// Our numbers against NVIDIA's header, where that is installed.

#include "furlong/device/cuda/internal/driver_api.h"

#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

namespace furlong::device::cuda {
namespace {

#if __has_include(<cuda.h>)
TEST(CudaDriverApi, NumbersAreTheHeaders) {
  EXPECT_EQ(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(kDeinitialized, CUDA_ERROR_DEINITIALIZED);
  EXPECT_EQ(kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(kNoDevice, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(kNoBinaryForCard, CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(kNotFound, CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(kOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_EQ(kAssert, CUDA_ERROR_ASSERT);
  EXPECT_EQ(kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR);
  EXPECT_EQ(kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
  EXPECT_EQ(kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE);
  EXPECT_EQ(kInvalidPc, CUDA_ERROR_INVALID_PC);
  EXPECT_EQ(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(kNotPermitted, CUDA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY);
  EXPECT_EQ(kDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  EXPECT_EQ(kCompatNotSupported, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
  EXPECT_EQ(kUnknown, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(kAttributeMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  EXPECT_EQ(kAttributeMaxBlockX, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  EXPECT_EQ(kAttributeMaxBlockZ, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  EXPECT_EQ(kAttributeMaxGridX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  EXPECT_EQ(kAttributeMaxGridZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  EXPECT_EQ(kAttributeSharedPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  EXPECT_EQ(kAttributeWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  EXPECT_EQ(kAttributeRegistersPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  EXPECT_EQ(kAttributeMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(kAttributeIntegrated, CU_DEVICE_ATTRIBUTE_INTEGRATED);
  EXPECT_EQ(kAttributeComputeMode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
  EXPECT_EQ(kAttributePciBus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  EXPECT_EQ(kAttributePciDevice, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  EXPECT_EQ(kAttributeMemoryClockKhz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  EXPECT_EQ(kAttributeL2Bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  EXPECT_EQ(kAttributeThreadsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  EXPECT_EQ(kAttributePciDomain, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  EXPECT_EQ(kAttributeMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(kAttributeMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(kAttributeSharedPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  EXPECT_EQ(kFunctionMaxThreads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  EXPECT_EQ(kFunctionSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  EXPECT_EQ(kFunctionLocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  EXPECT_EQ(kFunctionRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
  EXPECT_EQ(kFunctionMaxDynamicShared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(kContextBlockingSync, CU_CTX_SCHED_BLOCKING_SYNC);
  EXPECT_EQ(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(kComputeModeProhibited, CU_COMPUTEMODE_PROHIBITED);
  EXPECT_EQ(kComputeModeExclusive, CU_COMPUTEMODE_EXCLUSIVE_PROCESS);
  EXPECT_EQ(sizeof(Uuid), sizeof(CUuuid));
  EXPECT_EQ(sizeof(Address), sizeof(CUdeviceptr));
}
#else
TEST(CudaDriverApi, NumbersAreTheHeaders) { GTEST_SKIP() << "cuda.h is not installed"; }
#endif

TEST(CudaDriverApi, ALibraryWithoutItsFunctionsIsIncompatible) {
  const Result<Api> bound = bind_driver("libm.so.6");
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code(), Code::incompatible);
  EXPECT_NE(bound.error().text().find("cuInit"), std::string::npos) << bound.error().text();
}

TEST(CudaDriverApi, OneThatIsNotThereIsUnavailable) {
  const Result<Api> bound = bind_driver("libcuda-that-is-not-there.so");
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code(), Code::unavailable);
}

}  // namespace
}  // namespace furlong::device::cuda
