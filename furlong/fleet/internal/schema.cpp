#include "furlong/fleet/internal/schema.h"

namespace furlong::fleet {

Status expect_schema(JsonObject& object, int expected, std::string_view where) {
  int schema = 0;
  object.integer("schema", schema);
  object.require({"schema"});
  FURLONG_CHECK(object.status());
  if (schema != expected)
    return fail(Code::incompatible, "{}: found schema {}, expected {}", where, schema, expected);
  return {};
}

}  // namespace furlong::fleet
