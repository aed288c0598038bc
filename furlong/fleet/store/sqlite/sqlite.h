#pragma once
// The fleet's store in one file of SQLite: the hub's own, for fleets that one machine serves.

#include "furlong/fleet/store/store.h"

namespace furlong::fleet::sqlite {

/// "sqlite:FILE". Readers and a writer of several threads and processes may have it open at once; what was
/// acknowledged survives a power cut. `invalid`: a database that is no fleet's store.
StoreKind store_kind();

}  // namespace furlong::fleet::sqlite
