#include "furlong/fleet/store/conformance/gtest.h"
#include "furlong/fleet/store/memory/memory.h"

namespace furlong::fleet {
namespace {

Result<OpenPlace> make_place() {
  return [data = make_memory_data()](const StoreKind::Options&) -> Result<std::unique_ptr<Store>> {
    return open_memory_store(data);
  };
}

StoreExclusions excluded_cases() {
  return {{"a_reader_sees_one_moment", "calls take turns: a visitor that writes would wait for itself"},
          {"one_that_is_read_only_denies_every_write", "it has no options"},
          {"one_that_is_not_there_is_unavailable", "it is always there"}};
}

}  // namespace

FURLONG_STORE_CONFORMANCE_EXCLUDING(memory, make_place(), excluded_cases());

}  // namespace furlong::fleet
