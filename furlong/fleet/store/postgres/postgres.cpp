#include "furlong/fleet/store/postgres/postgres.h"

#include "furlong/fleet/store/postgres/internal/connection.h"
#include "furlong/fleet/store/sql/sql_store.h"

namespace furlong::fleet::postgres {
namespace {

Result<std::unique_ptr<Store>> open(std::string_view url, const StoreKind::Options& options) {
  FURLONG_TRY(std::unique_ptr<PostgresConnection> connection, PostgresConnection::open(url, options));
  return std::make_unique<sql::SqlStore>(std::move(connection), options);
}

}  // namespace

StoreKind store_kind() {
  return {.scheme = "postgresql", .example = "postgresql://USER@HOST/DATABASE", .open = open};
}

}  // namespace furlong::fleet::postgres
