#include "furlong/device/cuda/vendor_blas.h"

#include <array>
#include <cstdlib>

#include "furlong/base/os/library.h"
#include "furlong/device/cuda/internal/buffer.h"
#include "furlong/device/cuda/internal/device.h"
#include "furlong/device/cuda/nvrtc.h"

namespace furlong::device {
namespace {

using cuda::CudaBuffer;
using cuda::Session;

// Numbers of cuBLAS's documentation (cublasOperation_t, cudaDataType_t, cublasComputeType_t,
// cublasGemmAlgo_t).
constexpr int kNone = 0, kTransposed = 1;
constexpr int kF32 = 0, kF16 = 2, kI8 = 3, kI32 = 10, kBf16 = 14;
constexpr int kComputeF32 = 68, kComputeI32 = 72;
constexpr int kAlgorithmDefault = -1;

using Handle = void*;
struct Functions {
  int (*create)(Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  int (*version)(Handle, int*) = nullptr;
  int (*set_stream)(Handle, cuda::Stream) = nullptr;
  int (*multiply)(Handle, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int,
                  const void*, void*, int, int, int, int) = nullptr;
};

template <class F>
Status bind(const Library& library, F*& into, const char* name) {
  into = library.function<F>(name);
  if (into != nullptr) return {};
  return fail(Code::incompatible, "{} has no function '{}': install cuBLAS 11 or newer", library.name(),
              name);
}

Result<Library> open_library() {
  if (const char* file = std::getenv("FURLONG_CUBLAS"); file != nullptr && *file != '\0') {
    auto library = Library::open(file);
    if (!library)
      return std::move(library).error().with("opening $FURLONG_CUBLAS (unset it for the installed one)");
    return library;
  }
  std::vector<std::string> names{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"};
  // Beside the run-time compilers of the CUDA installations.
  for (const auto& compiler : Nvrtc::installed())
    names.push_back((compiler.parent_path() / "libcublas.so").string());
  auto library = Library::open_any(names);
  if (!library)
    return fail(Code::unavailable,
                "cuBLAS is not here ({}): install it (the CUDA toolkit has it) or name it in "
                "$FURLONG_CUBLAS",
                library.error().message());
  return library;
}

}  // namespace

struct VendorBlas::Impl {
  Library library;
  Functions functions;
  std::shared_ptr<Session> session;
  Handle handle = nullptr;

  Impl(Library opened, std::shared_ptr<Session> of) : library(std::move(opened)), session(std::move(of)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (handle != nullptr && session->enter()) (void)functions.destroy(handle);
  }

  Status checked(int code, std::string_view doing) const {
    if (code == 0) return {};
    return fail(code == 7 ? Code::invalid : Code::internal, "{}: cuBLAS answers {}", doing, code);
  }

  Result<cuda::Address> address(Buffer* buffer, std::size_t bytes, std::string_view what) const {
    const auto* own = dynamic_cast<const CudaBuffer*>(buffer);
    if (own == nullptr || own->session() != session.get())
      return fail(Code::invalid, "the buffer of {} is not of this device", what);
    if (own->size() < bytes)
      return fail(Code::invalid, "the buffer of {} has {} bytes, the product needs {}", what, own->size(),
                  bytes);
    return own->address();
  }
};

VendorBlas::VendorBlas(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VendorBlas::VendorBlas(VendorBlas&&) noexcept = default;
VendorBlas& VendorBlas::operator=(VendorBlas&&) noexcept = default;
VendorBlas::~VendorBlas() = default;

Result<VendorBlas> VendorBlas::open(Device& device) {
  auto* const card = dynamic_cast<cuda::CudaDevice*>(&device);
  if (card == nullptr)
    return fail(Code::invalid, "cuBLAS is for cards of the CUDA back end, not for {}",
                device.facts().address());
  FURLONG_TRY(Library library, open_library());
  auto impl = std::make_unique<Impl>(std::move(library), card->session());
  Functions& f = impl->functions;
  FURLONG_CHECK(bind(impl->library, f.create, "cublasCreate_v2"));
  FURLONG_CHECK(bind(impl->library, f.destroy, "cublasDestroy_v2"));
  FURLONG_CHECK(bind(impl->library, f.version, "cublasGetVersion_v2"));
  FURLONG_CHECK(bind(impl->library, f.set_stream, "cublasSetStream_v2"));
  FURLONG_CHECK(bind(impl->library, f.multiply, "cublasGemmEx"));
  FURLONG_CHECK(impl->session->enter());
  FURLONG_CHECK(impl->checked(f.create(&impl->handle), "starting"));
  FURLONG_CHECK(impl->checked(f.set_stream(impl->handle, impl->session->stream()), "choosing the stream"));
  return VendorBlas(std::move(impl));
}

std::string VendorBlas::version() const {
  int number = 0;
  if (impl_->functions.version(impl_->handle, &number) != 0) return "cuBLAS";
  return fmt::format("cuBLAS {}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

Status VendorBlas::multiply(const VendorProduct& product) {
  const bool whole = product.type == VendorProduct::Type::int8;
  if (product.m < 1 || product.n < 1 || product.k < 1 || product.m > INT32_MAX || product.n > INT32_MAX ||
      product.k > INT32_MAX)
    return fail(Code::invalid, "a product of {} x {} x {}: each side must be 1 to {}", product.m, product.n,
                product.k, INT32_MAX);
  const auto m = static_cast<std::size_t>(product.m), n = static_cast<std::size_t>(product.n),
             k = static_cast<std::size_t>(product.k);
  const std::size_t element = whole ? 1 : 2;
  FURLONG_CHECK(impl_->session->enter());
  FURLONG_TRY(const cuda::Address a, impl_->address(product.a, m * k * element, "A"));
  FURLONG_TRY(const cuda::Address b, impl_->address(product.b, n * k * element, "B"));
  FURLONG_TRY(const cuda::Address c, impl_->address(product.c, m * n * 4, "C"));
  const int type = whole ? kI8 : product.type == VendorProduct::Type::bf16 ? kBf16 : kF16;
  const std::int32_t one_i = 1, zero_i = 0;
  const float one_f = 1, zero_f = 0;
  const void* one = whole ? static_cast<const void*>(&one_i) : &one_f;
  const void* zero = whole ? static_cast<const void*>(&zero_i) : &zero_f;
  // Column by column, as the library has it, this is C transposed: rows of B by columns of A.
  return impl_->checked(
      impl_->functions.multiply(impl_->handle, kTransposed, kNone, static_cast<int>(n), static_cast<int>(m),
                                static_cast<int>(k), one, reinterpret_cast<const void*>(b), type,
                                static_cast<int>(k), reinterpret_cast<const void*>(a), type,
                                static_cast<int>(k), zero, reinterpret_cast<void*>(c), whole ? kI32 : kF32,
                                static_cast<int>(n), whole ? kComputeI32 : kComputeF32, kAlgorithmDefault),
      fmt::format("a product of {} x {} x {}", product.m, product.n, product.k));
}

Result<std::vector<double>> VendorBlas::time(std::span<const VendorProduct> products, int repeats,
                                             int batch) {
  if (products.empty() || repeats < 1 || batch < 1)
    return fail(Code::invalid, "{} repeats of a batch of {} of {} products: each must be at least 1", repeats,
                batch, products.size());
  Session& session = *impl_->session;
  const cuda::Api& api = session.api();
  for (const VendorProduct& product : products) FURLONG_CHECK(multiply(product));
  const auto count = static_cast<std::size_t>(repeats);
  FURLONG_TRY(const std::vector<cuda::Event>* events, session.events(2 * count));
  const auto record = [&](std::size_t i) -> Status {
    const cuda::Status32 code = api.record_event((*events)[i], session.stream());
    return code == cuda::kSuccess ? Status() : Status(session.failed(code, "timing a product"));
  };
  for (std::size_t repeat = 0; repeat < count; ++repeat) {
    FURLONG_CHECK(record(2 * repeat));
    for (int i = 0; i < batch; ++i)
      for (const VendorProduct& product : products) FURLONG_CHECK(multiply(product));
    FURLONG_CHECK(record(2 * repeat + 1));
  }
  FURLONG_CHECK(session.finish("timing products of cuBLAS"));
  std::vector<double> times_ms;
  for (std::size_t repeat = 0; repeat < count; ++repeat) {
    float ms = 0;
    const cuda::Status32 code = api.elapsed_ms(&ms, (*events)[2 * repeat], (*events)[2 * repeat + 1]);
    if (code != cuda::kSuccess) return session.failed(code, "timing a product");
    times_ms.push_back(static_cast<double>(ms) / batch / static_cast<double>(products.size()));
  }
  return times_ms;
}

}  // namespace furlong::device
