#include "io/files/json_text.h"

#include <nlohmann/json.hpp>

#include "core/base/control_characters.h"

namespace attnscope {

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return json_without_controls(
      json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace attnscope
