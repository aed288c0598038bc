// The gate must be able to fail: every planted wrong variant is caught.
#include "furlong/race/internal/gate.h"

#include <bit>
#include <cmath>

#include "furlong/race/internal/testing.h"

namespace furlong::race {
namespace {

using testing::Call;
using testing::Stage;
using testing::Tamper;
using testing::variant;

struct Planted {
  const char* name;
  Tamper tamper;
  const char* words;  ///< that the report has
};

class GateCatches : public ::testing::TestWithParam<Planted> {};

TEST_P(GateCatches, ThePlantedVariant) {
  Stage stage;
  stage.sim.timing.gain = {{"u2", 0.5}};  // it would win
  stage.tamper["u2"] = GetParam().tamper;
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_EQ(variant(outcome, "u2").exit, Exit::gate);
  EXPECT_FALSE(variant(outcome, "u2").gated);
  EXPECT_FALSE(variant(outcome, "u2").rate);
  EXPECT_NE(variant(outcome, "u2").why.find(GetParam().words), std::string::npos)
      << variant(outcome, "u2").why;
  EXPECT_EQ(outcome.winner, 0u);
  // What it broke is mended for the next.
  EXPECT_TRUE(variant(outcome, "u4").gated) << variant(outcome, "u4").why;
}

Tamper at(std::uint32_t index, std::uint32_t mask) {
  return [=](const Call& call) { call.y[index < call.n ? index : call.n - 1] ^= mask; };
}

INSTANTIATE_TEST_SUITE_P(
    Wrong, GateCatches,
    ::testing::Values(
        Planted{"one_lane",
                [](const Call& call) {
                  for (std::uint32_t i = 5; i < call.n; i += 32) call.y[i] += 1;
                },
                "'y'"},
        Planted{"one_bit", at(17, 1u << 31), "'y'"}, Planted{"low_bit", at(999, 1), "'y'"},
        Planted{"last_element", [](const Call& call) { call.y[call.n - 1] = 0; }, "'y'"},
        Planted{"past_the_end", [](const Call& call) { call.y[call.n] = 1; }, "past the end of 'y'"},
        Planted{"one_byte_past_the_end",
                [](const Call& call) { reinterpret_cast<std::uint8_t*>(call.y + call.n)[0] ^= 0x10; },
                "past the end of 'y'"},
        Planted{"far_past_the_end", [](const Call& call) { call.y[call.n + 1023] ^= 1; },
                "past the end of 'y'"},
        Planted{"before_the_start", [](const Call& call) { call.y[-1] ^= 1; }, "before the start of 'y'"},
        Planted{"past_its_input", [](const Call& call) { call.x[call.n] ^= 1; }, "past the end of 'x'"},
        Planted{"its_input", [](const Call& call) { call.x[call.n / 2] ^= 1; }, "wrote to its input 'x'"},
        Planted{"only_at_the_timed_size",
                [](const Call& call) {
                  if (call.n == 4096) call.y[4000] ^= 1;
                },
                "'y'"},
        Planted{"only_sometimes",
                [](const Call& call) {
                  if (call.launch == 40) call.y[3] ^= 1;
                },
                "'y'"}),
    [](const auto& planted) { return std::string(planted.param.name); });

TEST(Gate, CatchesLeftoversOfAnEarlierRun) {
  // u2 computes nothing: what base or u4 left in the buffer would pass if the gate did not poison it.
  Stage stage;
  stage.skip_kernel = true;
  stage.tamper["u2"] = [](const Call&) {};
  const Outcome outcome = stage.outcome("u4,u2");
  EXPECT_EQ(variant(outcome, "u2").exit, Exit::gate);
  EXPECT_NE(variant(outcome, "u2").why.find("'y'"), std::string::npos);
}

TEST(Gate, CatchesOneUnwrittenElement) {
  for (const std::uint32_t hole : {0u, 1u, 500u, 999u}) {
    Stage stage;
    stage.skip_kernel = true;
    stage.tamper["u2"] = [=](const Call& call) {
      for (std::uint32_t i = 0; i < call.n; ++i)
        if (i != hole) call.y[i] = 3 * call.x[i] + i;
    };
    EXPECT_EQ(variant(stage.outcome("u2"), "u2").exit, Exit::gate) << hole;
  }
}

TEST(Gate, CatchesAVariantThatRemembersTheFirstAnswer) {
  Stage stage;
  stage.skip_kernel = true;
  auto memory = std::make_shared<std::map<std::uint32_t, std::vector<std::uint32_t>>>();
  stage.tamper["u2"] = [memory](const Call& call) {
    auto& answer = (*memory)[call.n];
    if (answer.empty())
      for (std::uint32_t i = 0; i < call.n; ++i) answer.push_back(3 * call.x[i] + i);
    std::copy(answer.begin(), answer.end(), call.y);
  };
  // Base is the reference over 2^16 elements: more than one set of fresh inputs.
  EXPECT_EQ(variant(stage.outcome("u2"), "u2").exit, Exit::gate);
}

TEST(Gate, FailsABaseThatLeavesItsOutputUnwritten) {
  Stage stage;
  stage.skip_kernel = true;
  stage.tamper["base"] = [](const Call& call) {
    for (std::uint32_t i = 1; i < call.n; ++i) call.y[i] = 3 * call.x[i] + i;
  };
  const auto raced = stage.race("u2");
  ASSERT_FALSE(raced);
  EXPECT_EQ(raced.error().code(), Code::mismatch);
  EXPECT_NE(raced.error().text().find("unwritten"), std::string::npos) << raced.error().text();
}

TEST(Gate, ChecksBaseAgainstTheVectors) {
  auto program = std::make_shared<program::Program>(*testing::parse(testing::mix_text));
  program::Vector vector;
  vector.name = "two";
  vector.scalars["n"] = lattice::Value(2);
  const std::uint32_t x[] = {10, 20}, y[] = {30, 61};
  const auto bytes = [](const std::uint32_t(&words)[2]) {
    Bytes out(8);
    std::memcpy(out.data(), words, 8);
    return out;
  };
  vector.inputs["x"] = bytes(x);
  vector.expected["y"] = bytes(y);
  program->vectors.push_back(vector);
  {
    Stage stage(program);
    const Outcome outcome = stage.outcome("u2");
    EXPECT_NE(outcome.reference.find("1 vector"), std::string::npos) << outcome.reference;
  }
  program->vectors[0].expected["y"][4] ^= 1;
  Stage stage(program);
  const auto raced = stage.race("u2");
  ASSERT_FALSE(raced);
  EXPECT_EQ(raced.error().code(), Code::mismatch);
  EXPECT_NE(raced.error().text().find("vector two"), std::string::npos) << raced.error().text();
}

TEST(Gate, SaysWhichReferenceItUsed) {
  Stage stage;
  const Outcome outcome = stage.outcome("u2");
  EXPECT_NE(outcome.reference.find("base's own output over 66000 work items"), std::string::npos)
      << outcome.reference;
  EXPECT_NE(outcome.reference.find("nothing checks base itself"), std::string::npos);
  EXPECT_NE(outcome.reference.find("at the timed size"), std::string::npos);
}

/// y = 3 x + i, written anew: the reference of the gate.
class MixRecipe : public program::Recipe {
 public:
  explicit MixRecipe(std::uint32_t factor = 3) : factor_(factor) {}
  std::string name() const override { return "mix"; }
  std::uint64_t dataset_bytes() const override { return 0; }
  Status build_dataset(std::span<std::uint8_t>, int, std::stop_token) const override { return {}; }
  Status reference(const program::Program&, const lattice::Environment&, const std::vector<Bytes>& inputs,
                   std::vector<Bytes>& expected) const override {
    for (std::size_t i = 0; 4 * i < expected[1].size(); ++i)
      store_le<std::uint32_t>(&expected[1][4 * i], factor_ * load_le<std::uint32_t>(&inputs[0][4 * i]) +
                                                       static_cast<std::uint32_t>(i));
    return {};
  }

 private:
  std::uint32_t factor_;
};

std::shared_ptr<program::Program> with_recipe(std::uint32_t factor) {
  auto program = std::make_shared<program::Program>(*testing::parse(testing::mix_text));
  program->check.reference = program::ReferenceKind::recipe;
  program->recipe = std::make_shared<MixRecipe>(factor);
  return program;
}

TEST(Gate, UsesTheRecipesReference) {
  Stage stage(with_recipe(3));
  const Outcome outcome = stage.outcome("u2");
  EXPECT_NE(outcome.reference.find("recipe"), std::string::npos);
  EXPECT_TRUE(variant(outcome, "u2").gated);
}

TEST(Gate, FailsABaseThatTheReferenceRefutes) {
  Stage stage(with_recipe(5));
  const auto raced = stage.race("u2");
  ASSERT_FALSE(raced);
  EXPECT_EQ(raced.error().code(), Code::mismatch);
  EXPECT_NE(raced.error().text().find("base failed its gate"), std::string::npos) << raced.error().text();
}

TEST(Gate, TakesOutWhatIsNotValidOnTheChecksProblem) {
  std::string text(testing::mix_text);
  text += "\n[[constraint]]\nexpression = \"CHUNK != 512 or n > 2000\"\n";
  Stage stage(testing::parse(text));
  const Outcome outcome = stage.outcome("u2,c512");
  EXPECT_EQ(variant(outcome, "c512").exit, Exit::gate);
  EXPECT_NE(variant(outcome, "c512").why.find("cannot be checked"), std::string::npos)
      << variant(outcome, "c512").why;
  EXPECT_TRUE(variant(outcome, "u2").gated);
}

// --- tolerance

std::shared_ptr<const program::Program> floating() {
  std::string text(testing::mix_text);
  const auto swap = [&](std::string_view from, std::string_view to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  };
  swap("type = \"u32\"\nsize = \"n\"\nfill = \"random\"\nhigh = 4294967295",
       "type = \"f32\"\nsize = \"n\"\nfill = \"random\"");
  swap("type = \"u32\"\nsize = \"n\"\ndirection = \"out\"",
       "type = \"f32\"\nsize = \"n\"\ndirection = \"out\"");
  swap("kind = \"exact\"", "kind = \"tolerance\"\nbound = 1e-5");
  return testing::parse(text);
}

/// All variants of a floating program run through `tamper`.
void make_float(Stage& stage) {
  stage.skip_kernel = true;
  for (const char* name : {"base", "u2", "u4"})
    stage.tamper[name] = [](const Call& call) {
      for (std::uint32_t i = 0; i < call.n; ++i)
        call.y[i] = std::bit_cast<std::uint32_t>(3 * std::bit_cast<float>(call.x[i]));
    };
}

void scale_of(Stage& stage, const std::string& name, float factor) {
  const Tamper before = stage.tamper[name];
  stage.tamper[name] = [=](const Call& call) {
    before(call);
    for (std::uint32_t i = 0; i < call.n; ++i)
      call.y[i] = std::bit_cast<std::uint32_t>(factor * std::bit_cast<float>(call.y[i]));
  };
}

TEST(GateTolerance, PassesWithinTheBoundAndReportsTheError) {
  Stage stage(floating());
  make_float(stage);
  scale_of(stage, "u2", 1 + 4e-6f);
  const Outcome outcome = stage.outcome("u2,u4");
  ASSERT_TRUE(variant(outcome, "u2").gated) << variant(outcome, "u2").why;
  ASSERT_TRUE(variant(outcome, "u2").error_ratio);
  EXPECT_NEAR(*variant(outcome, "u2").error_ratio, 4e-6, 1e-6);
  EXPECT_EQ(variant(outcome, "u4").error_ratio.value_or(1), 0);
}

TEST(GateTolerance, FailsBeyondTheBound) {
  Stage stage(floating());
  make_float(stage);
  scale_of(stage, "u2", 1 + 4e-5f);
  EXPECT_EQ(variant(stage.outcome("u2,u4"), "u2").exit, Exit::gate);
}

TEST(GateTolerance, NeverPassesNaN) {
  Stage stage(floating());
  make_float(stage);
  const Tamper before = stage.tamper["u2"];
  stage.tamper["u2"] = [=](const Call& call) {
    before(call);
    call.y[call.n - 1] = std::bit_cast<std::uint32_t>(std::nanf(""));
  };
  EXPECT_EQ(variant(stage.outcome("u2,u4"), "u2").exit, Exit::gate);
}

TEST(GateTolerance, CatchesOneUnwrittenElement) {
  Stage stage(floating());
  make_float(stage);
  stage.tamper["u2"] = [](const Call& call) {
    for (std::uint32_t i = 0; i + 1 < call.n; ++i)
      call.y[i] = std::bit_cast<std::uint32_t>(3 * std::bit_cast<float>(call.x[i]));
  };
  EXPECT_EQ(variant(stage.outcome("u2,u4"), "u2").exit, Exit::gate);
}

TEST(SecondGate, CatchesAWinnerThatIsWrongOnlyLater) {
  Stage stage;
  stage.sim.timing.gain = {{"u2", 0.05}, {"u4", 0.03}};
  bool later = false;
  stage.context.progress = [&](const Progress& progress) { later |= progress.phase == Phase::second_gate; };
  stage.tamper["u2"] = [&](const Call& call) {
    if (later) call.y[0] ^= 1;
  };
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_EQ(variant(outcome, "u2").exit, Exit::gate) << outcome.sentence;
  EXPECT_NE(variant(outcome, "u2").why.find("second gate"), std::string::npos) << variant(outcome, "u2").why;
  // u4, which had lost to u2, takes its place.
  EXPECT_EQ(outcome.variants[outcome.winner].name, "u4") << outcome.sentence;
  EXPECT_TRUE(variant(outcome, "u4").gated);
}

}  // namespace
}  // namespace furlong::race
