// From a point, a shape and a chip to the text and launches of C = A B.
#include <array>

#include "furlong/program/linear/internal/names.h"
#include "furlong/program/linear/internal/recipes.h"
#include "furlong/program/linear/internal/texts.h"
#include "furlong/program/linear/linear.h"

namespace furlong::program::linear {
namespace {

constexpr std::int64_t kSlabBytes = 64, kGroupRows = 128, kGroupStages = 4;
constexpr std::array<std::string_view, 3> kPipelines{"double", "basic", "group"};

struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t tile = 0, stages = 0;
  bool real = false;
  bool block = false;  // the double-buffered kernel of a block, not the basic one of a warp
  bool group = false;  // the kernel of warp groups
  Precision precision = Precision::int64;
  Chip chip;

  std::int64_t element_bytes() const { return operands_of(precision) == Operands::int8 ? 1 : 2; }
  bool packed() const {
    const Operands operands = operands_of(precision);
    return operands != Operands::int64 && operands != Operands::f32;
  }
  bool matrix() const { return packed() && precision != Precision::int8_dp4a; }
  std::int64_t rows() const { return group ? kGroupRows : tile; }
  std::int64_t slab_bytes() const { return group ? 2 * kSlabBytes : kSlabBytes; }
  // A warp group's kernel begins at the next 1024 bytes.
  std::int64_t shared_bytes() const { return stages * (rows() + tile) * slab_bytes() + (group ? 1024 : 0); }
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
  // On the card at hand another kernel serves; who names a chip wants that chip's code.
  if (resolved.chip_lacks && asked != "present")
    return fail(Code::invalid, "{} ({}) has no instruction for {}: name another precision or chip",
                gemm.chip.name, gemm.chip.arch, word);
  gemm.precision = resolved.precision;
  if (!resolved.note.empty()) out.notes.push_back(std::move(resolved.note));
  out.fallback = resolved.fallback;
  if (!real) {
    FURLONG_TRY(const std::int64_t operand_max, names.integer("operand_max"));
    FURLONG_CHECK(check_sums(operands_of(gemm.precision), operand_max, gemm.k));
  }
  FURLONG_TRY(const std::size_t pipeline, names.one_of("pipeline", kPipelines));
  FURLONG_TRY(gemm.tile, names.integer("tile", 128));
  if (gemm.tile != 64 && gemm.tile != 128 && gemm.tile != 256)
    return fail(Code::invalid, "there is no tile {} (64, 128, 256)", gemm.tile);
  FURLONG_TRY(gemm.stages, names.integer("stages", 2));
  if (gemm.stages < 2 || gemm.stages > 3)
    return fail(Code::invalid, "stages is {}; it must be 2 or 3", gemm.stages);
  gemm.block = gemm.matrix() && pipeline == 0;
  gemm.group = gemm.matrix() && pipeline == 2;
  if (gemm.block && gemm.tile > 128) return fail(Code::invalid, "pipeline double has no tile {}", gemm.tile);
  if (gemm.group) gemm.stages = kGroupStages;
  return gemm;
}

std::string why_not_tiled(const Gemm& gemm) {
  if (gemm.m % gemm.rows() != 0 || gemm.n % gemm.tile != 0 ||
      gemm.k * gemm.element_bytes() % gemm.slab_bytes() != 0)
    return fmt::format("{} x {} x {} is not made of tiles of {} x {} and {} bytes of k", gemm.m, gemm.n,
                       gemm.k, gemm.rows(), gemm.tile, gemm.slab_bytes());
  if (gemm.group && !gemm.chip.has.warp_groups)
    return fmt::format("{} ({}) has no instructions of warp groups", gemm.chip.name, gemm.chip.arch);
  if (!gemm.chip.has.async_copy)
    return fmt::format("{} ({}) has no asynchronous copies", gemm.chip.name, gemm.chip.arch);
  const std::uint64_t limit = gemm.group ? gemm.chip.shared_optin_bytes : gemm.chip.shared_bytes;
  if (static_cast<std::uint64_t>(gemm.shared_bytes()) <= limit) return {};
  return fmt::format("{} stages of tile {} take {} bytes of shared memory, and {} gives a block {}",
                     gemm.stages, gemm.tile, gemm.shared_bytes(), gemm.chip.name, limit);
}

// The kernels of a block and of warp groups where their tile divides the shape and fits shared memory; else
// the basic one, which says so.
void choose_kernel(Gemm& gemm, Emitted& out) {
  if (!gemm.block && !gemm.group) return;
  const std::string why = why_not_tiled(gemm);
  if (why.empty()) return;
  gemm.block = gemm.group = false;
  out.notes.push_back(why + ": the basic kernel is used");
  out.fallback = true;
}

// multiply(): a warp group's product of 64 rows by TILE columns and 32 bytes of k.
std::string multiply_text(const Gemm& gemm) {
  const std::int64_t sums = gemm.tile / 2;
  const bool whole = operands_of(gemm.precision) == Operands::int8;
  const std::string_view type = whole ? "s8" : gemm.precision == Precision::bf16_hmma ? "bf16" : "f16";
  std::string names, bindings;
  for (std::int64_t i = 0; i < sums; ++i) {
    names += fmt::format("{}%{}", i == 0 ? "" : i % 16 == 0 ? ",\"\n      \"" : ",", i);
    bindings += fmt::format("{}\"+{}\"(d[{}])",
                            i == 0       ? ""
                            : i % 8 == 0 ? ",\n        "
                                         : ", ",
                            whole ? 'r' : 'f', i);
  }
  return fmt::format(
      "// One warp group: 64 rows by {0} columns, 32 bytes of k.\n"
      "__device__ __forceinline__ void multiply(Accumulator (&d)[{1}], uint64 rows, uint64 columns) {{\n"
      "  asm volatile(\"{{.reg .pred p; setp.ne.b32 p, 1, 0;\"\n"
      "      \"wgmma.mma_async.sync.aligned.m64n{0}k{2}.{3}.{4}.{4} {{\"\n      \"{5}\"\n"
      "      \"}}, %{1}, %{6}, p{7};}}\"\n"
      "      : {8}\n      : \"l\"(rows), \"l\"(columns));\n}}\n"
      "// After the wait: the compiler must not read sums before it.\n"
      "__device__ __forceinline__ void settle(Accumulator (&d)[{1}]) {{\n"
      "#pragma unroll\n  for (int i = 0; i < {1}; ++i) asm volatile(\"\" : "
      "\"+{9}\"(d[i])::\"memory\");\n}}\n",
      gemm.tile, sums, whole ? 32 : 16, whole ? "s32" : "f32", type, names, sums + 1,
      whole ? "" : ", 1, 1, 0, 0", bindings, whole ? 'r' : 'f');
}

std::string text_of(const Gemm& gemm) {
  std::string text = fmt::format("// C = A B by {}; for {} ({}).\n", precision_name(gemm.precision),
                                 gemm.chip.name, gemm.chip.arch);
  define(text, "REAL", gemm.real);
  if (!gemm.packed()) {
    text += gemm_common_text;
    text += gemm_plain_text;
    return text;
  }
  define(text, "ELEMENT_BYTES", gemm.element_bytes());
  define(text, "IS_BF16", gemm.precision == Precision::bf16_hmma);
  if (gemm.block || gemm.group) {
    define(text, "TILE", gemm.tile);
    define(text, "STAGES", gemm.stages);
  }
  if (gemm.matrix() || gemm.precision == Precision::fp16_hmma) add_instructions(text, gemm.chip);
  if (gemm.matrix()) {
    const bool whole = operands_of(gemm.precision) == Operands::int8;
    text += fmt::format("typedef {} Accumulator;\n#define MMA {}\n", whole ? "int" : "float",
                        whole                                    ? "mma_s8"
                        : gemm.precision == Precision::bf16_hmma ? "mma_bf16"
                                                                 : "mma_f16");
  }
  text += gemm_common_text;
  text += gemm_pack_text;
  if (gemm.block || gemm.group) text += gemm_tiles_text;
  if (gemm.group) {
    text += instructions_sm90a_text;
    text += multiply_text(gemm);
    text += gemm_group_text;
  } else {
    text += gemm.block ? gemm_block_text : gemm.matrix() ? gemm_warp_text : gemm_dp4a_text;
  }
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
  product.arguments = {
      gemm.packed() ? "packed_a" : "a", gemm.packed() ? "packed_b" : "b", "c", "m", "n", "k"};
  if (gemm.block) {
    product.entry = "gemm_block";
    product.grid[0] = u(gemm.m / gemm.tile * (gemm.n / gemm.tile));
    product.block[0] = u(2 * (gemm.tile / 32) * 32);
  } else if (gemm.group) {
    product.entry = "gemm_group";
    product.grid[0] = u(gemm.m / gemm.rows() * (gemm.n / gemm.tile));
    product.block[0] = 256;
    product.shared_bytes = u(gemm.shared_bytes());
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
    if (gemm.group) out.options.push_back("--gpu-architecture=sm_90a");
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
