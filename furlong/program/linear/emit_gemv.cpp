// From a point, a shape and a chip to the text and launches of y = W x.
#include <array>

#include "furlong/program/linear/internal/names.h"
#include "furlong/program/linear/internal/recipes.h"
#include "furlong/program/linear/internal/texts.h"
#include "furlong/program/linear/linear.h"

namespace furlong::program::linear {
namespace {

constexpr std::int64_t kBlockWeights = 32, kSlabBlocks = 8, kTileRows = 16;

enum class Activations { two_pass_int8, int8, dequant };
constexpr std::array<std::string_view, 3> kActivations{"two_pass_int8", "int8", "dequant"};
constexpr std::array<std::string_view, 2> kDots{"dp4a", "imma"};
constexpr std::array<std::string_view, 2> kLoads{"int4", "char4"};

struct Gemv {
  std::int64_t n = 0, k = 0, batch = 0, copies = 0;
  bool matrix = false;  // by the matrix instruction
  bool wide = true;
  Activations activations = Activations::two_pass_int8;
  std::int64_t warps = 0, rows = 0, unroll = 0, split_k = 0;
  Chip chip;

  std::int64_t blocks() const { return ceil_div(k, kBlockWeights); }
  std::int64_t step_weights() const { return wide ? 512 : 128; }
  std::int64_t slabs() const { return ceil_div(blocks(), kSlabBlocks); }
};

Result<Gemv> read(const EmitNames& lookup) {
  const Names names(lookup);
  Gemv gemv;
  FURLONG_TRY(gemv.n, names.side("n", largest_side));
  FURLONG_TRY(gemv.k, names.side("k", largest_side / 4));
  FURLONG_TRY(gemv.batch, names.side("batch", largest_batch));
  FURLONG_TRY(gemv.copies, names.side("copies", 4096));
  FURLONG_TRY(const std::string asked, names.word("chip", "present"));
  FURLONG_TRY(gemv.chip, resolve_chip(asked, lookup));
  FURLONG_TRY(const std::size_t dot, names.one_of("dot", kDots));
  FURLONG_TRY(const std::size_t load, names.one_of("gemv_load", kLoads));
  FURLONG_TRY(const std::size_t activations, names.one_of("activations", kActivations));
  gemv.matrix = dot == 1;
  gemv.wide = load == 0;
  gemv.activations = static_cast<Activations>(activations);
  if (gemv.matrix && !gemv.chip.has.int8_mma && asked != "present")
    return fail(Code::invalid, "{} ({}) has no int8 matrix instruction: dot imma is not for it",
                gemv.chip.name, gemv.chip.arch);
  FURLONG_TRY(gemv.warps, names.integer("warps", 4));
  FURLONG_TRY(gemv.rows, names.integer("rows", 1));
  FURLONG_TRY(gemv.unroll, names.integer("unroll", 1));
  FURLONG_TRY(gemv.split_k, names.integer("split_k", 1));
  struct Limit {
    std::string_view name;
    std::int64_t value, largest;
  };
  for (const auto& [name, value, largest] :
       {Limit{"warps", gemv.warps, 32}, Limit{"rows", gemv.rows, 8}, Limit{"unroll", gemv.unroll, 16},
        Limit{"split_k", gemv.split_k, 256}})
    if (value < 1 || value > largest)
      return fail(Code::invalid, "{} is {}; it must be 1 to {}", name, value, largest);
  if (gemv.matrix && (gemv.activations == Activations::dequant || !gemv.wide))
    return fail(Code::invalid, "dot imma multiplies int8 words in loads of 16 bytes: it has no {}",
                gemv.wide ? "activations dequant" : "gemv_load char4");
  return gemv;
}

// What the chip cannot do is done by what it can, and said.
void fall_back(Gemv& gemv, Emitted& out) {
  if (!gemv.matrix || gemv.chip.has.int8_mma) return;
  gemv.matrix = false;
  out.notes.push_back(fmt::format("{} ({}) has no int8 matrix instruction: dot dp4a is used", gemv.chip.name,
                                  gemv.chip.arch));
  out.fallback = true;
}

std::string text_of(const Gemv& gemv) {
  std::string text = fmt::format("// y = W x, Q8_0 weights, {} column{}; for {} ({}).\n", gemv.batch,
                                 gemv.batch == 1 ? "" : "s", gemv.chip.name, gemv.chip.arch);
  define(text, "BATCH", gemv.batch);
  define(text, "WARPS", gemv.warps);
  define(text, "ROWS", gemv.rows);
  define(text, "UNROLL", gemv.unroll);
  define(text, "SPLIT_K", gemv.split_k);
  define(text, "WIDE", gemv.wide);
  const bool two_words = gemv.activations == Activations::two_pass_int8;
  define(text, "TWO_WORDS", two_words);
  // Of one word 127 steps; of two 127 * 128, so that the high word stays an int8 when the low one is carried.
  text += fmt::format("#define STEPS {}.0f\n", two_words ? 127 * 128 : 127);
  text += gemv.split_k == 1 ? "#define OUTPUT(out, copy, column, row, n) out[(static_cast<uint64>(copy) * "
                              "BATCH + (column)) * (n) + (row)]\n"
                            : "#define OUTPUT(out, copy, column, row, n) "
                              "out[(static_cast<uint64>(blockIdx.y) * BATCH + (column)) * (n) + (row)]\n";
  if (gemv.matrix) add_instructions(text, gemv.chip);
  text += gemv_common_text;
  if (gemv.matrix) {
    text += gemv_tiles_text;
  } else {
    const bool exact = gemv.activations == Activations::dequant;
    for (const std::string_view piece :
         {gemv_rows_layout_text, gemv_rows_words_text, exact ? gemv_rows_float_text : gemv_rows_int_text,
          gemv_rows_begin_text, exact ? gemv_rows_float_body_text : gemv_rows_int_body_text,
          gemv_rows_end_text})
      text += piece;
  }
  if (gemv.split_k > 1) text += gemv_sum_text;
  return text;
}

void add_launches(const Gemv& gemv, std::vector<EmittedLaunch>& launches) {
  const auto u = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const std::int64_t tiles = ceil_div(gemv.n, kTileRows);
  const std::int64_t words = gemv.matrix ? gemv.copies * tiles * gemv.slabs() * (kSlabBlocks * 128 + 64)
                                         : gemv.copies * gemv.n * gemv.blocks() * 8;
  EmittedLaunch split{
      .entry = "gemv_split", .arguments = {"weights", "planes", "n", "k", "copies"}, .once = true};
  split.grid[0] = u(std::min<std::int64_t>(ceil_div(words, 256), 1 << 20));
  split.block[0] = 256;
  launches.push_back(std::move(split));
  const std::int64_t threads =
      gemv.matrix ? gemv.slabs() * kSlabBlocks * 8 * 32
      : gemv.activations == Activations::dequant
          ? ceil_div(gemv.blocks() * 32, gemv.step_weights()) * gemv.step_weights() * gemv.batch
          : gemv.blocks() * gemv.batch * 32;
  EmittedLaunch activations{.entry = "gemv_activations", .arguments = {"x", "activations", "k"}};
  activations.grid[0] = u(ceil_div(threads, 256));
  activations.block[0] = 256;
  const bool parts = gemv.split_k > 1;
  for (std::int64_t copy = 0; copy < gemv.copies; ++copy) {
    launches.push_back(activations);  // every product has its own x
    EmittedLaunch product{.entry = gemv.matrix ? "gemv_tiles" : "gemv_rows",
                          .arguments = {"planes", "activations", parts ? "parts" : "y", "n", "k", "copy"},
                          .scalars = {{"copy", copy}}};
    product.grid[0] = u(gemv.matrix ? ceil_div(tiles, gemv.rows) : ceil_div(gemv.n, gemv.warps * gemv.rows));
    product.grid[1] = u(gemv.split_k);
    product.block[0] = u(gemv.warps * 32);
    launches.push_back(std::move(product));
    if (!parts) continue;
    EmittedLaunch sum{
        .entry = "gemv_sum", .arguments = {"parts", "y", "n", "copy"}, .scalars = {{"copy", copy}}};
    sum.grid[0] = u(ceil_div(gemv.n * gemv.batch, 256));
    sum.block[0] = 256;
    launches.push_back(std::move(sum));
  }
}

class GemvEmitter final : public Emitter {
 public:
  std::string_view name() const override { return "linear.gemv"; }
  std::string_view language() const override { return "cuda"; }
  std::span<const std::string> knobs() const override {
    static const std::vector<std::string> names{"dot",  "gemv_load", "activations", "warps",
                                                "rows", "unroll",    "split_k"};
    return names;
  }
  std::span<const std::string> problem() const override {
    static const std::vector<std::string> names{"n", "k", "batch", "copies", "chip"};
    return names;
  }
  Result<Emitted> emit(const EmitNames& names) const override {
    FURLONG_TRY(Gemv gemv, read(names));
    Emitted out;
    fall_back(gemv, out);
    out.source = text_of(gemv);
    add_launches(gemv, out.launches);
    for (const EmittedLaunch& launch : out.launches) FURLONG_CHECK(check_grid(launch, "n, k or batch"));
    return out;
  }
  std::shared_ptr<const Recipe> recipe() const override { return make_gemv_recipe(); }
};

}  // namespace

std::shared_ptr<const Emitter> make_gemv_emitter() { return std::make_shared<GemvEmitter>(); }

}  // namespace furlong::program::linear
