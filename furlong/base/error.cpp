#include "furlong/base/error.h"

namespace furlong {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::unavailable:
      return "unavailable";
    case Code::invalid:
      return "invalid";
    case Code::mismatch:
      return "mismatch";
    case Code::timeout:
      return "timeout";
    case Code::exhausted:
      return "exhausted";
    case Code::corrupt:
      return "corrupt";
    case Code::incompatible:
      return "incompatible";
    case Code::denied:
      return "denied";
    case Code::internal:
      return "internal";
  }
  return "internal";
}

std::string Error::text() const {
  std::string line;
  for (auto doing = context_.rbegin(); doing != context_.rend(); ++doing) {
    line += *doing;
    line += ": ";
  }
  line += message_;
  return line;
}

}  // namespace furlong
