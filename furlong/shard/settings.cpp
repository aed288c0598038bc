#include "furlong/shard/settings.h"

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"

namespace furlong::shard {

Status check_settings(const std::string& settings, int format,
                      std::initializer_list<SettingsNumber> numbers) {
  constexpr const char* kName = "settings of the store";
  FURLONG_TRY(const Json json, json_parse(settings, kName));
  JsonObject object(json, kName);
  int found = 0;
  object.integer("format", found);
  for (const SettingsNumber& number : numbers) {
    std::uint64_t value = 0;
    object.integer(number.key, value, number.least);
  }
  object.require({"format"});
  for (const SettingsNumber& number : numbers) object.require({number.key});
  FURLONG_CHECK(object.strict());
  if (found == format) return {};
  return fail(Code::incompatible,
              "the store's items are of format {}, this program reads {}: make the store anew", found,
              format);
}

}  // namespace furlong::shard
