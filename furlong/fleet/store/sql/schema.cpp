#include "furlong/fleet/store/sql/schema.h"

namespace furlong::fleet::sql {
namespace {

// Races lie in the order in which aggregation reads them. Everything that repeats is a number of `word`,
// `subject` or `machine`, and what is only ever read together is one blob (row.h): a row is small, and few
// columns of it are taken apart. The index of ids has what pages of races are filtered by. The signed bytes
// lie in a table of their own, so that what changes beside them stays cheap.
constexpr std::string_view first = R"(
CREATE TABLE totals(
  one INTEGER PRIMARY KEY,
  races {big} NOT NULL, batches {big} NOT NULL, next_batch {big} NOT NULL,
  newest_ts_us {big} NOT NULL, change {big} NOT NULL){plain};
INSERT INTO totals VALUES(1, 0, 0, 1, 0, 0);
CREATE TABLE word(number INTEGER PRIMARY KEY, text {text} NOT NULL UNIQUE){plain};
CREATE TABLE subject(
  number INTEGER PRIMARY KEY, digest {blob} NOT NULL UNIQUE,
  silicon {text} NOT NULL, backend {text} NOT NULL, program {text} NOT NULL, class {text} NOT NULL,
  metric {text} NOT NULL, unit {text} NOT NULL, made_of {text} NOT NULL){plain};
CREATE TABLE machine(
  number INTEGER PRIMARY KEY, id {text} NOT NULL UNIQUE, key {blob} NOT NULL, retired INTEGER NOT NULL,
  label {text} NOT NULL, canary INTEGER NOT NULL, enrolled_us {big} NOT NULL, seen_us {big} NOT NULL,
  agent {text} NOT NULL, manifest {text} NOT NULL, replaces {text} NOT NULL,
  accepted {big} NOT NULL, duplicate {big} NOT NULL, refused {big} NOT NULL, last_refusal {text} NOT NULL){plain};
CREATE TABLE token(
  digest {blob} NOT NULL PRIMARY KEY, label {text} NOT NULL, canary INTEGER NOT NULL, replaces {text} NOT NULL,
  issued_us {big} NOT NULL, expires_us {big} NOT NULL, machine {text} NOT NULL){clustered};
CREATE TABLE batch(
  number {big} PRIMARY KEY, digest {blob} NOT NULL UNIQUE, machine INTEGER NOT NULL, id {text} NOT NULL,
  signature {text} NOT NULL, received_us {big} NOT NULL, races {big} NOT NULL, refused {blob} NOT NULL,
  body_bytes {big} NOT NULL){plain};
CREATE INDEX batch_received ON batch(received_us);
CREATE TABLE batch_body(number {big} PRIMARY KEY, body {blob} NOT NULL){plain};
CREATE TABLE race(
  subject INTEGER NOT NULL, machine INTEGER NOT NULL, ts_us {big} NOT NULL, id {blob} NOT NULL,
  slot INTEGER NOT NULL, source INTEGER NOT NULL, epoch {blob} NOT NULL,
  label INTEGER NOT NULL, driver INTEGER NOT NULL, winner INTEGER NOT NULL, data {blob} NOT NULL,
  batch {big} NOT NULL, line INTEGER NOT NULL,
  PRIMARY KEY(subject, machine, ts_us, id)){clustered};
CREATE UNIQUE INDEX race_key ON race(machine, subject, slot, epoch, source);
CREATE {id_index};
)";

// What a machine says of itself stands beside what the operator says of it, with the batch that said it.
constexpr std::string_view second = R"(
ALTER TABLE machine ADD COLUMN says_canary INTEGER NOT NULL DEFAULT 0;
ALTER TABLE machine ADD COLUMN header {text} NOT NULL DEFAULT '';
)";

std::string in(const Dialect& dialect, std::string_view step) {
  return fmt::format(fmt::runtime(step), fmt::arg("big", dialect.big), fmt::arg("text", dialect.text),
                     fmt::arg("blob", dialect.blob), fmt::arg("plain", dialect.plain),
                     fmt::arg("clustered", dialect.clustered), fmt::arg("id_index", dialect.id_index));
}

}  // namespace

std::vector<std::string> schema_steps(const Dialect& dialect) {
  return {in(dialect, first), in(dialect, second)};
}

}  // namespace furlong::fleet::sql
