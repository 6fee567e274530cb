#include "io/files/json_text.h"

#include <nlohmann/json.hpp>

#include "core/base/control_characters.h"
#include "io/files/json_types.h"

namespace attnscope {

std::string json_text(const OrderedJson& json, int indent) {
  return json_without_controls(
      json.dump(indent, ' ', false, OrderedJson::error_handler_t::replace));
}

}  // namespace attnscope
