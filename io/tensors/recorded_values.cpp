#include "io/tensors/recorded_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/files/json_types.h"
#include "io/files/strict_json.h"

namespace attnscope {
namespace {

/// Elements of a list that is a value and no tensor.
constexpr int64_t kMostElements = 16;

template <typename T>
Json as(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

Json element(DType dtype, const std::byte* bytes) {
  switch (dtype) {
    case DType::f64:
      return as<double>(bytes);
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::e4m3:
    case DType::e5m2:
    case DType::e4m3fnuz:
    case DType::e5m2fnuz: {
      float value = 0;
      to_floats(dtype, bytes, 1, &value);
      return value;
    }
    case DType::i64:
      return as<int64_t>(bytes);
    case DType::i32:
      return as<int32_t>(bytes);
    case DType::i16:
      return as<int16_t>(bytes);
    case DType::i8:
      return as<int8_t>(bytes);
    case DType::u64:
      return as<uint64_t>(bytes);
    case DType::u32:
      return as<uint32_t>(bytes);
    case DType::u16:
      return as<uint16_t>(bytes);
    case DType::u8:
      return as<uint8_t>(bytes);
    case DType::boolean:
      return bytes[0] != std::byte{0};
  }
  return {};
}

std::optional<Json> strict_value(const std::string& text) {
  try {
    return parse_strict_json(text, "", "");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
    return std::nullopt;
  }
}

/// "(1, 2)", "(1,)" and "['a', 'b']" as JSON has lists.
std::string json_list(std::string text) {
  if (text.front() == '(') text.front() = '[';
  if (text.back() == ')') text.back() = ']';
  if (text.ends_with(",]")) text.erase(text.size() - 2, 1);
  if (text.find('"') == std::string::npos) std::replace(text.begin(), text.end(), '\'', '"');
  return text;
}

/// The text in the brackets of "tensor(999.)" and "tensor([999.], device='cuda:0')": a number,
/// without the brackets of a list of one; empty where the text is nothing of the kind.
std::string inside_tensor(const std::string& text) {
  for (const std::string_view name : {"tensor(", "np.float64(", "np.float32(", "np.int64("}) {
    if (!text.starts_with(name) || !text.ends_with(')')) continue;
    const std::string inner = text.substr(name.size(), text.find_first_of(",)") - name.size());
    // A list of several is no number.
    if (std::count(inner.begin(), inner.end(), '[') !=
        std::count(inner.begin(), inner.end(), ']')) {
      return "";
    }
    const size_t begin = inner.find_first_not_of("[ "), end = inner.find_last_not_of("] ");
    return begin == std::string::npos || end < begin ? "" : inner.substr(begin, end - begin + 1);
  }
  return "";
}

std::optional<double> whole_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The list of numbers of "tensor([0.5, 0.25], device='cuda:0')"; nothing of one number, and of
/// what has several axes.
std::optional<Json> list_in_tensor(const std::string& text) {
  constexpr std::string_view kName = "tensor([";
  const size_t end = text.find(']');
  if (!text.starts_with(kName) || end == std::string::npos || text.find('[', kName.size()) < end) {
    return std::nullopt;
  }
  Json list = Json::array();
  for (size_t begin = kName.size(); begin < end;) {
    const size_t next = std::min(text.find(',', begin), end);
    size_t first = text.find_first_not_of(' ', begin);
    const auto number = whole_number(text.substr(first, next - first));
    if (first >= next || !number) return std::nullopt;
    list.push_back(*number);
    begin = next + 1;
  }
  return list.size() > 1 ? std::optional(std::move(list)) : std::nullopt;
}

}  // namespace

std::string text_of_value(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  }
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::string> text_of_tensor(const TensorSource& tensor) {
  const auto shape = tensor.shape();
  const auto count = checked_count(shape);
  if (!count || *count < 1 || *count > kMostElements) return std::nullopt;
  // [heads, 1, 1] is a list as well.
  const auto lists = std::count_if(shape.begin(), shape.end(), [](int64_t n) { return n > 1; });
  if (lists > 1) return std::nullopt;
  const auto bytes = static_cast<size_t>(dtype_bytes(tensor.dtype()));
  std::vector<std::byte> raw(static_cast<size_t>(*count) * bytes);
  const std::vector<int64_t> origin(shape.size(), 0);
  tensor.read(origin, shape, raw.data());
  if (*count == 1) return text_of_value(element(tensor.dtype(), raw.data()));
  Json list = Json::array();
  for (size_t i = 0; i < static_cast<size_t>(*count); ++i) {
    list.push_back(element(tensor.dtype(), raw.data() + i * bytes));
  }
  return text_of_value(list);
}

Json value_of_text(const std::string& text) {
  if (auto value = strict_value(text)) return std::move(*value);
  if (text == "None") return {};
  if (text == "True" || text == "False") return text == "True";
  if (text.empty()) return text;
  if (text.front() == '(' || text.front() == '[') {
    if (auto value = strict_value(json_list(text))) return std::move(*value);
  }
  if (auto list = list_in_tensor(text)) return std::move(*list);
  const std::string inner = inside_tensor(text);
  if (inner == "True" || inner == "False") return inner == "True";
  if (const auto number = whole_number(inner.empty() ? text : inner)) return *number;
  return text;
}

}  // namespace attnscope
