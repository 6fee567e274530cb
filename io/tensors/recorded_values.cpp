#include "io/tensors/recorded_values.h"

#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "core/base/checked_math.h"

namespace attnscope {
namespace {

enum class ValueType : uint8_t { count, number, text, causal, grid, any };

struct KnownKey {
  std::string_view key, fact;
  ValueType type;
};

constexpr std::array kKnownKeys{
    KnownKey{"step", "step", ValueType::count},
    KnownKey{"step_idx", "step", ValueType::count},
    KnownKey{"step_index", "step", ValueType::count},
    KnownKey{"iteration", "step", ValueType::count},
    KnownKey{"timestep", "timestep", ValueType::number},
    KnownKey{"layer", "layer", ValueType::count},
    KnownKey{"layer_idx", "layer", ValueType::count},
    KnownKey{"layer_index", "layer", ValueType::count},
    KnownKey{"layer_id", "layer", ValueType::count},
    KnownKey{"block_idx", "layer", ValueType::count},
    KnownKey{"layer_name", "layer_name", ValueType::text},
    KnownKey{"scale", "scale", ValueType::number},
    KnownKey{"sm_scale", "scale", ValueType::number},
    KnownKey{"softmax_scale", "scale", ValueType::number},
    KnownKey{"is_causal", "mask", ValueType::causal},
    KnownKey{"causal", "mask", ValueType::causal},
    KnownKey{"layout", "layout", ValueType::text},
    KnownKey{"grid", "grid", ValueType::grid},
    KnownKey{"text", "text", ValueType::text},
    KnownKey{"text_valid", "text_valid", ValueType::any},
    KnownKey{"tokens", "tokens", ValueType::any},
    KnownKey{"kind", "kind", ValueType::text},
    KnownKey{"branches", "branches", ValueType::any},
    KnownKey{"axes", "axes", ValueType::text},
    KnownKey{"model", "model", ValueType::text},
    KnownKey{"prompt", "prompt", ValueType::text},
    KnownKey{"q_state", "q_state", ValueType::text},
    KnownKey{"head_offset", "head_offset", ValueType::count},
    KnownKey{"extra", "extra", ValueType::any},
};

const KnownKey* find_key(const std::string& key) {
  for (const KnownKey& known : kKnownKeys) {
    if (known.key == key) return &known;
  }
  return nullptr;
}

std::string dump(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// 3, and 3.0 too: arrays of one dtype hold whole numbers as floats.
std::optional<std::string> count_text(const nlohmann::json& value) {
  if (value.is_number_integer() && value.get<int64_t>() >= 0) return dump(value);
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (!(number >= 0 && number < 0x1p53) || number != std::floor(number)) return std::nullopt;
  return std::to_string(static_cast<int64_t>(number));
}

/// "13x30x45", or three numbers.
std::optional<std::string> grid_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array() || value.size() != 3) return std::nullopt;
  std::string text;
  for (const nlohmann::json& extent : value) {
    const auto count = count_text(extent);
    if (!count) return std::nullopt;
    text += (text.empty() ? "" : "x") + *count;
  }
  return text;
}

std::optional<std::string> fact_text(ValueType type, const nlohmann::json& value) {
  switch (type) {
    case ValueType::count:
      return count_text(value);
    case ValueType::number:
      if (!value.is_number() || !std::isfinite(value.get<double>())) return std::nullopt;
      return dump(value);
    case ValueType::text:
      return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
    case ValueType::causal:
      // False says nothing of a mask tensor beside it.
      return value == true ? std::optional<std::string>("causal") : std::nullopt;
    case ValueType::grid:
      return grid_text(value);
    case ValueType::any:
      return dump(value);
  }
  return std::nullopt;
}

template <typename T>
nlohmann::json as(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

std::string fact_of_key(const std::string& key) {
  const KnownKey* known = find_key(key);
  return known == nullptr ? "" : std::string(known->fact);
}

bool record_value(std::map<std::string, std::string>& metadata, const std::string& key,
                  const nlohmann::json& value) {
  const KnownKey* known = find_key(key);
  if (known == nullptr) return false;
  const auto text = fact_text(known->type, value);
  return text && metadata.emplace(known->fact, *text).second;
}

std::optional<nlohmann::json> single_value(const TensorSource& tensor) {
  if (checked_count(tensor.shape()) != 1) return std::nullopt;
  std::array<std::byte, 8> bytes{};
  const std::vector<int64_t> origin(tensor.shape().size(), 0);
  tensor.read(origin, tensor.shape(), bytes.data());
  switch (tensor.dtype()) {
    case DType::f64:
      return as<double>(bytes.data());
    case DType::f32:
    case DType::f16:
    case DType::bf16: {
      float value = 0;
      to_floats(tensor.dtype(), bytes.data(), 1, &value);
      return value;
    }
    case DType::i64:
      return as<int64_t>(bytes.data());
    case DType::i32:
      return as<int32_t>(bytes.data());
    case DType::i16:
      return as<int16_t>(bytes.data());
    case DType::i8:
      return as<int8_t>(bytes.data());
    case DType::u64:
      return as<uint64_t>(bytes.data());
    case DType::u32:
      return as<uint32_t>(bytes.data());
    case DType::u16:
      return as<uint16_t>(bytes.data());
    case DType::u8:
      return as<uint8_t>(bytes.data());
    case DType::boolean:
      return bytes[0] != std::byte{0};
  }
  return std::nullopt;
}

}  // namespace attnscope
