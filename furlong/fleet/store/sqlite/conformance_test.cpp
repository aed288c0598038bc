#include "furlong/base/os/file.h"
#include "furlong/fleet/store/conformance/gtest.h"
#include "furlong/fleet/store/sqlite/sqlite.h"

namespace furlong::fleet {
namespace {

Result<OpenPlace> make_place() {
  FURLONG_TRY(TemporaryFolder made, TemporaryFolder::make("furlong-store"));
  const auto folder = std::make_shared<TemporaryFolder>(std::move(made));
  return [folder](const StoreKind::Options& options) {
    return sqlite::store_kind().open("sqlite:" + (folder->path() / "fleet.sqlite").string(), options);
  };
}

}  // namespace

FURLONG_STORE_CONFORMANCE(sqlite, make_place());

}  // namespace furlong::fleet
