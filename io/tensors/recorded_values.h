#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/tensor/tensor_source.h"
#include "io/files/json_types.h"

namespace attnscope {

// Small values that people's own dumps carry beside q and k (timestep, layer_idx …), as
// TensorFile::metadata() has them: texts as they are, other values as JSON.

/// The text of a value; of numbers that JSON has no word for "nan", "inf" and "-inf".
std::string text_of_value(const Json& value);
/// The values of a tensor of one number or a list of a few, as such a text; nothing of others.
std::optional<std::string> text_of_tensor(const TensorSource& tensor);

/// The value that a text means: JSON, or what Python's str() writes (True, None, nan, (1, 2),
/// ['a'], tensor([999.])); else the text itself.
Json value_of_text(const std::string& text);

}  // namespace attnscope
