#include "furlong/fleet/store/conformance/gtest.h"
#include "furlong/fleet/store/postgres/postgres.h"
#include "furlong/fleet/store/postgres/testing.h"

namespace furlong::fleet {
namespace {

Result<OpenPlace> make_place() {
  FURLONG_TRY(postgres::TestServer* const server, postgres::TestServer::shared());
  FURLONG_TRY(const std::string url, server->new_database());
  return [url](const StoreKind::Options& options) { return postgres::store_kind().open(url, options); };
}

}  // namespace

FURLONG_STORE_CONFORMANCE_AT_ONCE(postgres, make_place())

}  // namespace furlong::fleet
