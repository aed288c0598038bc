#include "furlong/shard/executor/metamath/proof.h"

#include <algorithm>

#include "furlong/shard/executor/metamath/internal/lexer.h"

namespace furlong::shard::metamath {
namespace {

class Decoder {
 public:
  Decoder(const Database& database, const Assertion& theorem, std::vector<ProofStep>& into)
      : database_(database), theorem_(theorem), into_(into), lexer_(theorem.proof) {}

  Status decode() {
    into_.clear();
    FURLONG_TRY(std::string_view token, lexer_.next());
    if (token.empty()) return wrong("the proof is empty");
    if (token == "(") return compressed();
    for (; !token.empty();) {
      if (token == "?") {
        into_.push_back({StepKind::unknown, 0});
      } else {
        FURLONG_TRY(const ProofStep step, label(token));
        into_.push_back(step);
      }
      FURLONG_TRY(token, lexer_.next());
    }
    return {};
  }

 private:
  Error wrong(std::string message) const {
    return fail(Code::invalid, "{}: {}: {}", database_.at(theorem_.place), theorem_.label, message);
  }

  Result<ProofStep> label(std::string_view token) const {
    const auto found = database_.find(token);
    if (!found) return wrong(fmt::format("the proof names '{}', which is no label", token));
    if (found->assertion) {
      const Assertion& used = database_.assertions()[found->index];
      if (&used == &theorem_) return wrong("the proof uses what it proves");
      if (used.declared > theorem_.declared)
        return wrong(
            fmt::format("the proof uses '{}', which comes later ({})", token, database_.at(used.place)));
      return ProofStep{StepKind::assertion, found->index};
    }
    const Hypothesis& used = database_.hypotheses()[found->index];
    if (used.declared > theorem_.declared || used.closed < theorem_.declared)
      return wrong(fmt::format("the proof uses the hypothesis '{}' of another scope", token));
    return ProofStep{StepKind::hypothesis, found->index};
  }

  Status compressed() {
    const auto mandatory = database_.hypotheses_of(theorem_);
    steps_.reserve(mandatory.size() + 16);
    for (const std::uint32_t index : mandatory) steps_.push_back({StepKind::hypothesis, index});
    for (;;) {
      FURLONG_TRY(const std::string_view token, lexer_.next());
      if (token.empty())
        return wrong("the list of labels of the compressed proof does not end: ')' is missing");
      if (token == ")") break;
      FURLONG_TRY(const ProofStep step, label(token));
      if (step.kind == StepKind::hypothesis &&
          std::find(mandatory.begin(), mandatory.end(), step.value) != mandatory.end())
        return wrong(fmt::format("'{}' is a mandatory hypothesis: it is not listed", token));
      steps_.push_back(step);
    }
    for (;;) {
      FURLONG_TRY(const std::string_view token, lexer_.next());
      if (token.empty()) break;
      for (const char c : token) FURLONG_CHECK(letter(c));
    }
    if (begun_) return wrong("the compressed proof ends inside of a number");
    if (into_.empty()) return wrong("the proof is empty");
    return {};
  }

  Status letter(char c) {
    if (c >= 'A' && c <= 'T') {
      const std::uint64_t number = high_ * 20 + static_cast<std::uint64_t>(c - 'A');
      high_ = 0;
      begun_ = false;
      if (number < steps_.size()) {
        into_.push_back(steps_[number]);
        return {};
      }
      if (number - steps_.size() >= saved_)
        return wrong(fmt::format("step {} of the compressed proof refers to number {}; there are {} so far",
                                 into_.size() + 1, number + 1, steps_.size() + saved_));
      into_.push_back({StepKind::recall, static_cast<std::uint32_t>(number - steps_.size())});
      return {};
    }
    if (c >= 'U' && c <= 'Y') {
      high_ = high_ * 5 + static_cast<std::uint64_t>(c - 'U') + 1;
      begun_ = true;
      if (high_ > 0xffffffffu) return wrong("a number of the compressed proof is too large");
      return {};
    }
    if (begun_) return wrong(fmt::format("'{}' inside of a number of the compressed proof", c));
    if (c == 'Z') {
      // Saving what is at hand anyway has no use; the peer refuses it as well.
      if (into_.empty() || into_.back().kind != StepKind::assertion)
        return wrong("'Z' of the compressed proof stands behind the use of an assertion only");
      into_.push_back({StepKind::save, 0});
      ++saved_;
      return {};
    }
    if (c == '?') {
      into_.push_back({StepKind::unknown, 0});
      return {};
    }
    return wrong(fmt::format("'{}' is no letter of a compressed proof", c));
  }

  const Database& database_;
  const Assertion& theorem_;
  std::vector<ProofStep>& into_;
  Lexer lexer_;
  std::vector<ProofStep> steps_;  // what the numbers stand for, but the saved results
  std::uint64_t saved_ = 0;
  std::uint64_t high_ = 0;
  bool begun_ = false;
};

}  // namespace

Status decode_proof(const Database& database, const Assertion& theorem, std::vector<ProofStep>& into) {
  return Decoder(database, theorem, into).decode();
}

}  // namespace furlong::shard::metamath
