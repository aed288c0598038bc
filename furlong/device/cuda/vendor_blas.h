#pragma once
// NVIDIA's own library of matrix products (cuBLAS), as a peer for benches: opened at run time through a
// symbol table of our own, so that no CUDA header is used to build.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/device/device.h"

namespace furlong::device {

/// C = A B with A m x k row by row, B k x n column by column, C m x n row by row.
struct VendorProduct {
  enum class Type { int8, bf16, fp16 };  ///< of A and B; C is int32 for int8, else f32
  Type type = Type::bf16;
  std::int64_t m = 0, n = 0, k = 0;
  Buffer* a = nullptr;
  Buffer* b = nullptr;
  Buffer* c = nullptr;
};

/// Must go before the device. One thread at a time, the one that launches.
class VendorBlas {
 public:
  /// From $FURLONG_CUBLAS (a file), the loader's path, or beside a CUDA installation. `unavailable` says what
  /// to install; `invalid` when the device is not one of the CUDA back end; `incompatible` names what a
  /// library lacks.
  static Result<VendorBlas> open(Device& device);
  VendorBlas(VendorBlas&&) noexcept;
  VendorBlas& operator=(VendorBlas&&) noexcept;
  ~VendorBlas();

  /// "cuBLAS 13.0.2"
  std::string version() const;
  /// Enqueues. `invalid`: a buffer too small or of another device, or a shape that the library refuses.
  Status multiply(const VendorProduct& product);
  /// Milliseconds of one product by the device's clock: `repeats` values, each the mean of `batch` rounds
  /// through all of them (several copies of one, so that no cache holds it); one round before is left out.
  Result<std::vector<double>> time(std::span<const VendorProduct> products, int repeats, int batch);

 private:
  struct Impl;
  explicit VendorBlas(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace furlong::device
