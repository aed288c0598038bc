#include "furlong/fleet/store/postgres/internal/libpq.h"

#include <array>
#include <optional>
#include <string>

#include "furlong/base/os/library.h"

namespace furlong::fleet::postgres {
namespace {

struct Opened {
  Library object;
  Libpq table;
};

template <class F>
bool take(const Library& library, const char* name, F& into) {
  into = reinterpret_cast<F>(library.symbol(name));
  return into != nullptr;
}

bool fill(const Library& library, Libpq& table) {
  return take(library, "PQconnectdbParams", table.connect) && take(library, "PQfinish", table.finish) &&
         take(library, "PQstatus", table.status) && take(library, "PQerrorMessage", table.error_message) &&
         take(library, "PQparameterStatus", table.parameter_status) &&
         take(library, "PQsetNoticeProcessor", table.set_notice_processor) &&
         take(library, "PQconninfoParse", table.conninfo_parse) &&
         take(library, "PQconninfoFree", table.conninfo_free) &&
         take(library, "PQfreemem", table.free_memory) && take(library, "PQexec", table.exec) &&
         take(library, "PQprepare", table.prepare) &&
         take(library, "PQsendQueryPrepared", table.send_prepared) &&
         take(library, "PQsetSingleRowMode", table.set_single_row_mode) &&
         take(library, "PQgetResult", table.get_result) &&
         take(library, "PQenterPipelineMode", table.enter_pipeline) &&
         take(library, "PQexitPipelineMode", table.exit_pipeline) &&
         take(library, "PQpipelineSync", table.pipeline_sync) &&
         take(library, "PQresultStatus", table.result_status) &&
         take(library, "PQresultErrorField", table.error_field) &&
         take(library, "PQcmdStatus", table.command_status) && take(library, "PQntuples", table.rows) &&
         take(library, "PQgetvalue", table.value) && take(library, "PQgetlength", table.length) &&
         take(library, "PQclear", table.clear);
}

Result<Opened> open() {
  static const std::array<std::string, 1> names{"libpq.so.5"};
  auto library = Library::open_any(names);
  if (!library)
    return fail(Code::unavailable,
                "a store in PostgreSQL needs libpq, which is not here ({}): install libpq5",
                library.error().message());
  Opened opened{*std::move(library), {}};
  if (!fill(opened.object, opened.table))
    return fail(Code::unavailable, "{} lacks a function: install libpq5 (14 or newer)", opened.object.name());
  return opened;
}

}  // namespace

Result<const Libpq*> open_libpq() {
  static const Result<Opened> opened = open();
  if (!opened) return Error(opened.error());
  return &opened->table;
}

}  // namespace furlong::fleet::postgres
