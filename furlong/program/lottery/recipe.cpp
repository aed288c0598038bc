#include "furlong/program/lottery/recipe.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

#include "furlong/base/text.h"
#include "furlong/program/lottery/dataset.h"
#include "furlong/program/lottery/reference.h"

namespace furlong::program::lottery {
namespace {

constexpr std::uint32_t kParallelNonces = 256;  // fewer are not worth the threads
constexpr std::uint64_t kLargestCache = 1ull << 28;

class LotteryRecipe : public Recipe {
 public:
  LotteryRecipe(const Parameters& parameters, const Geometry& geometry, const LotteryProgram& program)
      : parameters_(parameters), geometry_(geometry), program_(program) {}

  std::string name() const override { return "lottery"; }
  std::uint64_t dataset_bytes() const override { return geometry_.dataset_bytes; }

  std::string dataset_key() const override {
    // Not of the class: its programs read the same rows.
    return fmt::format("lottery {} {} {} {}", to_hex(parameters_.epoch_seed), parameters_.day,
                       geometry_.cache_bytes, geometry_.dataset_bytes);
  }

  Status build_dataset(std::span<std::uint8_t> into, int threads, std::stop_token stop) const override {
    if (into.size() != geometry_.dataset_bytes)
      return fail(Code::invalid, "the lottery's dataset has {} bytes, but there is room for {}",
                  geometry_.dataset_bytes, into.size());
    return fill_dataset(cache(), into, std::max(threads, 1), std::move(stop));
  }

  Status reference(const Program&, const lattice::Environment&, const std::vector<Bytes>& inputs,
                   std::vector<Bytes>& expected) const override {
    if (inputs.size() != kArguments)
      return fail(Code::invalid, "the lottery has {} arguments, but {} were given",
                  static_cast<std::size_t>(kArguments), inputs.size());
    FURLONG_TRY(const auto start, scalar<std::uint64_t>(inputs, kStart));
    FURLONG_TRY(const auto count, scalar<std::uint32_t>(inputs, kCount));
    FURLONG_TRY(const auto target, scalar<std::uint64_t>(inputs, kTarget));
    Bytes hits = inputs[kHits];
    const std::size_t hit_bytes = (static_cast<std::size_t>(count) + 31) / 32 * 4;
    if (hits.empty()) hits.resize(hit_bytes);
    if (hits.size() < hit_bytes)
      return fail(Code::invalid, "'hits' has {} bytes: {} nonces need {}", hits.size(), count, hit_bytes);

    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const std::vector<std::uint64_t> hashes =
        reference_hashes(program_, start, count, geometry_.dataset_words(), light_rows(cache()),
                         count < kParallelNonces ? 1 : cores);
    expected.resize(kArguments);
    expected[kHashes].resize(hashes.size() * 8);
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      store_le(&expected[kHashes][i * 8], hashes[i]);
      if (hashes[i] < target) hits[i / 8] |= static_cast<std::uint8_t>(1u << (i % 8));
    }
    expected[kHits] = std::move(hits);
    return {};
  }

 private:
  template <class T>
  static Result<T> scalar(const std::vector<Bytes>& inputs, Argument argument) {
    if (inputs[argument].size() != sizeof(T))
      return fail(Code::invalid, "scalar '{}' has {} bytes, not {}", argument_names()[argument],
                  inputs[argument].size(), sizeof(T));
    return load_le<T>(inputs[argument].data());
  }

  const Cache& cache() const {
    std::call_once(once_, [this] { cache_.emplace(parameters_, geometry_.cache_lines()); });
    return *cache_;
  }

  Parameters parameters_;
  Geometry geometry_;
  LotteryProgram program_;
  mutable std::once_flag once_;
  mutable std::optional<Cache> cache_;
};

Status check_geometry(const Geometry& geometry) {
  if (geometry.cache_bytes == 0 || geometry.cache_bytes % kRowBytes != 0 ||
      geometry.cache_bytes > kLargestCache)
    return fail(Code::invalid, "cache_bytes is {}: it must be whole lines of {} bytes, at most {}",
                geometry.cache_bytes, kRowBytes, kLargestCache);
  if (geometry.dataset_bytes == 0 || geometry.dataset_bytes % kRowBytes != 0 ||
      geometry.dataset_bytes > kLargestDataset)
    return fail(Code::invalid, "dataset_bytes is {}: it must be whole rows of {} bytes, at most {}",
                geometry.dataset_bytes, kRowBytes, kLargestDataset);
  return {};
}

}  // namespace

std::array<std::string_view, kArguments> argument_names() {
  return {"dataset", "start", "count", "target", "hashes", "hits"};
}

Result<std::shared_ptr<const Recipe>> make_recipe(const Parameters& parameters, const Geometry& geometry) {
  FURLONG_CHECK(check_geometry(geometry));
  FURLONG_TRY(const LotteryProgram program, generate_program(parameters));
  return std::shared_ptr<const Recipe>(std::make_shared<LotteryRecipe>(parameters, geometry, program));
}

}  // namespace furlong::program::lottery
