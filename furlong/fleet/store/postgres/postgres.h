#pragma once
// The fleet's store in a database of PostgreSQL, in a schema of its own ("furlong"): for fleets that several
// hubs serve, or whose operators have a database already.

#include "furlong/fleet/store/store.h"

namespace furlong::fleet::postgres {

/// "postgresql://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?…]", as libpq takes it (14 or newer), which is
/// opened at run time; what the URL leaves out comes from PGPASSFILE, PGSERVICEFILE and the like. The
/// database must be there, in UTF-8; the schema is made.
StoreKind store_kind();

}  // namespace furlong::fleet::postgres
