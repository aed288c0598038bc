#pragma once
// What a batch's header says of its machine: one rule for every kind of store.

#include <algorithm>

#include "furlong/fleet/store/store.h"

namespace furlong::fleet {

/// Takes over what the batch's header says, where it is newer (is_newer_header). `Teller`: a Machine, or a
/// store's own row with the same members.
template <class Teller>
void take_header(Teller& teller, const IncomingBatch& batch) {
  if (!is_newer_header(batch.id, teller.header, batch.received_us)) return;
  teller.header = batch.id;
  teller.seen_us = std::max(teller.seen_us, batch.received_us);
  if (batch.agent.empty()) return;
  teller.agent = batch.agent;
  teller.manifest = batch.manifest;
  teller.says_canary = batch.canary;
}

}  // namespace furlong::fleet
