#include "furlong/shard/executor/metamath/verify.h"

#include <gmock/gmock.h>

#include "furlong/shard/executor/metamath/internal/testing.h"

namespace furlong::shard::metamath {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::parsed;

TEST(MetamathVerify, AcceptsProofsInBothForms) {
  const Database database = parsed(testing::small_text());
  std::uint64_t last = 0;
  const auto report = verify_database(database, {.progress = [&](auto done, auto) { last = done; }});
  ASSERT_TRUE(report);
  for (const Unproved& one : report->unproved) ADD_FAILURE() << one.error.text();
  EXPECT_EQ(report->axioms, 7u);
  EXPECT_EQ(report->proofs, 6u);
  EXPECT_EQ(last, 6u);
}

struct Corruption {
  const char* what;
  const char* from;
  const char* to;
  const char* theorem;
  const char* message;
};

// One change each to small_text(); only the theorem that it hits is unproved.
const Corruption corruptions[] = {
    {"a step removed", "wph wps ax-1 ax-mp $. $}", "wph wps ax-mp $. $}", "a1i",
     "step 8, ax-mp: '|- ph' is given for the hypothesis wps ('wff ps')"},
    {"a wrong label", "wph wps wph wi a1i.1 wph wps ax-1 ax-mp", "wph wps wph wi a1i.1 wph wps ax-7 ax-mp",
     "a1i", "the proof names 'ax-7', which is no label"},
    {"another rule", "wph wps ax-1 ax-mp $. $}", "wph wps wi ax-mp $. $}", "a1i",
     "step 9, ax-mp: 'wff ( ph -> ps )' is given for the hypothesis maj"},
    {"a wrong substitution", "$= wph wps wph wi a1i.1", "$= wph wps wps wi a1i.1", "a1i",
     "it is no instance of"},
    {"a wrong type", "wph id ax-gen $.", "vx id ax-gen $.", "gen",
     "step 6, id: 'set x' is given for the hypothesis wph ('wff ph')"},
    {"a distinct-variable condition dropped", "${ $d x ph $.  five", "${ five", "five",
     "step 9, ax-5: ph and x must be distinct, but no $d says so of ph and x"},
    {"an optional one dropped", "${ $d y ph $.", "${", "optional", "but no $d says so of ph and y"},
    {"a common variable", "wal wi wps wph vx ax-5", "wal wi wps wph vx wal vx ax-5", "five",
     "ph and x must be distinct, but both are given 'x'"},
    {"an unfinished proof", "wph wps ax-1 ax-mp $. $}", "? ax-mp $. $}", "a1i",
     "the proof is not finished: step 6 is '?'"},
    {"an unfinished compressed proof", "AAABZBZFAACAFABBGFBAFCAFADEE", "AAAB?", "id",
     "the proof is not finished"},
    {"a changed symbol in a statement", "gen $p |- A. x ( ph -> ph )", "gen $p |- A. x ( ph -> ps )", "gen",
     "the proof proves '|- A. x ( ph -> ph )', not what is stated"},
    {"a changed type of a statement", "gen $p |- A.", "gen $p wff A.", "gen", "not what is stated"},
    {"stack underflow", "$= wph wps wph wi a1i.1 wph wps ax-1 ax-mp $.", "$= wph wi $.", "a1i",
     "step 2, wi: it takes 2 hypotheses, the stack has 1 entries"},
    {"extra stack entries", "gen $p |- A. x ( ph -> ph ) $= wph", "gen $p |- A. x ( ph -> ph ) $= wph wph",
     "gen", "the proof ends with 2 entries on the stack, not 1"},
    {"a forward reference", "wph id a1i $.", "wph gen a1i $.", "idd",
     "the proof uses 'gen', which comes later"},
    {"itself", "wph id ax-gen $.", "wph gen ax-gen $.", "gen", "the proof uses what it proves"},
    {"hypotheses of another scope", "vx wph id ax-gen $.", "vx a1i.1 ax-gen $.", "gen",
     "the proof uses the hypothesis 'a1i.1' of another scope"},
    {"a wrong hypothesis order", "a1i.1 wph wps ax-1 ax-mp $. $}", "wph wps ax-1 a1i.1 ax-mp $. $}", "a1i",
     "it is no instance of"},
    {"an empty proof", "$= wph wph wi vx wph id ax-gen $.", "$= $.", "gen", "the proof is empty"},
    {"an empty compressed proof", "AAABZBZFAACAFABBGFBAFCAFADEE $.", "$.", "id", "the proof is empty"},
    {"a number too high", "AAABZBZF", "AAABZBZUF", "id", "refers to number 26; there are 7 so far"},
    {"a number cut short", "ADEE $.", "ADEEU $.", "id", "ends inside of a number"},
    {"a save in a number", "AAABZBZF", "AAABUZBZF", "id", "'Z' inside of a number"},
    {"a save of a hypothesis", "AAABZBZF", "AZAABZBZF", "id", "'Z' of the compressed proof stands behind"},
    {"a save twice", "AAABZBZF", "AAABZZBZF", "id", "'Z' of the compressed proof stands behind"},
    {"a foreign letter", "AAABZBZF", "AAABZaBZF", "id", "'a' is no letter of a compressed proof"},
    {"an unknown label in the list", "( wi ax-1", "( wj ax-1", "id",
     "the proof names 'wj', which is no label"},
    {"a mandatory hypothesis in the list", "( wi ax-1", "( wph wi ax-1", "id",
     "'wph' is a mandatory hypothesis: it is not listed"},
    {"a list that does not end", "ax-mp ) AAABZBZF", "ax-mp AAABZBZF", "id", "the proof names 'AAABZBZF"},
};

TEST(MetamathVerify, RejectsEveryPlantedCorruptionByName) {
  for (const Corruption& planted : corruptions) {
    const std::string text = testing::small_text();
    ASSERT_NE(text.find(planted.from), std::string::npos) << planted.what;
    const Database database = parsed(replace_all(text, planted.from, planted.to));
    const auto report = verify_database(database);
    ASSERT_TRUE(report) << planted.what;
    ASSERT_EQ(report->unproved.size(), 1u) << planted.what;
    EXPECT_EQ(report->unproved[0].theorem, planted.theorem) << planted.what;
    EXPECT_THAT(report->unproved[0].error.text(), HasSubstr(planted.message)) << planted.what;
    EXPECT_THAT(report->unproved[0].error.text(), HasSubstr(fmt::format(": {}: ", planted.theorem)));
    EXPECT_EQ(report->unproved[0].unfinished, std::string_view(planted.what).starts_with("an unfinished"))
        << planted.what;
  }
}

TEST(MetamathVerify, GrowthOfExpressionsIsBounded) {
  // Each step doubles its formula: 40 of them would take 2^40 symbols.
  std::string text(testing::kSystem);
  text += "${ $v z $. wz $f wff z $. dup $a wff ( z -> z ) $. $} big $p wff ph $= wph";
  for (int i = 0; i < 40; ++i) text += " dup";
  const Database database = parsed(text + " $.");
  const auto report = verify_database(database, {.max_symbols = 1u << 16});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->unproved.size(), 1u);
  EXPECT_EQ(report->unproved[0].error.code(), Code::exhausted);
}

TEST(MetamathVerify, Stops) {
  std::stop_source stop;
  stop.request_stop();
  const auto report = verify_database(parsed(testing::small_text()), {.stop = stop.get_token()});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), Code::timeout);
}

// The program's verdicts on the published databases: everything is proved.
TEST(MetamathVerify, AgreesWithTheProgramOnPublishedDatabases) {
  const std::filesystem::path folder = "/usr/share/metamath/databases";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the package metamath-databases is not installed";
  for (const char* name : {"peano.mm", "hol.mm", "ql.mm", "demo0.mm", "miu.mm", "big-unifier.mm"}) {
    const auto database = Database::read(folder / name);
    ASSERT_TRUE(database) << database.error().text();
    const auto report = verify_database(*database);
    ASSERT_TRUE(report);
    EXPECT_THAT(report->unproved, IsEmpty()) << name;
    EXPECT_EQ(report->proofs, database->theorem_count());
  }
}

}  // namespace
}  // namespace furlong::shard::metamath
