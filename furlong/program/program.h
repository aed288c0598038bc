#pragma once
// A program: a kernel source with its launch rule, arguments, check and work unit, and its lattice.
// Read from a program file (docs/formats/program.md) or from a pack (docs/formats/pack.md).

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/bytes.h"
#include "furlong/base/error.h"
#include "furlong/base/hash.h"
#include "furlong/base/os/file.h"
#include "furlong/lattice/lattice.h"

namespace furlong::program {

class Emitter;  // furlong/program/emitter.h

enum class ArgumentKind { scalar, buffer, constant, dataset };
enum class Fill { none, random, zeros, sequence, value, file, poison, recipe };
/// scratch: written and read by the kernel only, never checked; its size may depend on knobs.
enum class Direction { in, out, inout, scratch };
enum class ElementType { i8, u8, i16, u16, i32, u32, i64, u64, f16, f32, f64 };
std::size_t element_bytes(ElementType type);
std::string_view element_name(ElementType type);
/// `invalid` names the nearest type.
Result<ElementType> parse_element(std::string_view name);
bool is_floating(ElementType type);

/// A data file, read (and in a pack: verified) when the program was loaded, so that what runs is what was
/// read.
struct DataFile {
  std::optional<ElementType> type;   ///< of an .npy; raw files have none
  std::vector<std::uint64_t> shape;  ///< of an .npy; empty for raw files
  Bytes bytes;                       ///< elements in row order, little-endian
};

struct ArgumentSpec {
  std::string name;
  ArgumentKind kind = ArgumentKind::buffer;
  ElementType type = ElementType::f32;
  lattice::Expression count;  ///< elements; scalars: 1. Over the problem; scratch also over knobs
  Fill fill = Fill::none;
  lattice::Expression value;             ///< scalar's value, or Fill::value; over problem and knobs
  double low = 0, high = 1;              ///< Fill::random: uniform in [low, high) (integers: [low, high])
  std::uint64_t seed = 0;                ///< Fill::random: added to the race's seed
  std::filesystem::path file;            ///< Fill::file: .npy or raw
  std::shared_ptr<const DataFile> data;  ///< Fill::file: its contents
  Direction direction = Direction::in;
  int line = 0;

  /// Whether the kernel's work is in it: what a check compares.
  bool is_output() const {
    return kind != ArgumentKind::scalar && (direction == Direction::out || direction == Direction::inout);
  }
};

/// One textual edit: `anchor` must occur exactly `expected` times.
struct Rewrite {
  std::string anchor;
  std::string replacement;
  int expected = 1;
};

/// One kernel of the pipeline.
struct KernelSpec {
  std::string entry;                         ///< function name, or the instantiated name of a C++ template
  std::array<lattice::Expression, 3> grid;   ///< blocks
  std::array<lattice::Expression, 3> block;  ///< threads
  lattice::Expression shared_bytes;          ///< dynamic
  std::vector<std::size_t> arguments;        ///< indices into Program::arguments, in the kernel's order
};

/// A header that a source names with #include and that was found beside it or in an include folder.
struct Header {
  std::filesystem::path file;
  std::string text;
};

/// The program in one language.
struct Edition {
  std::string language;     ///< "cuda", "opencl", "host", "metal"
  std::string source;       ///< text; empty where an emitter makes it
  std::string source_name;  ///< file name for messages
  /// Makes text and launches of each variant; null: `source` and `kernels` have them.
  std::shared_ptr<const Emitter> emitter;
  std::vector<KernelSpec> kernels;
  std::vector<std::filesystem::path> include_folders;
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<std::string> options;
  lattice::Lattice lattice;  ///< knobs that exist in this language, with this language's catalogue
  /// rewrites[{knob, value index}]
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Rewrite>> rewrites;
  /// Applies::define under another name than the knob's, by knob index.
  std::map<std::size_t, std::string> define_names;
  std::filesystem::path source_file;  ///< where the source was read; empty: given as text
  std::vector<Header> headers;        ///< every header reached from the source, in order of first appearance
};

enum class CheckKind { exact, tolerance };
enum class ReferenceKind { base, host, library, files, recipe };

struct CheckSpec {
  CheckKind kind = CheckKind::exact;
  double bound = 0;  ///< norm of the error over norm of the reference
  /// The bound where knobs decide it (a value that lowers precision is allowed more), over problem and knobs;
  /// `bound` is then 0 (Instance::bound).
  std::optional<lattice::Expression> bound_by_knob;
  ReferenceKind reference = ReferenceKind::base;
  std::filesystem::path file;  ///< host: a C++ source; library: a shared object
  std::string function;        ///< host and library: the function. host: same parameters as the kernel
  std::string host_source;     ///< text of `file` for host
  std::map<std::string, std::filesystem::path> expected_files;  ///< files: out argument → .npy or raw
  std::map<std::string, std::shared_ptr<const DataFile>> expected_data;  ///< their contents
  /// Problem values for the gate (smaller sizes), over the timed problem.
  std::vector<std::pair<std::string, lattice::Expression>> problem;
};

/// How a program's bytes are moved: one after another, or in loads of so many bytes at random places.
enum class Access { stream, random4, random16, random128 };
inline constexpr std::size_t random_widths = 3;  ///< random4, random16, random128

struct WorkSpec {
  std::string unit = "launch";                      ///< "hash", "byte", "element", …
  lattice::Expression amount;                       ///< units per pipeline
  std::optional<lattice::Expression> bytes, flops;  ///< moved and computed per pipeline
  std::optional<lattice::Expression> int_ops;       ///< 32-bit operations per pipeline
  Access access = Access::stream;
  std::optional<lattice::Expression> dataset;  ///< bytes of the region that is read at random
  /// Random loads per pipeline by width (4, 16, 128 bytes), where they are of several; then `access` is not
  /// used.
  std::array<std::optional<lattice::Expression>, random_widths> loads;
  /// Display: rates are amount/s scaled: {"MH/s", 1e6}
  std::string rate_unit = "1/s";
  double rate_scale = 1;
};

/// One fixed vector: scalar values that override, inputs, and the expected bytes of outputs, by argument
/// name.
struct Vector {
  std::string name;
  std::map<std::string, lattice::Value> scalars;  ///< scalar arguments and problem parameters
  std::map<std::string, Bytes> inputs;
  std::map<std::string, Bytes> expected;
};

class Recipe;

/// Immutable after loading; shared by shared_ptr<const Program>; thread safe.
struct Program {
  std::string name;
  std::string summary;
  std::filesystem::path file;  ///< where it was read; empty when made in memory
  std::vector<std::pair<std::string, lattice::Value>> problem;  ///< parameters and defaults, in order
  /// Problem parameters that the sources are made for (a pack's class and dataset size): overriding one by
  /// another value is refused, since it would change what is reported and not what runs.
  std::vector<std::string> fixed_problem;
  /// [let]: named expressions over knobs, problem and earlier ones, in an order in which each uses only
  /// earlier ones. In constraints and `requires` they are already put in; other expressions may name them.
  std::vector<std::pair<std::string, lattice::Expression>> lets;
  std::vector<ArgumentSpec> arguments;
  std::vector<Edition> editions;
  CheckSpec check;
  WorkSpec work;
  std::vector<Vector> vectors;
  /// Features that decide what suits the program, in order: lottery {loads, wide}; may be empty.
  std::vector<std::pair<std::string, lattice::Expression>> class_features;
  std::shared_ptr<const Recipe> recipe;  ///< datasets and built-in reference; may be null
  std::string epoch;                     ///< 16 hexadecimal digits for packs of an epoch; else empty
  std::int64_t day = 0;
  bool trusted = true;  ///< false: a pack without a signature by one of the user's trusted keys

  const Edition* edition(std::string_view language) const;
  std::optional<std::size_t> argument_index(std::string_view name) const;
  /// Content hash of everything that decides what runs: sources, launch, arguments, lattice. Of an emitter:
  /// its name, and text and launches of base and of each variant that differs from base in one knob, at the
  /// default problem and the facts assumed where there is no device.
  Digest source_hash() const;
};

/// Emitters that a program file may name beside those of find_emitter().
using Emitters = std::span<const std::shared_ptr<const Emitter>>;

/// Reads a program file. Errors are `invalid` with "file:line:column: what (nearest valid key)".
Result<std::shared_ptr<const Program>> load_program_file(const std::filesystem::path& file,
                                                         Files& files = system_files(),
                                                         Emitters emitters = {});
/// The same from text (tests, embedded programs); relative paths start at `folder`.
Result<std::shared_ptr<const Program>> parse_program(std::string_view text, std::string_view name,
                                                     const std::filesystem::path& folder, Files& files,
                                                     Emitters emitters = {});

/// A built-in maker of datasets and reference outputs (the lottery). Immutable, thread safe.
class Recipe {
 public:
  virtual ~Recipe() = default;
  virtual std::string name() const = 0;
  /// Bytes of the dataset argument; 0: there is none.
  virtual std::uint64_t dataset_bytes() const { return 0; }
  /// Everything that the dataset's bytes follow from: two recipes with one key build the same bytes, so that
  /// whoever holds them need not build them again. Empty: unknown.
  virtual std::string dataset_key() const { return {}; }
  /// Builds it with `threads` threads into host memory of dataset_bytes(); `timeout` when stopped.
  virtual Status build_dataset(std::span<std::uint8_t> into, int threads, std::stop_token stop) const;
  /// Contents of a buffer with fill = "recipe", by its name: the same problem and seed give the same bytes.
  /// `invalid` where it knows no such argument, or `into` has another size than the problem gives.
  virtual Status fill(std::string_view argument, const lattice::Environment& problem, std::uint64_t seed,
                      std::span<std::uint8_t> into) const;
  /// Fills `expected[i]` of each out/inout argument of `program` from the inputs (bytes by argument index;
  /// scalars as little-endian bytes), by a reference that shares no code with the emitters. `problem` has the
  /// values of this case.
  virtual Status reference(const Program& program, const lattice::Environment& problem,
                           const std::vector<Bytes>& inputs, std::vector<Bytes>& expected) const = 0;
};

}  // namespace furlong::program
