#pragma once
// A program bound to a language, a problem and a device's facts: variants become plans to compile and launch,
// arguments become bytes.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "furlong/program/program.h"

namespace furlong::program {

/// Everything that compiling and launching one variant takes, with all expressions evaluated.
struct VariantPlan {
  std::string name;
  lattice::Point point;
  std::string source;  ///< after rewrites
  std::string source_name;
  std::vector<std::string> entries;  ///< distinct, in pipeline order
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<std::string> options;
  std::vector<std::filesystem::path> include_folders;
  std::vector<std::string> notes;  ///< of an emitter: what it resolved or could not do as asked
  bool fallback = false;           ///< one of the notes tells of something that could not be done as asked
  /// Digest of (source, entries, defines, options): the key of quarantine and caches.
  Digest source_hash;
};

struct LaunchPlan {
  std::string entry;
  std::array<std::uint64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::uint64_t shared_bytes = 0;
  std::vector<std::size_t> arguments;  ///< indices into the program's arguments
  /// Values of scalar arguments for this launch alone, by index; the others have the program's.
  std::map<std::size_t, Bytes> scalars;
  /// It makes a layout of the inputs in scratch: it runs when they are loaded, before the others, and is no
  /// part of what is timed. Whoever shares scratch between variants runs it again before another variant.
  bool once = false;
};

/// Names of device facts that expressions may use: "device.sm", "device.max_threads", …
std::span<const std::string> device_fact_names();
/// Facts assumed where the caller gives none (no card present): a warp of 32 (host: 1), 1024 threads, 48 KiB
/// of shared memory, and for CUDA sm 86 (the default chip); else sm 0.
lattice::Environment assumed_facts(std::string_view language);

/// Host bytes of one run: per argument (index as in the program).
struct RunInputs {
  std::string name;                ///< "vector 3", "random inputs of seed 7", for messages
  lattice::Environment problem;    ///< with scalar overrides
  std::vector<bool> scalar_fixed;  ///< scalar arguments whose value a vector fixes, whatever the point
  std::vector<Bytes> bytes;  ///< initial contents (buffers) or value (scalars). Pure outputs and scratch:
                             ///< sized, unfilled → empty; dataset: empty
  std::vector<std::size_t> buffer_bytes;  ///< size of every buffer argument (0 for scalars)
  std::vector<Bytes> expected;  ///< outputs where known from vectors, files or the recipe; else empty
};

/// Immutable; thread safe.
class Instance {
 public:
  /// `overrides` replace problem defaults (unknown name: `invalid` with the nearest; so is another value for
  /// a parameter of Program::fixed_problem); `facts` are device facts
  /// ("device.sm", "device.max_threads", "device.warp", "device.shared_bytes") for constraints; those that
  /// are missing are taken from assumed_facts(). `invalid` when the program has no such language.
  static Result<Instance> make(std::shared_ptr<const Program> program, std::string_view language,
                               const std::vector<std::pair<std::string, lattice::Value>>& overrides,
                               const lattice::Environment& facts);

  const Program& program() const { return *program_; }
  std::shared_ptr<const Program> shared_program() const { return program_; }
  const Edition& edition() const { return *edition_; }
  const lattice::Lattice& lattice() const { return edition_->lattice; }
  const lattice::Environment& problem() const { return problem_; }
  /// Problem and device facts, for Lattice::satisfies and Space::build.
  lattice::Lookup facts() const;

  /// Points named by "catalogue", "all", "a,b,c" or a mixture; base is always added, first, and none comes
  /// twice. A program without a catalogue has all valid points as its catalogue when they are at most 64,
  /// else base and the valid changes of one knob. Lossy and restricted values are left out of "all" and
  /// "catalogue" unless allowed by knob name, and so are catalogue variants that are not valid on this
  /// problem and device (a log message names them). A named variant that is not valid here is `invalid` with
  /// the reason; a named lossy one that is not allowed is `denied`. "all" of more than 100,000 points is
  /// `invalid`.
  Result<std::vector<lattice::Point>> select(std::string_view variants,
                                             std::span<const std::string> allow_lossy = {}) const;

  /// Source after rewrites, defines, options. `invalid` "u2: anchor not found: …" / "occurs 2 times, expected
  /// 1". An emitter makes the text for this instance's problem and device facts; its errors are passed on.
  Result<VariantPlan> plan(const lattice::Point& point) const;
  /// Launches for the point with the problem of `inputs`; those that run once come first. `invalid` when an
  /// emitter makes another text or other kernels for that problem than plan() has.
  Result<std::vector<LaunchPlan>> launches(const lattice::Point& point, const RunInputs& inputs) const;

  /// Elements of a buffer argument for a point, scratch by its own size, with the problem of `inputs`.
  Result<std::uint64_t> elements(std::size_t argument, const lattice::Point& point,
                                 const RunInputs& inputs) const;
  /// The bound of a tolerance check for this point; `invalid` unless it is over 0 and under 1.
  Result<double> bound(const lattice::Point& point) const;
  /// The program's check with this point's bound. Errors as of bound().
  Result<CheckSpec> check(const lattice::Point& point) const;

  /// Inputs of the timed problem from a seed.
  Result<RunInputs> timed_inputs(std::uint64_t seed, std::span<const lattice::Point> points) const;
  /// The same without contents, for whoever has inputs of its own: sizes of buffers, and scalars that the
  /// problem or the program gives; those that are drawn at random are empty.
  Result<RunInputs> timed_sizes(std::span<const lattice::Point> points) const;
  /// Inputs of the gate: fresh random ones of a seed, on the check's problem (with the recipe's expected
  /// outputs when the check's reference is the recipe). `invalid` names a point that is not valid on that
  /// problem.
  Result<RunInputs> check_inputs(std::uint64_t seed, std::span<const lattice::Point> points) const;
  /// The fixed vectors.
  std::size_t vector_count() const { return program_->vectors.size(); }
  Result<RunInputs> vector_inputs(std::size_t i, std::span<const lattice::Point> points) const;

  /// Scalar argument's bytes in a launch: its own value, or the point's.
  Result<Bytes> scalar_bytes(const LaunchPlan& launch, std::size_t argument, const lattice::Point& point,
                             const RunInputs& inputs) const;
  /// Scalar argument's bytes for a point (values may depend on knobs).
  Result<Bytes> scalar_bytes(std::size_t argument, const lattice::Point& point,
                             const RunInputs& inputs) const;

  /// Units, bytes and operations per pipeline on the timed problem.
  struct Work {
    double amount = 1;
    std::optional<double> bytes, flops, int_ops;
    /// Random loads of 4, 16 and 128 bytes in `dataset` bytes. All 0: the bytes are streamed.
    std::array<double, random_widths> loads{};
    double dataset = 0;
  };
  Result<Work> work(const lattice::Point& point) const;
  /// Class features evaluated: {"loads", 128}, …
  std::vector<std::pair<std::string, std::int64_t>> class_values() const;

 private:
  /// The problem of the gate's inputs.
  Result<lattice::Environment> checked_problem() const;
  Result<std::vector<LaunchPlan>> emitted_launches(const lattice::Point& point,
                                                   const RunInputs& inputs) const;

  std::shared_ptr<const Program> program_;
  const Edition* edition_ = nullptr;
  lattice::Environment problem_;
  lattice::Environment facts_;
  std::vector<std::pair<std::string, std::int64_t>> class_values_;
};

/// Whether `got` passes the check against `want` for one argument; the message names the first wrong element
/// ("element 17: got 3, expected 4; 12 of 4096 wrong") or the error ratio. NaN never passes a tolerance;
/// integers are always exact.
Status compare_output(const CheckSpec& check, const ArgumentSpec& argument, ByteView got, ByteView want,
                      double* error_ratio = nullptr);

}  // namespace furlong::program
