// Tokens and machines.
#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/fleet/store/sql/sql_store.h"

namespace furlong::fleet::sql {
namespace {

#define FURLONG_MACHINE_COLUMNS                                                                             \
  "id, key, retired, label, canary, enrolled_us, seen_us, agent, manifest, replaces, accepted, duplicate, " \
  "refused, last_refusal, says_canary, header"
constexpr std::string_view all_machines = "SELECT " FURLONG_MACHINE_COLUMNS " FROM machine";
constexpr std::string_view one_machine = "SELECT " FURLONG_MACHINE_COLUMNS " FROM machine WHERE id=?1";
constexpr std::string_view new_machine =
    "INSERT INTO machine(number, id, key, retired, label, canary, enrolled_us, seen_us, agent, manifest, "
    "replaces, "
    "accepted, duplicate, refused, last_refusal, says_canary, header) SELECT coalesce(max(number), 0)+1, ?1, "
    "?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16 FROM machine";
constexpr std::string_view old_machine =
    "UPDATE machine SET key=?2, retired=?3, label=?4, canary=?5, enrolled_us=?6, seen_us=?7, agent=?8, "
    "manifest=?9, replaces=?10, accepted=?11, duplicate=?12, refused=?13, last_refusal=?14, says_canary=?15, "
    "header=?16 WHERE id=?1";
constexpr std::string_view all_tokens =
    "SELECT digest, label, canary, replaces, issued_us, expires_us, machine FROM token ORDER BY issued_us, "
    "digest";
constexpr std::string_view one_token =
    "SELECT digest, label, canary, replaces, issued_us, expires_us, machine FROM token WHERE digest=?1";
constexpr std::string_view drop_token = "DELETE FROM token WHERE digest=?1";
constexpr std::string_view new_token =
    "INSERT INTO token(digest, label, canary, replaces, issued_us, expires_us, machine) "
    "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)";
constexpr std::string_view count_change = "UPDATE totals SET change=change+1";

Result<Machine> machine_of(const Row& row) {
  Machine machine{.id = std::string(row.text(0))};
  if (const ByteView key = row.blob(1); !key.empty()) {
    machine.key.emplace();
    if (key.size() != machine.key->bytes.size())
      return fail(Code::corrupt, "machine {}: a key of {} bytes", machine.id, key.size());
    std::ranges::copy(key, machine.key->bytes.begin());
  }
  machine.state = row.integer(2) != 0 ? MachineState::retired : MachineState::active;
  machine.label = row.text(3);
  machine.canary = row.integer(4) != 0;
  machine.enrolled_us = row.integer(5);
  machine.seen_us = row.integer(6);
  machine.agent = row.text(7);
  machine.manifest = row.text(8);
  machine.replaces = row.text(9);
  machine.accepted = static_cast<std::uint64_t>(row.integer(10));
  machine.duplicate = static_cast<std::uint64_t>(row.integer(11));
  machine.refused = static_cast<std::uint64_t>(row.integer(12));
  machine.last_refusal = row.text(13);
  machine.says_canary = row.integer(14) != 0;
  machine.header = row.text(15);
  return machine;
}

Result<Token> token_of(const Row& row) {
  Token token;
  const ByteView digest = row.blob(0);
  if (digest.size() != token.digest.bytes.size())
    return fail(Code::corrupt, "a token's digest of {} bytes", digest.size());
  std::ranges::copy(digest, token.digest.bytes.begin());
  token.label = row.text(1);
  token.canary = row.integer(2) != 0;
  token.replaces = row.text(3);
  token.issued_us = row.integer(4);
  token.expires_us = row.integer(5);
  token.machine = row.text(6);
  return token;
}

}  // namespace

Result<std::vector<Machine>> SqlStore::read_machines(std::string_view id) {
  std::vector<Machine> all;
  const auto take = [&](std::size_t, const Row& row) -> Result<bool> {
    FURLONG_TRY(Machine machine, machine_of(row));
    all.push_back(std::move(machine));
    return true;
  };
  if (id.empty()) {
    FURLONG_CHECK(connection_->once(all_machines, {}, take));
    std::ranges::sort(all, {}, &Machine::id);
  } else {
    FURLONG_CHECK(connection_->once(one_machine, {id}, take));
  }
  return all;
}

Result<std::optional<Machine>> SqlStore::read_machine(std::string_view id) {
  if (id.empty()) return std::nullopt;
  FURLONG_TRY(std::vector<Machine> found, read_machines(id));
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

Status SqlStore::write_machine(const Machine& machine) {
  FURLONG_TRY(const std::optional<Machine> before, read_machine(machine.id));
  const ByteView key = machine.key ? ByteView(machine.key->bytes) : ByteView();
  FURLONG_CHECK(connection_->once(
      before ? old_machine : new_machine,
      {std::string_view(machine.id), key, std::int64_t{machine.state == MachineState::retired},
       std::string_view(machine.label), std::int64_t{machine.canary}, machine.enrolled_us, machine.seen_us,
       std::string_view(machine.agent), std::string_view(machine.manifest),
       std::string_view(machine.replaces), static_cast<std::int64_t>(machine.accepted),
       static_cast<std::int64_t>(machine.duplicate), static_cast<std::int64_t>(machine.refused),
       std::string_view(machine.last_refusal), std::int64_t{machine.says_canary},
       std::string_view(machine.header)}));
  return changed();
}

Status SqlStore::changed() { return connection_->once(count_change); }

Result<std::vector<Token>> SqlStore::read_tokens(const Digest* digest) {
  std::vector<Token> all;
  const auto take = [&](std::size_t, const Row& row) -> Result<bool> {
    FURLONG_TRY(Token token, token_of(row));
    all.push_back(std::move(token));
    return true;
  };
  if (digest == nullptr)
    FURLONG_CHECK(connection_->once(all_tokens, {}, take));
  else
    FURLONG_CHECK(connection_->once(one_token, {ByteView(digest->bytes)}, take));
  return all;
}

Status SqlStore::write_token(const Token& token) {
  FURLONG_CHECK(connection_->once(drop_token, {ByteView(token.digest.bytes)}));
  return connection_->once(new_token, {ByteView(token.digest.bytes), std::string_view(token.label),
                                       std::int64_t{token.canary}, std::string_view(token.replaces),
                                       token.issued_us, token.expires_us, std::string_view(token.machine)});
}

Status SqlStore::add_token(const Token& token) {
  return writing([&]() -> Status {
    FURLONG_TRY(const std::vector<Token> before, read_tokens(&token.digest));
    if (!before.empty()) return fail(Code::invalid, "{}: this token is there already", connection_->name());
    return write_token(token);
  });
}

Status SqlStore::put_token(const Token& token) {
  return writing([&]() -> Status {
    FURLONG_TRY(const std::vector<Token> before, read_tokens(&token.digest));
    return write_token(before.empty() ? token : merged(before.front(), token));
  });
}

Result<std::vector<Token>> SqlStore::tokens() {
  return reading([&] { return read_tokens(nullptr); });
}

Result<Machine> SqlStore::enrol(const Digest& token, const PublicKey& key, std::int64_t now_us) {
  return writing([&] { return take_in(token, key, now_us); });
}

Result<Machine> SqlStore::take_in(const Digest& digest, const PublicKey& key, std::int64_t now_us) {
  FURLONG_TRY(std::vector<Token> tokens, read_tokens(&digest));
  if (tokens.empty()) return fail(Code::denied, "no such token was issued here");
  Token& token = tokens.front();
  const std::string id = key.id();
  FURLONG_TRY(std::optional<Machine> known, read_machine(id));
  if (known && known->state == MachineState::retired)
    return fail(Code::denied, "machine {} is retired; give it a new key and a new token", id);
  if (!token.machine.empty()) {
    if (token.machine == id && known) return *std::move(known);
    return fail(Code::denied, "this token was used by another key");
  }
  if (now_us >= token.expires_us) return fail(Code::denied, "this token has expired");
  token.machine = id;
  Machine machine = known ? *std::move(known) : Machine{.id = id};
  machine.key = key;
  machine.label = token.label;
  machine.canary = token.canary;
  machine.enrolled_us = now_us;
  if (!token.replaces.empty() && token.replaces != id) {
    machine.replaces = token.replaces;
    FURLONG_TRY(std::optional<Machine> old, read_machine(token.replaces));
    if (old) {
      old->state = MachineState::retired;
      FURLONG_CHECK(write_machine(*old));
    }
  }
  FURLONG_CHECK(write_token(token));
  FURLONG_CHECK(write_machine(machine));
  return machine;
}

Result<std::optional<Machine>> SqlStore::machine(std::string_view id) {
  return reading([&] { return read_machine(id); });
}

Result<std::vector<Machine>> SqlStore::machines() {
  return reading([&] { return read_machines({}); });
}

Status SqlStore::change_machine(std::string_view id, const std::function<void(Machine&)>& change) {
  return writing([&]() -> Status {
    FURLONG_TRY(std::optional<Machine> machine, read_machine(id));
    if (!machine)
      return fail(Code::invalid, "{}: there is no machine '{}'", connection_->name(),
                  one_line(id.substr(0, 60)));
    change(*machine);
    return write_machine(*machine);
  });
}

Status SqlStore::retire(std::string_view id) {
  return change_machine(id, [](Machine& machine) { machine.state = MachineState::retired; });
}

Status SqlStore::set_canary(std::string_view id, bool canary) {
  return change_machine(id, [&](Machine& machine) { machine.canary = canary; });
}

Status SqlStore::put_machine(const Machine& machine) {
  return writing([&]() -> Status {
    FURLONG_TRY(const std::optional<Machine> before, read_machine(machine.id));
    return write_machine(before ? merged(*before, machine) : machine);
  });
}

Status SqlStore::add_importer(std::string_view name, std::int64_t now_us) {
  return writing([&]() -> Status {
    Machine machine{.id = "import:" + std::string(name)};
    machine.enrolled_us = now_us;
    FURLONG_TRY(const std::optional<Machine> before, read_machine(machine.id));
    return before ? Status() : write_machine(machine);
  });
}

}  // namespace furlong::fleet::sql
