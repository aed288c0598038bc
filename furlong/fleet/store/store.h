#pragma once
// The fleet's store: machines, signed batches as they came, and their races decoded
// (docs/formats/fleet-store.md). One interface, one conformance suite (furlong/fleet/store/conformance), one
// folder a kind of store.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/hash.h"
#include "furlong/base/sign.h"
#include "furlong/fleet/store/race.h"

namespace furlong::fleet {

// ---- who may send ----

enum class MachineState { active, retired };
std::string_view machine_state_name(MachineState state);

struct Machine {
  std::string id;  ///< fingerprint of its key; of imported records: "import:NAME", without a key
  std::optional<PublicKey> key;
  MachineState state = MachineState::active;
  std::string label;    ///< what the operator called it when the token was made; may be empty
  bool canary = false;  ///< as its token or the operator says; never by its own word
  std::int64_t enrolled_us = 0;
  std::int64_t seen_us = 0;  ///< of its newest batch; 0: none yet
  std::string agent;         ///< version, as its newest batch says
  std::string manifest;      ///< version of the fleet manifest that it follows; empty: none, or not told
  bool says_canary = false;  ///< as its newest batch says: a report, on which nothing is judged
  std::string header;        ///< id of that newest batch; empty: none yet
  std::string replaces;      ///< the machine that its token retired; empty: none
  std::uint64_t accepted = 0, duplicate = 0, refused = 0;  ///< records since it was enrolled
  std::string last_refusal;                                ///< why, of the newest refused record
  bool operator==(const Machine&) const = default;
};

/// A right to enrol one machine, once. The token itself is not kept.
struct Token {
  Digest digest;  ///< BLAKE2b-256 of its text
  std::string label;
  bool canary = false;
  std::string replaces;  ///< this machine is retired when the token is used
  std::int64_t issued_us = 0, expires_us = 0;
  std::string machine;  ///< that used it; empty: free
  bool operator==(const Token&) const = default;
};

// ---- what they sent ----

/// A batch on its way into the store: verified, its lines judged.
struct IncomingBatch {
  std::string id;         ///< UUIDv7
  std::string machine;    ///< must be known to the store
  std::string signature;  ///< 128 hexadecimal digits; empty: imported
  std::string body;       ///< the exact bytes that were signed
  std::int64_t received_us = 0;
  std::string agent, manifest;  ///< as its header says; empty: not told
  bool canary = false;          ///< as its header says
  struct Line {
    std::string id;  ///< as the record says; may be no id at all
    /// What is to be kept of it, or why it is refused.
    Result<DecodedRace> race = fail(Code::invalid, "not judged");
    /// Only of copies: the store that it comes from has no race of it any more (replaced, forgotten).
    bool gone = false;
  };
  std::vector<Line> lines;  ///< one each of the body, in order
};

enum class Fate { accepted, duplicate, refused };
/// One a line of the batch, in order.
struct BatchOutcome {
  std::vector<Fate> fates;
};

/// Whether a batch tells more of its machine than the one that told last, `before` (Machine::header; empty:
/// none did): its id, a UUIDv7, is newer. So neither a batch that came out of order nor one that somebody
/// sends again sets anything back. An id from over ten minutes ahead of the hub's clock holds nothing up:
/// that machine's clock was wrong.
bool is_newer_header(std::string_view id, std::string_view before, std::int64_t received_us);

/// A batch as it lies in the store.
struct StoredBatch {
  std::uint64_t number = 0;  ///< in order of receipt, from 1; strictly growing, with gaps
  std::string id, machine, signature, body;
  std::int64_t received_us = 0;
  std::vector<std::uint32_t> refused;  ///< lines, from 0, that were refused
};

// ---- what is read ----

using SubjectNumber = std::uint32_t;
using WordNumber = std::uint32_t;
using MachineNumber = std::uint32_t;

struct SubjectRow {
  SubjectNumber number = 0;
  Subject subject;
  record::Silicon silicon;
};

/// Records of this time: from_us <= ts < to_us.
struct Window {
  std::int64_t from_us = 0;
  std::int64_t to_us = INT64_MAX;
};

/// One race of a scan; numbers stand for names (words(), machine_names()). Valid until the visitor returns.
struct RaceRow {
  MachineNumber machine = 0;
  std::int64_t ts_us = 0;
  RecordId id{};
  WordNumber slot = 0, label = 0, driver = 0, source = 0, winner = 0;  ///< winner 0: none
  bool has_epoch = false;
  std::uint64_t epoch = 0;
  record::Verdict verdict = record::Verdict::none;
  bool pinned = false;
  float rate = absent, base_rate = absent, gain_pct = absent, ceiling = absent;
  float power_limit_w = absent, power_pct = absent;
  std::span<const PackedGain> gains;
};

/// Which races a page of them shows. Empty members select nothing out.
struct RaceFilter {
  std::string machine, label, silicon, program, driver, backend, variant;  ///< variant: the winner
  Window window;
  std::string before;      ///< id of the last race of the page before; ids order by time
  std::size_t limit = 50;  ///< at most 1000
  /// Races that are looked at for one page, whether they fit or not: what one page costs at most.
  std::size_t walk = 50'000;
};

struct RaceSummary {
  std::string id, machine, slot, label, driver, epoch, source, winner;
  Subject subject;
  std::int64_t ts_us = 0, received_us = 0;
  record::Verdict verdict = record::Verdict::none;
  bool pinned = false;
  float rate = absent, base_rate = absent, gain_pct = absent;
};

struct RacePage {
  std::vector<RaceSummary> races;  ///< the newest first, by id
  std::string next;                ///< `before` of the page after this one; empty: there is none
};

struct StoreTotals {
  std::uint64_t races = 0, batches = 0, machines = 0, subjects = 0;
  std::uint64_t bytes = 0;        ///< that the store takes on its disk
  std::int64_t newest_ts_us = 0;  ///< of all races; 0: there is none
  /// Grows with every change of races or machines, so that a reader knows whether to look again.
  std::uint64_t change = 0;
  std::string version;  ///< "SQLite 3.40.1", "PostgreSQL 15.18"
};

/// Errors of every call: `unavailable` (the server is gone, the file cannot be opened), `exhausted` (full),
/// `denied` (read-only, no permission), `timeout` (another writer held it too long), `corrupt`,
/// `incompatible` (a newer schema, found and expected named). Each names the store, never a password in its
/// URL. After an error of a write nothing of it is there. A lost connection is opened again at the next call.
///
/// A Store is for one thread; several of them may be open on one store, in one process or in several.
class Store {
 public:
  virtual ~Store() = default;

  // -- machines and tokens
  virtual Status add_token(const Token& token) = 0;  ///< `invalid`: its digest is there already
  virtual Result<std::vector<Token>> tokens() = 0;   ///< the oldest first
  /// Takes the key in. The same token and key again are answered the same. `denied`: no such token, expired,
  /// used by another key; or this key belongs to a retired machine. One transaction with the retirement of
  /// `replaces`.
  virtual Result<Machine> enrol(const Digest& token, const PublicKey& key, std::int64_t now_us) = 0;
  virtual Result<std::optional<Machine>> machine(std::string_view id) = 0;
  virtual Result<std::vector<Machine>> machines() = 0;  ///< by id
  /// Its records stay, and still count; nothing is taken from it any more. `invalid`: there is no such
  /// machine.
  virtual Status retire(std::string_view id) = 0;
  virtual Status set_canary(std::string_view id, bool canary) = 0;
  /// The machine without a key that imported records are filed under; made when it is not there.
  virtual Status add_importer(std::string_view name, std::int64_t now_us) = 0;

  // -- intake
  /// All of them in one transaction, durable when it returns. A record is a duplicate when its id is there,
  /// or when a newer one (by ts, then id) of the same (machine, slot, subject, epoch, source) is; an older
  /// one of these is replaced. Where there is no epoch, the UTC day of ts stands for it. Order of arrival
  /// changes nothing. A batch is kept when a record of it is accepted, once for the same machine, id and
  /// bytes; one without (a report, all duplicates, all refused) leaves only the machine's counts, and of a
  /// newer header (is_newer_header) seen_us and what it says. `invalid`: an unknown machine. Whether a
  /// machine is retired is for the caller to ask.
  virtual Result<std::vector<BatchOutcome>> add(std::span<const IncomingBatch> batches) = 0;
  /// Forgets races with ts before, and batches received before that no race needs any more; returns how many
  /// races. Not the machines. In steps, so that intake goes on meanwhile: after an error some may be gone,
  /// and after `stop` the rest is still there.
  virtual Result<std::uint64_t> prune(std::int64_t before_us, const std::stop_token& stop) = 0;
  Result<std::uint64_t> prune(std::int64_t before_us) { return prune(before_us, {}); }

  // -- aggregation
  virtual Result<std::vector<SubjectRow>> subjects() = 0;  ///< by number
  /// Name of every number: [0] is empty.
  virtual Result<std::vector<std::string>> words() = 0;
  virtual Result<std::vector<std::string>> machine_names() = 0;  ///< id by number; [0] is empty
  /// The races of a subject within the window: machine by machine (by number), each in order of (ts, id).
  /// Streams: memory does not grow with the number of races. The visitor returns false to end it.
  virtual Status scan(SubjectNumber subject, Window window,
                      const std::function<bool(const RaceRow&)>& visit) = 0;
  /// Newest ts within all races; nullopt: there is none.
  virtual Result<std::optional<std::int64_t>> newest_ts() = 0;

  // -- pages
  /// Ends at its limit or at its walk: it may have few races, or none, and a next all the same.
  virtual Result<RacePage> page(const RaceFilter& filter) = 0;
  /// The races of page after page until the limit is reached or there is none left, whatever the walk.
  Result<std::vector<RaceSummary>> races(const RaceFilter& filter);
  struct RaceText {
    std::string line;  ///< the record's JSON as the machine signed it
    StoredBatch batch;
  };
  virtual Result<std::optional<RaceText>> race(std::string_view id) = 0;
  /// The lines of the races that the filter selects, as the machines signed them, the newest first; its
  /// `limit` may be any number here. The visitor returns false to end it. This one asks for each race; a
  /// store may do better.
  virtual Status lines(const RaceFilter& filter, const std::function<bool(std::string_view line)>& visit);
  /// The lines of these races, in this order; a race that is not there has none. By where each race stands,
  /// never by the id that a line states: a batch may hold lines with the ids of other machines' races, which
  /// were refused or duplicates. The visitor returns false to end it, and may not ask this store.
  virtual Status lines_of(std::span<const RecordId> ids,
                          const std::function<Result<bool>(std::string_view line)>& visit);
  virtual Result<StoreTotals> totals() = 0;

  // -- copies
  /// Batches after `number`, in order. The visitor returns false to end it.
  virtual Status batches(std::uint64_t after,
                         const std::function<Result<bool>(const StoredBatch&)>& visit) = 0;
  /// Puts a machine as it is (with its counts), for copies; one of the same id that is there is merged().
  virtual Status put_machine(const Machine& machine) = 0;
  virtual Status put_token(const Token& token) = 0;  ///< likewise
  /// Which of these races are there; one each.
  virtual Result<std::vector<bool>> have(std::span<const RecordId> ids) = 0;
  /// Whether a batch of this machine, id and bytes is there.
  virtual Result<bool> has_batch(const StoredBatch& batch) = 0;
  /// Batches as they are, for copies, with the rules of add(), but: each is kept, whatever comes of its
  /// records; its machine's counts stay as they are; one that is there already is left alone with its
  /// records. Returns how many races are new.
  virtual Result<std::uint64_t> put_batches(std::span<const IncomingBatch> batches) = 0;
  /// A consistent copy of all of it in a new file, made while others write. false: this kind makes none, and
  /// nothing was done. Not synced.
  virtual Result<bool> snapshot(const std::filesystem::path& file) = 0;
};

/// What becomes of a machine that is there when a copy of it is put. Retired stays retired; each count is the
/// larger one; the rest is as the side says that enrolled it later or, of one enrolment, heard of it later
/// (the copy, when both are equal).
Machine merged(const Machine& there, const Machine& copy);
/// Used stays used, by whom it was.
Token merged(const Token& there, const Token& copy);

/// A kind of store, as an app's list has it.
struct StoreKind {
  std::string scheme;   ///< "sqlite", "postgresql"
  std::string example;  ///< "sqlite:FILE"
  struct Options {
    bool create = true;      ///< make what is not there; else `unavailable`
    bool read_only = false;  ///< nothing is written, no migration is made
    /// Words and subjects whose numbers stay in memory from one write to the next; others are looked up anew.
    std::size_t names_in_memory = 1u << 20;
  };
  std::function<Result<std::unique_ptr<Store>>(std::string_view url, const Options& options)> open;
};

/// By the URL's scheme; `invalid` lists the kinds. A path without a scheme that ends in .sqlite or .db is
/// sqlite's.
Result<std::unique_ptr<Store>> open_store(std::span<const StoreKind> kinds, std::string_view url,
                                          const StoreKind::Options& options = {});
/// From the first colon after "://" to the last '@': also a password in which '/', '?' or '@' stand as they
/// are. It may take too much for one, never too little. Empty: there is none.
std::string_view url_password(std::string_view url);
/// The URL without its password, for messages.
std::string shown_url(std::string_view url);

}  // namespace furlong::fleet
