#pragma once
// A batch of race records on its way from a machine to the hub, and the hub's answer
// (docs/formats/record-batch.md). Machines sign batches as exact bytes; the hub keeps those bytes.
// Value types; pure functions, safe from any thread.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/sign.h"

namespace furlong::fleet {

inline constexpr int batch_schema = 1;
inline constexpr std::string_view batch_media_type = "application/vnd.furlong.record-batch.v1";
inline constexpr std::string_view enrol_media_type = "application/vnd.furlong.enrol.v1";
inline constexpr std::string_view machine_header = "Furlong-Machine";      ///< PublicKey::id()
inline constexpr std::string_view signature_header = "Furlong-Signature";  ///< 128 hexadecimal digits

struct BatchLimits {
  std::size_t bytes = 8u << 20;
  std::size_t line_bytes = 1u << 20;
  std::size_t records = 10'000;
};

struct RecordBatch {
  std::string id;       ///< UUIDv7: the same batch, sent again, has the same
  std::string machine;  ///< fingerprint of the machine's key
  /// Race records, one JSON object a line, as they stand in the body; not looked into here.
  std::vector<std::string> lines;
  /// What the sender says of itself; empty: not told. A batch without records is a report of this alone.
  std::string agent = {};     ///< version of Furlong
  std::string manifest = {};  ///< version of the fleet manifest that it follows
  bool canary = false;        ///< it takes new manifests before the others
  bool operator==(const RecordBatch&) const = default;
};

/// The body: a header line, then the records, each line ended. A line with a newline in it is a defect of the
/// caller and `internal`.
Result<std::string> print(const RecordBatch& batch);
/// Strict on the header and the number of lines; `invalid` names line and byte, `incompatible` another
/// schema, found and expected. A body over the limits is `exhausted`. Works in memory of the body's size.
Result<RecordBatch> parse_record_batch(std::string_view body, const BatchLimits& limits = {});

/// DSSE's pre-authentication encoding: the bytes that are signed.
std::string signed_bytes(std::string_view media_type, std::string_view body);
/// The value of `signature_header`.
std::string sign_body(std::string_view media_type, std::string_view body, const KeyPair& key);
/// `denied`, also when the text is no signature.
Status verify_body(std::string_view media_type, std::string_view body, std::string_view signature_hex,
                   const PublicKey& key);

/// What the hub did with the records of a batch.
struct BatchReply {
  struct Refused {
    std::string id;
    std::string why;
    bool operator==(const Refused&) const = default;
  };
  std::vector<std::string> accepted;
  std::vector<std::string> duplicate;  ///< it had them
  std::vector<Refused> refused;
  bool operator==(const BatchReply&) const = default;
};
/// JSON on one line.
std::string print(const BatchReply& reply);
/// `invalid` when it is no such answer, or one id has two fates; `incompatible`: another schema. Unknown keys
/// are skipped.
Result<BatchReply> parse_batch_reply(std::string_view text);

/// A machine's request to be known: its public key and a one-time token.
struct EnrolRequest {
  std::string token;
  PublicKey key;
  bool operator==(const EnrolRequest&) const = default;
};
/// JSON on one line; signed by the key that it names, which proves that the sender holds it.
std::string print(const EnrolRequest& request);
Result<EnrolRequest> parse_enrol_request(std::string_view text);
/// The machine that the hub's answer names: {"schema":1,"machine":"…"}.
Result<std::string> parse_enrol_reply(std::string_view text);

}  // namespace furlong::fleet
