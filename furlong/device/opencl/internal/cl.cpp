#include "furlong/device/opencl/internal/cl.h"

#include <array>
#include <mutex>

#include "furlong/base/os/library.h"

namespace furlong::device::cl {
namespace {

Result<Api> bind(const Library& library) {
  Api api;
#define FURLONG_OPENCL_BIND(member, symbol, result, parameters) \
  api.member = library.function<result parameters>(#symbol);
  FURLONG_OPENCL_REQUIRED(FURLONG_OPENCL_BIND)
  FURLONG_OPENCL_OPTIONAL(FURLONG_OPENCL_BIND)
#undef FURLONG_OPENCL_BIND
#define FURLONG_OPENCL_NEED(member, symbol, result, parameters)                                              \
  if (api.member == nullptr) {                                                                               \
    return fail(Code::incompatible, "{} has no " #symbol ": OpenCL 1.2 or newer is needed", library.name()); \
  }
  FURLONG_OPENCL_REQUIRED(FURLONG_OPENCL_NEED)
#undef FURLONG_OPENCL_NEED
  return api;
}

struct NamedCode {
  Int code;
  const char* name;
};
constexpr std::array<NamedCode, 64> kCodes{{
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {-8, "CL_MEM_COPY_OVERLAP"},
    {-9, "CL_IMAGE_FORMAT_MISMATCH"},
    {-10, "CL_IMAGE_FORMAT_NOT_SUPPORTED"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-12, "CL_MAP_FAILURE"},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-15, "CL_COMPILE_PROGRAM_FAILURE"},
    {-16, "CL_LINKER_NOT_AVAILABLE"},
    {-17, "CL_LINK_PROGRAM_FAILURE"},
    {-18, "CL_DEVICE_PARTITION_FAILED"},
    {-19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE"},
    {-30, "CL_INVALID_VALUE"},
    {-31, "CL_INVALID_DEVICE_TYPE"},
    {-32, "CL_INVALID_PLATFORM"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-35, "CL_INVALID_QUEUE_PROPERTIES"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-37, "CL_INVALID_HOST_PTR"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-39, "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR"},
    {-40, "CL_INVALID_IMAGE_SIZE"},
    {-41, "CL_INVALID_SAMPLER"},
    {-42, "CL_INVALID_BINARY"},
    {-43, "CL_INVALID_BUILD_OPTIONS"},
    {-44, "CL_INVALID_PROGRAM"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-47, "CL_INVALID_KERNEL_DEFINITION"},
    {-48, "CL_INVALID_KERNEL"},
    {-49, "CL_INVALID_ARG_INDEX"},
    {-50, "CL_INVALID_ARG_VALUE"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-53, "CL_INVALID_WORK_DIMENSION"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-56, "CL_INVALID_GLOBAL_OFFSET"},
    {-57, "CL_INVALID_EVENT_WAIT_LIST"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-60, "CL_INVALID_GL_OBJECT"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-62, "CL_INVALID_MIP_LEVEL"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-64, "CL_INVALID_PROPERTY"},
    {-65, "CL_INVALID_IMAGE_DESCRIPTOR"},
    {-66, "CL_INVALID_COMPILER_OPTIONS"},
    {-67, "CL_INVALID_LINKER_OPTIONS"},
    {-68, "CL_INVALID_DEVICE_PARTITION_COUNT"},
    {-69, "CL_INVALID_PIPE_SIZE"},
    {-70, "CL_INVALID_DEVICE_QUEUE"},
    {-71, "CL_INVALID_SPEC_ID"},
    {-72, "CL_MAX_SIZE_RESTRICTION_EXCEEDED"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    {-9999, "illegal memory access (NVIDIA)"},
}};

// What the code means for the user, where it says more than its name.
std::string_view advice(Int code) {
  switch (code) {
    case kDeviceNotAvailable:
      return "the device is in use by another process or its driver failed";
    case kCompilerNotAvailable:
      return "the platform has no compiler for this device: install its whole driver";
    case kOutOfResources:
      return "the kernel needs more registers or local memory than there is, or ran out of bounds";
    case kInvalidContext:
    case kInvalidQueue:
      return "the device was lost: open it again";
    case kMisalignedSubBuffer:
      return "the device wants buffers to start at larger steps";
    case kIllegalAccessNv:
      return "a kernel ran out of bounds: the device must be opened again";
    default:
      return "";
  }
}

Code code_of(Int code) {
  switch (code) {
    case kAllocationFailure:
    case kOutOfResources:
    case kOutOfHostMemory:
      return Code::exhausted;
    case kDeviceNotFound:
    case kDeviceNotAvailable:
    case kCompilerNotAvailable:
    case kPlatformNotFound:
      return Code::unavailable;
    default:
      return Code::internal;
  }
}

Error told(Code result, Int code, std::string_view doing) {
  const std::string_view more = advice(code);
  return fail(result, "{}: {}{}{}", doing, error_name(code), more.empty() ? "" : ": ", more);
}

// The text of an info query, without its closing zero.
template <class Query>
std::string text_of(const Query& query) {
  std::size_t size = 0;
  if (query(0, nullptr, &size) != kSuccess || size == 0) return "";
  std::string text(size, '\0');
  if (query(size, text.data(), nullptr) != kSuccess) return "";
  text.resize(text.find('\0') == std::string::npos ? size : text.find('\0'));
  return text;
}

}  // namespace

Result<const Api*> load_api() {
  static std::mutex mutex;
  static const Api* loaded = nullptr;
  std::lock_guard lock(mutex);
  if (loaded != nullptr) return loaded;
  static const std::array<std::string, 2> names{"libOpenCL.so.1", "libOpenCL.so"};
  Result<Library> library = Library::open_any(names);
  if (!library) {
    return fail(Code::unavailable,
                "there is no OpenCL loader ({}): install ocl-icd-libopencl1 and a platform, such as "
                "pocl-opencl-icd for the CPU",
                library.error().message());
  }
  FURLONG_TRY(const Api api, bind(*library));
  new Library(std::move(*library));  // never closed
  loaded = new Api(api);
  return loaded;
}

std::string error_name(Int code) {
  for (const NamedCode& row : kCodes) {
    if (row.code == code) return fmt::format("{} ({})", row.name, code);
  }
  return fmt::format("OpenCL error {}", code);
}

Error error_of(Int code, std::string_view doing) { return told(code_of(code), code, doing); }

Error launch_error(Int code, std::string_view doing) {
  switch (code) {
    case kMisalignedSubBuffer:
    case kInvalidArgIndex:
    case kInvalidArgValue:
    case kInvalidArgSize:
    case kInvalidKernelArgs:
    case kInvalidWorkDimension:
    case kInvalidWorkGroupSize:
    case kInvalidWorkItemSize:
    case kInvalidGlobalOffset:
    case kInvalidGlobalSize:
      return told(Code::invalid, code, doing);
    default:
      return error_of(code, doing);
  }
}

Error transfer_error(Int code, std::string_view doing) {
  return told(code == kOutOfResources ? Code::internal : code_of(code), code, doing);
}

std::string device_text(const Api& api, DeviceId device, Uint query) {
  return text_of([&](std::size_t size, void* value, std::size_t* needed) {
    return api.device_info(device, query, size, value, needed);
  });
}

std::string platform_text(const Api& api, PlatformId platform, Uint query) {
  return text_of([&](std::size_t size, void* value, std::size_t* needed) {
    return api.platform_info(platform, query, size, value, needed);
  });
}

}  // namespace furlong::device::cl
