#pragma once
// The fleet's store over a database of SQL; what database it is, the connection knows.

#include <map>
#include <memory>

#include "furlong/fleet/store/sql/connection.h"
#include "furlong/fleet/store/sql/intake.h"
#include "furlong/fleet/store/sql/names.h"
#include "furlong/fleet/store/store.h"

namespace furlong::fleet::sql {

class BatchBodies;

/// The connection's schema is there already (schema_steps).
class SqlStore : public Store {
 public:
  SqlStore(std::unique_ptr<Connection> connection, const StoreKind::Options& options)
      : connection_(std::move(connection)), names_(*connection_, options.names_in_memory) {}

  Status add_token(const Token& token) override;
  Result<std::vector<Token>> tokens() override;
  Result<Machine> enrol(const Digest& token, const PublicKey& key, std::int64_t now_us) override;
  Result<std::optional<Machine>> machine(std::string_view id) override;
  Result<std::vector<Machine>> machines() override;
  Status retire(std::string_view id) override;
  Status set_canary(std::string_view id, bool canary) override;
  Status add_importer(std::string_view name, std::int64_t now_us) override;

  Result<std::vector<BatchOutcome>> add(std::span<const IncomingBatch> batches) override;
  Result<std::uint64_t> prune(std::int64_t before_us, const std::stop_token& stop) override;

  Result<std::vector<SubjectRow>> subjects() override;
  Result<std::vector<std::string>> words() override;
  Result<std::vector<std::string>> machine_names() override;
  Status scan(SubjectNumber subject, Window window,
              const std::function<bool(const RaceRow&)>& visit) override;
  Result<std::optional<std::int64_t>> newest_ts() override;

  Result<RacePage> page(const RaceFilter& filter) override;
  Result<std::optional<RaceText>> race(std::string_view id) override;
  Status lines(const RaceFilter& filter, const std::function<bool(std::string_view line)>& visit) override;
  Status lines_of(std::span<const RecordId> ids,
                  const std::function<Result<bool>(std::string_view line)>& visit) override;
  Result<StoreTotals> totals() override;

  Status batches(std::uint64_t after, const std::function<Result<bool>(const StoredBatch&)>& visit) override;
  Status put_machine(const Machine& machine) override;
  Status put_token(const Token& token) override;
  Result<std::vector<bool>> have(std::span<const RecordId> ids) override;
  Result<bool> has_batch(const StoredBatch& batch) override;
  Result<std::uint64_t> put_batches(std::span<const IncomingBatch> batches) override;
  Result<bool> snapshot(const std::filesystem::path& file) override { return connection_->snapshot(file); }

 private:
  // Within a transaction; see the calls of their names.
  Result<std::vector<Machine>> read_machines(std::string_view id);  ///< empty: all
  Result<std::optional<Machine>> read_machine(std::string_view id);
  Status write_machine(const Machine& machine);
  Status change_machine(std::string_view id, const std::function<void(Machine&)>& change);
  Result<std::vector<Token>> read_tokens(const Digest* digest);  ///< nullptr: all
  Status write_token(const Token& token);
  Status changed();  ///< counts a change of races or machines
  Result<Machine> take_in(const Digest& token, const PublicKey& key, std::int64_t now_us);
  Result<std::vector<SubjectRow>> read_subjects();
  Result<std::vector<std::string>> read_names(std::string_view statement);
  Result<std::vector<MachineNumber>> machines_of(SubjectNumber subject);
  Status scan_machines(SubjectNumber subject, Window window,
                       const std::function<bool(const RaceRow&)>& visit);
  Result<RacePage> read_page(const RaceFilter& filter, const std::optional<RecordId>& before);
  Result<std::optional<RaceText>> read_race(const RecordId& id);
  /// One each; empty: the race is not there.
  Result<std::vector<std::string>> read_lines(std::span<const RecordId> ids, BatchBodies& bodies);
  Status visit_lines(std::span<const RecordId> ids, BatchBodies& bodies,
                     const std::function<Result<bool>(std::string_view line)>& visit);
  Result<StoreTotals> read_totals();
  Result<std::vector<StoredBatch>> read_batches(std::uint64_t after);
  struct Holding {
    SubjectNumber subject = 0;
    MachineNumber machine = 0;
  };
  Result<std::vector<Holding>> old_holdings(std::int64_t before_us);
  /// Of the first of `old`, so many that others need not wait long; takes those that are done out of it.
  Result<std::uint64_t> prune_races(std::vector<Holding>& old, std::int64_t before_us);
  Result<std::vector<Value>> unneeded_batches(std::int64_t before_us);
  Status prune_batches(std::int64_t before_us);

  Status check_writable() const;
  Status begin(bool writes);
  /// Runs `work` within a transaction; it is given up when that fails.
  template <class F>
  auto reading(F&& work) -> decltype(work()) {
    FURLONG_CHECK(begin(false));
    auto result = work();
    connection_->rollback();
    return result;
  }
  template <class F>
  auto writing(F&& work) -> decltype(work()) {
    FURLONG_CHECK(check_writable());
    FURLONG_CHECK(begin(true));
    auto result = work();
    Status ended;
    if (result) ended = connection_->commit();
    if (result && ended) return result;
    connection_->rollback();
    names_.forget();  // they may have numbers that are free again
    if (!result) return result;
    return Error(std::move(ended).error());
  }

  std::unique_ptr<Connection> connection_;
  Names names_;
  std::map<SubjectNumber, Subject> shown_;  ///< subjects of the last pages
  std::uint64_t generation_ = 0;
};

}  // namespace furlong::fleet::sql
