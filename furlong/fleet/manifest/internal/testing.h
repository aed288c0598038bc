#pragma once
// A small fleet that the tests of the manifest share: fixed keys, fixed times.

#include <string>
#include <vector>

#include "furlong/fleet/manifest/publish.h"

namespace furlong::fleet::testing_support {

inline constexpr std::int64_t day_us = 86'400'000'000;
inline constexpr std::int64_t start_us = 1'772'366'400'000'000;  // 2026-03-01T12:00:00Z

inline KeyPair test_key(std::uint8_t number) { return *KeyPair::from_seed(Bytes(32, number)); }
inline KeyPair root_key() { return test_key(1); }
inline KeyPair publish_key() { return test_key(2); }
inline KeyPair stop_key() { return test_key(3); }

inline RootDocument root_document(std::uint64_t version = 1) {
  RootDocument document;
  document.product = "our-fleet";
  document.version = version;
  document.expires_us = start_us + 365 * day_us;
  document.root.keys = {root_key().public_key};
  document.publish.keys = {publish_key().public_key};
  document.stop.keys = {stop_key().public_key};
  return document;
}

inline std::string tuning_text(const std::string& variant = "u2-ldg") {
  return R"({"schema":1,"cards":{"NVIDIA_H200":{"program":"lottery","variant":")" + variant +
         R"(","race":false,"candidates":[")" + variant + R"(","base"]}}})";
}

inline ManifestDocument manifest_document(std::uint64_t version = 1, const std::string& variant = "u2-ldg") {
  ManifestDocument document;
  document.product = "our-fleet";
  document.channel = "stable";
  document.version = version;
  document.issued_us = start_us;
  document.expires_us = start_us + 30 * day_us;
  document.minimum_client = "0.1.0";
  document.tuning = *record::parse_tuning(tuning_text(variant), "tuning");
  return document;
}

inline StopDocument stop_document(std::uint64_t version = 1, std::uint64_t from = 1) {
  StopDocument document;
  document.product = "our-fleet";
  document.channel = "stable";
  document.version = version;
  document.issued_us = start_us;
  document.from = from;
  return document;
}

template <class Document>
Envelope signed_by(const Document& document, const std::vector<KeyPair>& keys) {
  Envelope envelope = envelope_of(document);
  for (const KeyPair& key : keys) add_signature(envelope, key);
  return envelope;
}

/// A payload of the test's own, signed: what a publisher of another program might have made.
inline Envelope signed_bytes_as(std::string_view type, const std::string& payload, const KeyPair& key) {
  Envelope envelope{.payload_type = std::string(type), .payload = payload, .signatures = {}};
  add_signature(envelope, key);
  return envelope;
}

}  // namespace furlong::fleet::testing_support
