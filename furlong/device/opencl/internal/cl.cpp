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
constexpr std::array<NamedCode, 46> kCodes{{
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {-8, "CL_MEM_COPY_OVERLAP"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-12, "CL_MAP_FAILURE"},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-15, "CL_COMPILE_PROGRAM_FAILURE"},
    {-16, "CL_LINKER_NOT_AVAILABLE"},
    {-17, "CL_LINK_PROGRAM_FAILURE"},
    {-19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE"},
    {-30, "CL_INVALID_VALUE"},
    {-31, "CL_INVALID_DEVICE_TYPE"},
    {-32, "CL_INVALID_PLATFORM"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-37, "CL_INVALID_HOST_PTR"},
    {-38, "CL_INVALID_MEM_OBJECT"},
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
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    {-9999, "illegal memory access (NVIDIA)"},
}};

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

Error error_of(Int code, std::string_view doing) {
  const bool memory = code == kAllocationFailure || code == kOutOfResources || code == kOutOfHostMemory;
  return fail(memory ? Code::exhausted : Code::internal, "{}: {}", doing, error_name(code));
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
