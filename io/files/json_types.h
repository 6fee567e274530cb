#pragma once

#include <nlohmann/json_fwd.hpp>

namespace attnscope {

/// JSON of which an object keeps its names in the order in which they were added: what people read.
using OrderedJson = nlohmann::ordered_json;
/// JSON of which an object sorts its names: two that are equal print alike.
using Json = nlohmann::json;

}  // namespace attnscope
