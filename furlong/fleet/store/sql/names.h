#pragma once
// Names and their numbers in a store of SQL. Names are only ever added, so that what was read once stays
// true.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "furlong/fleet/store/sql/connection.h"
#include "furlong/fleet/store/store.h"

namespace furlong::fleet::sql {

class Names {
 public:
  Names(Connection& connection, std::size_t most) : connection_(&connection), most_(most) {}

  /// Before the first learn of a transaction: forgets all when there are more than fit into memory. Within a
  /// transaction what was learned stays.
  void trim();
  /// Looks them up, and adds those that are not there (in a transaction that writes). Empty ones are skipped.
  Status learn(std::span<const std::string_view> words);
  /// Of a word that was learned in this transaction; 0 for the empty one. `internal`: it was not.
  Result<WordNumber> word(std::string_view text) const;
  /// Without adding it; nullopt: it is not there.
  Result<std::optional<WordNumber>> find(std::string_view word);
  Result<SubjectNumber> learn_subject(const DecodedRace& race);

  /// After a transaction that was given up, or on a new connection.
  void forget();

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  Connection* connection_;
  std::size_t most_;
  std::unordered_map<std::string, WordNumber, Hash, std::equal_to<>> words_;
  std::map<Subject, SubjectNumber> subjects_;
};

/// The fields of Subject in one digest: their texts are too long for an index.
Digest digest_of(const Subject& subject);

}  // namespace furlong::fleet::sql
