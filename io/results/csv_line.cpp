#include "io/results/csv_line.h"

#include <fmt/format.h>

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
  if (value.is_structured()) return csv_text(value.dump());
  return value.is_string() ? csv_text(value.get_ref<const std::string&>()) : value.dump();
}

std::string csv_line(std::span<const std::string> fields) {
  return fmt::format("{}\r\n", fmt::join(fields, ","));
}

}  // namespace attnscope
