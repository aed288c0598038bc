#pragma once
// libpq from a symbol table: the library is opened at run time, so that a machine without it runs everything
// else.

#include <libpq-fe.h>

#include <memory>

#include "furlong/base/error.h"

namespace furlong::fleet::postgres {

struct Libpq {
  decltype(&::PQconnectdbParams) connect = nullptr;
  decltype(&::PQfinish) finish = nullptr;
  decltype(&::PQstatus) status = nullptr;
  decltype(&::PQerrorMessage) error_message = nullptr;
  decltype(&::PQparameterStatus) parameter_status = nullptr;
  decltype(&::PQsetNoticeProcessor) set_notice_processor = nullptr;
  decltype(&::PQconninfoParse) conninfo_parse = nullptr;
  decltype(&::PQconninfoFree) conninfo_free = nullptr;
  decltype(&::PQfreemem) free_memory = nullptr;
  decltype(&::PQexec) exec = nullptr;
  decltype(&::PQprepare) prepare = nullptr;
  decltype(&::PQsendQueryPrepared) send_prepared = nullptr;
  decltype(&::PQsetSingleRowMode) set_single_row_mode = nullptr;
  decltype(&::PQgetResult) get_result = nullptr;
  decltype(&::PQenterPipelineMode) enter_pipeline = nullptr;
  decltype(&::PQexitPipelineMode) exit_pipeline = nullptr;
  decltype(&::PQpipelineSync) pipeline_sync = nullptr;
  decltype(&::PQresultStatus) result_status = nullptr;
  decltype(&::PQresultErrorField) error_field = nullptr;
  decltype(&::PQcmdStatus) command_status = nullptr;
  decltype(&::PQntuples) rows = nullptr;
  decltype(&::PQgetvalue) value = nullptr;
  decltype(&::PQgetlength) length = nullptr;
  decltype(&::PQclear) clear = nullptr;
};

/// Opened once, and kept until the process ends. `unavailable` says what to install.
Result<const Libpq*> open_libpq();

}  // namespace furlong::fleet::postgres
