#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/tensor/tensor_source.h"

namespace attnscope {

/// Small values that people's own dumps carry beside q and k (timestep, layer_idx …), told as
/// facts of the capture format.
///
/// The fact that `key` stands for: "layer_idx" → "layer"; empty where it is none of the names in
/// common use.
std::string fact_of_key(const std::string& key);

/// Puts `value` into `metadata` under its fact's name, as safetensors' __metadata__ would hold it.
/// False, and nothing is changed, where `key` names no fact, the value cannot be one, or the fact
/// is there already.
bool record_value(std::map<std::string, std::string>& metadata, const std::string& key,
                  const nlohmann::json& value);

/// The element of a tensor that has exactly one, as a number or truth value; nothing otherwise.
std::optional<nlohmann::json> single_value(const TensorSource& tensor);

}  // namespace attnscope
