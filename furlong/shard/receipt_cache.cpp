#include "furlong/shard/receipt_cache.h"

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/shard/cost_json.h"

namespace furlong::shard {
namespace {

constexpr std::string_view kMagic = "furlong receipt ";

Status parse_digest(std::string_view hex, Digest& into) {
  FURLONG_TRY(into, Digest::parse(hex));
  return {};
}

// A file of a former or later program is no damage, and says so before anything else is looked at.
Status check_version(int found, const std::string& name) {
  if (found == kReceiptVersion) return {};
  return fail(Code::incompatible, "{}: version {} of receipts, this program reads {}: run the shard anew",
              name, found, kReceiptVersion);
}

}  // namespace

std::string print_receipt(const Receipt& receipt) {
  Json json;
  json["executor"] = receipt.executor;
  json["executor_version"] = receipt.version;
  json["claim"] = receipt.claim.hex();
  json["signer"] = receipt.signer.hex();
  json["signature"] = to_hex(receipt.signature);
  json["body_bytes"] = receipt.body.size();
  std::string text = fmt::format("{}{}\n{}\n", kMagic, kReceiptVersion, json_line(json));
  text.append(as_text(receipt.body));
  return text;
}

Result<Receipt> parse_receipt(std::string_view bytes, const std::string& name) {
  if (!bytes.starts_with(kMagic)) return fail(Code::corrupt, "{}: byte 0: not a receipt", name);
  const std::size_t first = bytes.find('\n');
  const std::size_t second = first == bytes.npos ? bytes.npos : bytes.find('\n', first + 1);
  if (second == bytes.npos)
    return fail(Code::corrupt, "{}: byte {}: it ends in its head", name, bytes.size());
  int version = 0;
  for (const char digit : bytes.substr(kMagic.size(), first - kMagic.size())) {
    if (digit < '0' || digit > '9' || version > 1'000'000)
      return fail(Code::corrupt, "{}: byte {}: no version", name, kMagic.size());
    version = 10 * version + (digit - '0');
  }
  FURLONG_CHECK(check_version(version, name));
  const auto json = json_parse(bytes.substr(first + 1, second - first - 1), name);
  if (!json) return fail(Code::corrupt, "{}: byte {}: {}", name, first + 1, json.error().message());
  JsonObject object(*json, name);
  Receipt receipt;
  std::string claim, signer, signature;
  std::uint64_t body_bytes = 0;
  object.text("executor", receipt.executor);
  object.integer("executor_version", receipt.version);
  object.text("claim", claim);
  object.text("signer", signer);
  object.text("signature", signature);
  object.integer("body_bytes", body_bytes);
  object.require({"executor", "executor_version", "claim", "signer", "signature", "body_bytes"});
  const auto damaged = [&](const Error& error) {
    return fail(Code::corrupt, "{}: byte {}: {}", name, first + 1, error.message());
  };
  if (const Status status = object.strict(); !status) return damaged(status.error());
  if (const Status status = parse_digest(claim, receipt.claim); !status) return damaged(status.error());
  const auto key = PublicKey::parse(signer);
  if (!key) return damaged(key.error());
  receipt.signer = *key;
  const auto sealed = from_hex(signature);
  if (!sealed) return damaged(sealed.error());
  if (sealed->size() != receipt.signature.size())
    return damaged(fail(Code::corrupt, "a signature of {} bytes", sealed->size()));
  std::copy(sealed->begin(), sealed->end(), receipt.signature.begin());
  const std::string_view body = bytes.substr(second + 1);
  if (body.size() != body_bytes)
    return fail(Code::corrupt, "{}: byte {}: the body has {} bytes, {} were written", name,
                second + 1 + std::min<std::size_t>(body.size(), body_bytes), body.size(), body_bytes);
  receipt.body.assign(body.begin(), body.end());
  return receipt;
}

std::filesystem::path ReceiptCache::entry_file(const Digest& claim) const {
  const std::string hex = claim.hex();
  return folder_ / "claims" / hex.substr(0, 2) / (hex + ".json");
}

std::filesystem::path ReceiptCache::receipt_file(const Digest& address) const {
  const std::string hex = address.hex();
  return folder_ / "receipts" / hex.substr(0, 2) / (hex + ".receipt");
}

Result<std::optional<ReceiptEntry>> ReceiptCache::find(const Digest& claim) const {
  const std::filesystem::path file = entry_file(claim);
  constexpr std::size_t kMost = 1u << 20;
  const auto text = files_.read(file, kMost);
  if (!text && text.error().code() == Code::unavailable) return std::optional<ReceiptEntry>();
  if (!text) return text.error();
  const std::string name = file.string();
  const auto json = json_parse(*text, name);
  if (!json) return fail(Code::corrupt, "{}", json.error().text());
  JsonObject object(*json, name);
  ReceiptEntry entry;
  int version = 0;
  std::string of, address;
  object.integer("version", version);
  object.text("claim", of);
  object.text("executor", entry.executor);
  object.integer("executor_version", entry.executor_version);
  object.text("receipt", address);
  const Json* check = object.object("check");
  const Json* job = object.object("job");
  if (const Status status = object.status(); !status) return fail(Code::corrupt, "{}", status.error().text());
  FURLONG_CHECK(check_version(version, name));
  object.require({"claim", "executor", "executor_version", "receipt", "check", "job"});
  if (const Status status = object.strict(); !status) return fail(Code::corrupt, "{}", status.error().text());
  if (!parse_digest(of, entry.claim) || !parse_digest(address, entry.receipt))
    return fail(Code::corrupt, "{}: a claim or a receipt that is no digest", name);
  if (entry.claim != claim)
    return fail(Code::mismatch, "{}: it is of the claim {}", name, entry.claim.brief());
  FURLONG_TRY(entry.check, parse_cost(*check, name));
  FURLONG_TRY(entry.job, parse_cost(*job, name));
  return std::optional<ReceiptEntry>(std::move(entry));
}

Result<Receipt> ReceiptCache::receipt(const ReceiptEntry& entry) const {
  const std::filesystem::path file = receipt_file(entry.receipt);
  FURLONG_TRY(const std::string bytes, files_.read(file, std::size_t{1} << 36));
  if (blake2b_256(bytes) != entry.receipt)
    return fail(Code::corrupt, "{}: its {} bytes are not those of its address", file.string(), bytes.size());
  return parse_receipt(bytes, file.string());
}

Result<Digest> ReceiptCache::put(const Receipt& receipt) const {
  const std::string bytes = print_receipt(receipt);
  const Digest address = blake2b_256(bytes);
  FURLONG_CHECK(files_.write_atomic(receipt_file(address), bytes));
  return address;
}

Status ReceiptCache::forget(const Digest& claim) const { return files_.remove(entry_file(claim)); }

Status ReceiptCache::add(const ReceiptEntry& entry) const {
  Json json;
  json["version"] = kReceiptVersion;
  json["claim"] = entry.claim.hex();
  json["executor"] = entry.executor;
  json["executor_version"] = entry.executor_version;
  json["receipt"] = entry.receipt.hex();
  json["check"] = cost_json(entry.check);
  json["job"] = cost_json(entry.job);
  return files_.write_atomic(entry_file(entry.claim), json_pretty(json));
}

}  // namespace furlong::shard
