#include "furlong/shard/executor/metamath/database.h"

#include <gmock/gmock.h>

#include "furlong/shard/executor/metamath/internal/testing.h"

namespace furlong::shard::metamath {
namespace {

using ::testing::HasSubstr;
using testing::parsed;

std::string error_of(std::string text) {
  const auto read = Database::parse(std::move(text), "test.mm");
  if (read) return "";
  EXPECT_EQ(read.error().code(), Code::invalid);
  return read.error().text();
}

std::string words(const Database& database, Expression expression) {
  std::string out;
  for (const Symbol symbol : expression) out += std::string(database.symbols()[symbol].name) + " ";
  return out;
}

const Assertion& assertion(const Database& database, std::string_view label) {
  return database.assertions()[database.find(label)->index];
}

TEST(MetamathDatabase, ReadsFramesInTheOrderOfTheText) {
  const Database database = parsed(testing::small_text());
  EXPECT_EQ(database.axiom_count(), 7u);
  EXPECT_EQ(database.theorem_count(), 6u);
  const Assertion& mp = assertion(database, "ax-mp");
  std::string labels;
  for (const auto index : database.hypotheses_of(mp))
    labels += std::string(database.hypotheses()[index].label) + " ";
  EXPECT_EQ(labels, "wph wps min maj ");
  EXPECT_EQ(words(database, database.expression(mp.conclusion)), "|- ps ");
  EXPECT_TRUE(database.distinct_of(mp).empty());
  const Assertion& five = assertion(database, "five");
  ASSERT_EQ(database.distinct_of(five).size(), 1u);
  EXPECT_EQ(database.symbols()[database.distinct_of(five)[0].first].name, "ph");
  EXPECT_EQ(database.symbols()[database.distinct_of(five)[0].second].name, "x");
}

TEST(MetamathDatabase, KeepsPairsWithOptionalVariablesForTheProofAlone) {
  const Database database = parsed(testing::small_text());
  const Assertion& optional = assertion(database, "optional");
  EXPECT_TRUE(database.distinct_of(optional).empty());
  std::vector<Distinct> all;
  database.all_distinct(optional, all);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(database.symbols()[all[0].second].name, "y");
}

TEST(MetamathDatabase, ScopesEndVariablesTypesAndHypotheses) {
  const Database database = parsed(
      "$c wff class |- $. ${ $v p $. a $f wff p $. b $e |- p $. c $a |- p $. $} "
      "${ $v p $. d $f class p $. e $a |- p $. $}");
  EXPECT_EQ(database.hypotheses_of(assertion(database, "c")).size(), 2u);
  EXPECT_EQ(database.hypotheses_of(assertion(database, "e")).size(), 1u);
  EXPECT_EQ(database.symbols().size(), 4u);
}

TEST(MetamathDatabase, ErrorsNameFileLineAndLabel) {
  const std::string start = "$c wff |- $.\n$v p q $.\nwp $f wff p $.\n";
  const std::pair<std::string, std::string> cases[] = {
      {"$c a", "test.mm:1: the text ends inside of a $c statement"},
      {"$c a $. $c a $.", "test.mm:1: 'a' is a constant already"},
      {"$v p $. $v p $.", "'p' is a variable already"},
      {"$c a $. ${ $v a $. $}", "'a' is a constant already"},
      {"${ $v a $. $} $c a $.", "'a' is a variable already"},
      {"${\n\n$c a $. $}", "test.mm:3: $c stands in the outermost scope only"},
      {"$c a$b $.", "'a$b' is no symbol"},
      {"$c $.", "$c without a symbol"},
      {"${", "test.mm:1: this '${' is never closed"},
      {"$}", "'$}' closes no '${'"},
      {"$( a", "test.mm:1: this comment does not end"},
      {"$( a $( b $)", "a comment may not hold '$('"},
      {"$( a$) $)", "'$)' must stand between white space"},
      {"$c \x80 $.", "byte 0x80 is neither printable ASCII nor white space"},
      {"$x", "'$x' begins no statement"},
      {"$a |- $.", "a $a statement without a label"},
      {start + "x! $a |- p $.", "test.mm:4: 'x!' is no label"},
      {start + "x $q |- p $.", "test.mm:4: x: '$q' where $f, $e, $a or $p must follow the label"},
      {start + "x $a |- q $.", "test.mm:4: x: the variable 'q' has no type"},
      {start + "x $a |- r $.", "test.mm:4: x: the symbol 'r' was not declared"},
      {start + "x $a p $.", "x: the first symbol, 'p', is no constant"},
      {start + "x $a $.", "x: $a without a symbol"},
      {start + "x $a |- p $= $.", "x: '$=' where '$.' must end the symbols"},
      {start + "x $p |- p $.", "x: '$.' where '$=' must end the symbols"},
      {start + "x $p |- p $= wp", "this proof does not end: '$.' is missing (the proof of x)"},
      {start + "x $p |- p $= wp $a $.", "'$a' inside of a proof (the proof of x)"},
      {start + "x $p |- p $= w$. $.", "'$' inside of a token of a proof"},
      {start + "wp $a |- p $.", "test.mm:4: wp: this label is in use already"},
      {start + "wff $a |- p $.", "wff: this label is a symbol already"},
      {start + "$c wp $.", "the symbol 'wp' is a label already"},
      {start + "wr $f wff p $.", "wr: the variable 'p' has a type already"},
      {start + "wr $f p p $.", "wr: 'p' in $f is no active constant"},
      {start + "wr $f wff wff $.", "wr: 'wff' in $f is no active variable"},
      {start + "wq $f wff q q $.", "wq: 'q' where '$.' must end $f"},
      {start + "$d p $.", "$d takes two variables or more"},
      {start + "$d p p $.", "'p' twice in one $d"},
      {start + "$d p wff $.", "'wff' in $d is no active variable"},
      {start + "${ $v r $. $} x $a |- r $.", "x: the variable 'r' is not active here"},
      {start + "$[ other.mm $]", "'other.mm' cannot be included here"},
  };
  for (const auto& [text, message] : cases) EXPECT_THAT(error_of(text), HasSubstr(message)) << text;
}

TEST(MetamathDatabase, IncludesEachFileOnceFromTheFolderOfTheFirst) {
  FakeFiles files;
  ASSERT_TRUE(files.write_atomic("db/main.mm", "$[ parts/a.mm $] $[ parts/a.mm $]\nx $a |- p $."));
  ASSERT_TRUE(files.write_atomic("db/parts/a.mm", "$[ main.mm $] $c wff |- $. $v p $. wp $f wff p $."));
  const auto read = Database::read("db/main.mm", files);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->at(assertion(*read, "x").place), "db/main.mm:2");
  EXPECT_EQ(read->hypotheses_of(assertion(*read, "x")).size(), 1u);

  ASSERT_TRUE(files.write_atomic("db/parts/a.mm", "$c wff |- $. $v p $.\nwp $f wff z $."));
  const auto wrong = Database::read("db/main.mm", files);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().text(), HasSubstr("included in db/main.mm:1"));
  EXPECT_THAT(wrong.error().text(), HasSubstr("db/parts/a.mm:2: wp: 'z' in $f is no active variable"));

  ASSERT_TRUE(files.write_atomic("db/main.mm", "$[ gone.mm $]"));
  const auto gone = Database::read("db/main.mm", files);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), Code::unavailable);
  ASSERT_TRUE(files.write_atomic("db/main.mm", "${ $[ parts/a.mm $] $}"));
  EXPECT_FALSE(Database::read("db/main.mm", files));
}

}  // namespace
}  // namespace furlong::shard::metamath
