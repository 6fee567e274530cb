#include "io/results/csv_field.h"

#include <nlohmann/json.hpp>

#include "io/files/json_types.h"

namespace attnscope {

std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_value(const OrderedJson& value) {
  if (value.is_null()) return "";
  return value.is_string() ? csv_text(value.get_ref<const std::string&>()) : value.dump();
}

}  // namespace attnscope
