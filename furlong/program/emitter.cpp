#include "furlong/program/emitter.h"

#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/program/linear/linear.h"

namespace furlong::program {
namespace {

// One line an emitter.
std::vector<std::shared_ptr<const Emitter>> shipped_emitters() {
  return {linear::make_gemv_emitter(), linear::make_gemm_emitter(), linear::make_gemm_real_emitter()};
}

}  // namespace

Result<std::shared_ptr<const Emitter>> find_emitter(std::string_view name, Emitters others) {
  std::vector<std::shared_ptr<const Emitter>> all(others.begin(), others.end());
  for (auto& emitter : shipped_emitters()) all.push_back(std::move(emitter));
  std::vector<std::string> names;
  for (const auto& emitter : all) {
    if (emitter->name() == name) return emitter;
    names.emplace_back(emitter->name());
  }
  const std::string guess = did_you_mean(name, names);
  return fail(Code::invalid, "there is no emitter '{}'{}", name,
              guess.empty() && !names.empty() ? fmt::format("; there are {}", join(names, ", ")) : guess);
}

}  // namespace furlong::program
