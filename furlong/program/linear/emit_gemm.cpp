// From a point, a shape and a chip to the text and launches of C = A B.
#include "furlong/program/linear/internal/names.h"
#include "furlong/program/linear/internal/recipes.h"
#include "furlong/program/linear/internal/texts.h"
#include "furlong/program/linear/linear.h"

namespace furlong::program::linear {
namespace {

constexpr std::int64_t kSlabBytes = 64;

struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t tile = 0, stages = 0;
  bool real = false;
  bool block = false;  // the double-buffered kernel of a block, not the basic one of a warp
  Precision precision = Precision::int64;
  Chip chip;

  std::int64_t element_bytes() const { return operands_of(precision) == Operands::int8 ? 1 : 2; }
  bool packed() const {
    const Operands operands = operands_of(precision);
    return operands != Operands::int64 && operands != Operands::f32;
  }
  bool matrix() const { return packed() && precision != Precision::int8_dp4a; }
  std::int64_t shared_bytes() const { return stages * 2 * tile * kSlabBytes; }
};

Result<Gemm> read(const EmitNames& lookup, bool real, Emitted& out) {
  const Names names(lookup);
  Gemm gemm;
  gemm.real = real;
  FURLONG_TRY(gemm.m, names.side("m", largest_side));
  FURLONG_TRY(gemm.n, names.side("n", largest_side));
  FURLONG_TRY(gemm.k, names.side("k", largest_side));
  FURLONG_TRY(const std::string asked, names.word("chip", "present"));
  FURLONG_TRY(gemm.chip, resolve_chip(asked, lookup));
  FURLONG_TRY(const std::string word, names.word("precision", "auto"));
  FURLONG_TRY(Resolved resolved, resolve_precision(word, real, gemm.chip, gemm.m, gemm.n, gemm.k));
  gemm.precision = resolved.precision;
  if (!resolved.note.empty()) out.notes.push_back(std::move(resolved.note));
  out.fallback = resolved.fallback;
  if (!real) {
    FURLONG_TRY(const std::int64_t operand_max, names.integer("operand_max"));
    FURLONG_CHECK(check_sums(operands_of(gemm.precision), operand_max, gemm.k));
  }
  FURLONG_TRY(const std::string pipeline, names.word("pipeline", "double"));
  if (pipeline != "double" && pipeline != "basic")
    return fail(Code::invalid, "there is no pipeline '{}' (double, basic)", pipeline);
  FURLONG_TRY(gemm.tile, names.integer("tile", 128));
  if (gemm.tile != 64 && gemm.tile != 128) return fail(Code::invalid, "there is no tile {} (64, 128)", gemm.tile);
  FURLONG_TRY(gemm.stages, names.integer("stages", 2));
  if (gemm.stages < 2 || gemm.stages > 4) return fail(Code::invalid, "stages is {}; it must be 2 to 4", gemm.stages);
  gemm.block = gemm.matrix() && pipeline == "double";
  return gemm;
}

// The double-buffered kernel where its tile divides the shape and fits static shared memory; else the basic one,
// which says so.
void choose_kernel(Gemm& gemm, Emitted& out) {
  if (!gemm.block) return;
  std::string why;
  const std::int64_t row_bytes = gemm.k * gemm.element_bytes();
  if (gemm.m % gemm.tile != 0 || gemm.n % gemm.tile != 0 || row_bytes % kSlabBytes != 0)
    why = fmt::format("{0} x {1} x {2} is not made of tiles of {3} x {3} and {4} bytes of k", gemm.m, gemm.n, gemm.k,
                      gemm.tile, kSlabBytes);
  else if (!gemm.chip.has.async_copy)
    why = fmt::format("{} ({}) has no asynchronous copies", gemm.chip.name, gemm.chip.arch);
  else if (static_cast<std::uint64_t>(gemm.shared_bytes()) > gemm.chip.shared_bytes)
    why = fmt::format("{} stages of tile {} take {} bytes of shared memory, and {} gives a block {}", gemm.stages,
                      gemm.tile, gemm.shared_bytes(), gemm.chip.name, gemm.chip.shared_bytes);
  if (why.empty()) return;
  gemm.block = false;
  out.notes.push_back(why + ": the basic kernel is used");
  out.fallback = true;
}

std::string text_of(const Gemm& gemm) {
  std::string text = fmt::format("// C = A B by {}; for {} ({}).\n", precision_name(gemm.precision), gemm.chip.name,
                                 gemm.chip.arch);
  define(text, "REAL", gemm.real);
  if (!gemm.packed()) {
    text += gemm_common_text;
    text += gemm_plain_text;
    return text;
  }
  define(text, "ELEMENT_BYTES", gemm.element_bytes());
  define(text, "IS_BF16", gemm.precision == Precision::bf16_hmma);
  if (gemm.block) {
    define(text, "TILE", gemm.tile);
    define(text, "STAGES", gemm.stages);
  }
  if (gemm.matrix() || gemm.precision == Precision::fp16_hmma)
    text += gemm.chip.sm >= 80 ? instructions_sm80_text : instructions_sm75_text;
  if (gemm.matrix()) {
    const bool whole = operands_of(gemm.precision) == Operands::int8;
    text += fmt::format("typedef {} Accumulator;\n#define MMA {}\n", whole ? "int" : "float",
                        whole                                       ? "mma_s8"
                        : gemm.precision == Precision::bf16_hmma ? "mma_bf16"
                                                                 : "mma_f16");
  }
  text += gemm_common_text;
  text += gemm_pack_text;
  text += gemm.block ? gemm_block_text : gemm.matrix() ? gemm_warp_text : gemm_dp4a_text;
  return text;
}

void add_launches(const Gemm& gemm, std::vector<EmittedLaunch>& launches) {
  const auto u = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  if (gemm.packed()) {
    EmittedLaunch a{.entry = "gemm_pack_a", .arguments = {"a", "packed_a", "m", "k"}, .once = true};
    a.grid[0] = u(std::min<std::int64_t>(ceil_div(gemm.m * gemm.k, 256), 1 << 20));
    a.block[0] = 256;
    EmittedLaunch b{.entry = "gemm_pack_b", .arguments = {"b", "packed_b", "n", "k"}, .once = true};
    b.grid[0] = u(ceil_div(gemm.n, 32) * ceil_div(gemm.k, 32));
    b.block[0] = 256;
    launches.push_back(std::move(a));
    launches.push_back(std::move(b));
  }
  EmittedLaunch product;
  product.arguments = {gemm.packed() ? "packed_a" : "a", gemm.packed() ? "packed_b" : "b", "c", "m", "n", "k"};
  if (gemm.block) {
    product.entry = "gemm_block";
    product.grid[0] = u(gemm.m / gemm.tile * (gemm.n / gemm.tile));
    product.block[0] = u(2 * (gemm.tile / 32) * 32);
  } else if (gemm.matrix()) {
    product.entry = "gemm_warp";
    product.grid[0] = u(gemm.n / 16 * (gemm.m / 16));
    product.block[0] = 32;
  } else {
    product.entry = gemm.packed() ? "gemm_dp4a" : "gemm_plain";
    product.grid[0] = u(ceil_div(gemm.n, 64) * ceil_div(gemm.m, 64));
    product.block[0] = 256;
  }
  launches.push_back(std::move(product));
}

class GemmEmitter final : public Emitter {
 public:
  explicit GemmEmitter(bool real) : real_(real) {}
  std::string_view name() const override { return real_ ? "linear.gemm_real" : "linear.gemm"; }
  std::string_view language() const override { return "cuda"; }
  std::span<const std::string> knobs() const override {
    static const std::vector<std::string> names{"precision", "pipeline", "tile", "stages"};
    return names;
  }
  std::span<const std::string> problem() const override {
    static const std::vector<std::string> whole{"m", "n", "k", "operand_max", "chip"};
    static const std::vector<std::string> real{"m", "n", "k", "chip"};
    return real_ ? real : whole;
  }
  Result<Emitted> emit(const EmitNames& names) const override {
    Emitted out;
    FURLONG_TRY(Gemm gemm, read(names, real_, out));
    choose_kernel(gemm, out);
    out.source = text_of(gemm);
    add_launches(gemm, out.launches);
    for (const EmittedLaunch& launch : out.launches) FURLONG_CHECK(check_grid(launch, "m, n or k"));
    return out;
  }
  std::shared_ptr<const Recipe> recipe() const override {
    return real_ ? make_gemm_real_recipe() : make_gemm_recipe();
  }

 private:
  bool real_;
};

}  // namespace

std::shared_ptr<const Emitter> make_gemm_emitter() { return std::make_shared<GemmEmitter>(false); }
std::shared_ptr<const Emitter> make_gemm_real_emitter() { return std::make_shared<GemmEmitter>(true); }

}  // namespace furlong::program::linear
