// Proofs made at random, and what becomes of them when something is changed at random: three checkers that
// share little must be of one mind.
#include <gmock/gmock.h>

#include "furlong/shard/executor/metamath/internal/testing.h"

namespace furlong::shard::metamath {
namespace {

using testing::Generator;
using testing::MemoryStore;

std::string generated(std::uint64_t seed, int theorems) {
  return std::string(testing::kSystem) + Generator(seed).theorems(theorems);
}

/// By the record, theorem by theorem; what it accepts goes through a job and is verified.
std::vector<std::string> rejected(const Database& database) {
  MemoryStore store;
  const auto made = make_units(database, store);
  if (!made) throw std::runtime_error(made.error().text());
  const auto record = testing::record();
  std::vector<std::string> out;
  std::vector<Unit> accepted;
  for (const Unit& unit : store.units()) {
    if (record->add(unit, store))
      accepted.push_back(unit);
    else
      out.push_back(unit.name);
  }
  const KeyPair key = *KeyPair::from_seed(Bytes(32, 1));
  JobOptions options;
  options.signer = &key;
  const auto executor = make_executor();
  const Claim claim = testing::claim(accepted);
  const auto result = executor->run(MemoryStore::kSettings, claim, accepted, store, options);
  EXPECT_TRUE(result) << result.error().text();
  if (result) {
    EXPECT_EQ(result->check.work, record->cost().work);
    const Status verified =
        executor->verify(MemoryStore::kSettings, claim, accepted, store, result->receipt, {});
    EXPECT_TRUE(verified) << verified.error().text();
  }
  return out;
}

TEST(MetamathProperty, TrueProofsAreAccepted) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Database database = testing::parsed(generated(seed, 20));
    ASSERT_EQ(testing::unproved(database), std::vector<std::string>()) << seed;
    ASSERT_EQ(rejected(database), std::vector<std::string>()) << seed;
  }
}

/// A word of a theorem's proof or statement changed, dropped, doubled or swapped with its neighbour.
std::string corrupted(const std::string& text, Random& random) {
  static const std::vector<std::string> words{"wph", "wps",  "wch",  "vx",    "vy",     "wi",
                                              "wal", "ax-1", "ax-2", "ax-mp", "ax-gen", "ax-5",
                                              "t0",  "t3",   "ph",   "ps",    "(",      "->"};
  std::vector<std::string> all = split(text, ' ');
  const std::size_t at = random.below(all.size() - 1);
  switch (random.below(4)) {
    case 0:
      all[at] = words[random.below(words.size())];
      break;
    case 1:
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 2:
      all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), all[at]);
      break;
    default:
      std::swap(all[at], all[at + 1]);
  }
  return join(all, " ");
}

/// Per label: what is stated.
std::map<std::string, std::string> statements(const Database& database) {
  std::map<std::string, std::string> out;
  for (const Assertion& assertion : database.assertions()) {
    std::string& text = out[std::string(assertion.label)];
    for (const Symbol symbol : database.expression(assertion.conclusion))
      text += std::string(database.symbols()[symbol].name) + " ";
  }
  return out;
}

TEST(MetamathProperty, ChangedProofsAreRejectedOrProveTheSame) {
  int parsed = 0, refused = 0, undecodable = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    Random random(seed, "corruptions");
    const std::string theorems = Generator(seed % 25).theorems(6);
    const Database plain = testing::parsed(std::string(testing::kSystem) + theorems);
    const auto read = Database::parse(std::string(testing::kSystem) + corrupted(theorems, random), "test.mm");
    if (!read) continue;
    ++parsed;
    const auto report = verify_database(*read);
    ASSERT_TRUE(report);
    bool units = true;
    std::vector<std::string> unproved;
    for (const Unproved& one : report->unproved) {
      units &= one.error.code() == Code::mismatch;
      unproved.push_back(one.theorem);
    }
    refused += unproved.empty() ? 0 : 1;
    // One verdict from both; where labels cannot be resolved there is no unit to judge.
    if (units) {
      ASSERT_EQ(rejected(*read), unproved) << seed;
    } else {
      ++undecodable;
    }
    const auto before = statements(plain), after = statements(*read);
    for (const auto& [label, stated] : after)
      if (before.contains(label) && before.at(label) != stated) {
        EXPECT_NE(std::find(unproved.begin(), unproved.end(), label), unproved.end())
            << seed << ": " << label << " is accepted, but now states " << stated;
      }
  }
  EXPECT_GT(parsed, 500);
  EXPECT_GT(refused, parsed / 2);
  EXPECT_GT(undecodable, 10);
}

}  // namespace
}  // namespace furlong::shard::metamath
