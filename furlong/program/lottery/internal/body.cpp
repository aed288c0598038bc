#include "furlong/program/lottery/internal/body.h"

#include <fmt/format.h>

#include <algorithm>

namespace furlong::program::lottery::internal {
namespace {

std::string instruction_text(const Instruction& i) {
  const int d = i.destination;
  const int s = i.source;
  switch (i.operation) {
    case Operation::add:
      return fmt::format("r{0} = r{0} + r{1};", d, s);
    case Operation::subtract:
      return fmt::format("r{0} = r{0} - r{1};", d, s);
    case Operation::exclusive:
      return fmt::format("r{0} = r{0} ^ r{1};", d, s);
    case Operation::multiply:
      return fmt::format("r{0} = r{0} * 0x{2:08x}u + r{1};", d, s, i.constant);
    case Operation::rotate:
      return fmt::format("r{0} = rotate_left(r{0}, {2}u) ^ r{1};", d, s, i.rotation);
    case Operation::high:
      return fmt::format("r{0} = r{0} + high_half(r{1}, 0x{2:08x}u);", d, s, i.constant);
    case Operation::load:
      return fmt::format("r{0} = rotate_left(r{0}, {2}u) ^ dataset_word(dataset, r{1});", d, s, i.rotation);
    case Operation::load_wide:
      return fmt::format(
          "quad = dataset_quad(dataset, r{1}); "
          "r{0} = ((rotate_left(r{0} ^ quad.x, {2}u) + quad.y) ^ quad.z) * 0x{3:08x}u + quad.w;",
          d, s, i.rotation, i.constant);
  }
  return {};
}

std::string nonce_statements(const LotteryProgram& program, std::string_view indent) {
  const auto& key = program.nonce_keys;
  std::string out;
  out += fmt::format("{}low = low ^ 0x{:08x}u;\n", indent, key[0]);
  out += fmt::format("{}upper = upper ^ 0x{:08x}u;\n", indent, key[1]);
  out += fmt::format("{}upper = upper ^ finalise(low + 0x{:08x}u);\n", indent, key[2]);
  out += fmt::format("{}low = low ^ finalise(upper + 0x{:08x}u);\n", indent, key[3]);
  out += fmt::format("{}upper = upper ^ finalise(low + 0x{:08x}u);\n", indent, key[4]);
  out += fmt::format("{}low = low ^ finalise(upper + 0x{:08x}u);\n", indent, key[5]);
  for (std::size_t k = 0; k < program.register_keys.size(); ++k)
    out += fmt::format("{}word r{} = finalise({} + 0x{:08x}u);\n", indent, k, k % 2 == 0 ? "low" : "upper",
                       program.register_keys[k]);
  return out;
}

std::string final_statements(const LotteryProgram& program, std::string_view indent) {
  std::string out;
  out += fmt::format("{}word a = rotate_left((r0 ^ 0x{:08x}u) * 0x9e3779b1u, 15u);\n", indent,
                     program.hash_keys[0]);
  out += fmt::format("{}word b = rotate_left(r0 + 0x{:08x}u, 11u) * 0x85ebca77u;\n", indent,
                     program.hash_keys[1]);
  for (int k = 1; k < kRegisters; ++k) {
    out += fmt::format("{}a = rotate_left((a ^ r{}) * 0x9e3779b1u, 15u);\n", indent, k);
    out += fmt::format("{}b = rotate_left(b + r{}, 11u) * 0x85ebca77u;\n", indent, k);
  }
  out += fmt::format("{0}a = finalise(a + b);\n{0}b = finalise(b ^ a);\n{0}a = finalise(a + b);\n", indent);
  return out;
}

}  // namespace

std::string origin_lines(const Geometry& geometry, const TextOrigin& origin, std::string_view language_note) {
  return fmt::format(
      "// Furlong lottery, format {}. Epoch seed {},\n"
      "// day {}; {} loads a hash, {} of them wide; dataset of {} bytes.\n"
      "// {}\n\n"
      "#define DATASET_WORDS {}u\n",
      kFormat, origin.epoch_seed_hex, origin.day, origin.loads, origin.wide, geometry.dataset_bytes,
      language_note, geometry.dataset_words());
}

std::string finalise_body() {
  return "{\n"
         "  x = x ^ (x >> 16u);\n"
         "  x = x * 0x85ebca6bu;\n"
         "  x = x ^ (x >> 13u);\n"
         "  x = x * 0xc2b2ae35u;\n"
         "  return x ^ (x >> 16u);\n"
         "}\n";
}

std::string hash_statements(const LotteryProgram& program, std::string_view loop_hint,
                            std::string_view indent) {
  std::string out = nonce_statements(program, indent);
  out += loop_hint;
  out += fmt::format("{}for (uint iteration = 0u; iteration < {}u; ++iteration) {{\n", indent, kIterations);
  if (reads_wide(program)) out += fmt::format("{}  quad_of_words quad;\n", indent);
  for (const Instruction& instruction : program.instructions)
    out += fmt::format("{}  {}\n", indent, instruction_text(instruction));
  out += fmt::format("{}}}\n", indent);
  return out + final_statements(program, indent);
}

bool reads_wide(const LotteryProgram& program) {
  return std::ranges::any_of(program.instructions,
                             [](const Instruction& i) { return i.operation == Operation::load_wide; });
}

}  // namespace furlong::program::lottery::internal
