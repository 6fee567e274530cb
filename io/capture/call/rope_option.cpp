#include "io/capture/call/rope_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/problem/rotated_tensor.h"
#include "io/capture/facts/tensor_reference.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

/// Learnt frequencies are a few hundred thousand at most.
constexpr int64_t kMostFrequencies = int64_t{1} << 22;
/// Of positions: t, y, x, and what else a model may have.
constexpr int64_t kMostAxes = 8;

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (RopeFamily family : rope_families()) names.emplace_back(rope_name(family));
  return names;
}

int64_t parse_heads(const std::string& option, const std::string& text) {
  int64_t heads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), heads);
  if (error != std::errc() || end != text.data() + text.size() || heads < 1 || heads > 65536) {
    throw usage_error(option + ": expected ltx:HEADS or heads=HEADS, the number of heads of the " +
                      "model (got " + text + ")");
  }
  return heads;
}

double parse_above_zero(const std::string& option, const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number) ||
      number <= 0) {
    throw usage_error(option + ": expected a number above 0 (got " + text + ")");
  }
  return number;
}

std::array<double, 3> parse_scale(const std::string& option, const std::string& text) {
  std::array<double, 3> scale{};
  size_t begin = 0;
  for (size_t axis = 0; axis < 3; ++axis) {
    const size_t end = axis < 2 ? text.find('x', begin) : text.size();
    if (end == std::string::npos) {
      throw usage_error(option + ": expected scale=TxYxX, three numbers (got " + text + ")");
    }
    scale[axis] = parse_above_zero(option, text.substr(begin, end - begin));
    begin = end + 1;
  }
  return scale;
}

/// The settings that a family takes after its name.
std::vector<std::string_view> known_settings(RopeFamily family) {
  switch (family) {
    case RopeFamily::ltx:
      return {"heads=N"};
    case RopeFamily::ltx2:
    case RopeFamily::ltx2_audio:
      return {"heads=N", "fps=N"};
    case RopeFamily::cosmos:
      return {"scale=TxYxX", "fps=N"};
    case RopeFamily::kandinsky5:
      return {"scale=TxYxX"};
    case RopeFamily::gptj:
    case RopeFamily::llama:
      return {"base=N"};
    default:
      return {};
  }
}

/// "key=value,key=value" into `result`.
void parse_settings(const std::string& option, const std::string& settings, RopeOption& result) {
  const std::vector<std::string_view> known = known_settings(result.family);
  const std::string name(rope_name(result.family));
  if (known.empty()) throw usage_error(option + ": " + name + " takes nothing more");
  std::set<std::string> seen;
  for (size_t begin = 0; begin <= settings.size();) {
    const size_t end = std::min(settings.find(',', begin), settings.size());
    const std::string setting = settings.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = setting.find('=');
    const std::string key = setting.substr(0, equals);
    if (equals == std::string::npos ||
        std::none_of(known.begin(), known.end(),
                     [&](std::string_view form) { return form.starts_with(key + "="); })) {
      throw usage_error(
          fmt::format("{}: {} takes {} (got {})", option, name, fmt::join(known, ", "), setting));
    }
    if (!seen.insert(key).second) throw usage_error(option + ": " + key + " is given twice");
    const std::string value = setting.substr(equals + 1);
    if (key == "heads") result.heads = parse_heads(option, value);
    if (key == "base") result.numbers.base = parse_above_zero(option, value);
    if (key == "fps") result.numbers.fps = parse_above_zero(option, value);
    if (key == "scale") result.numbers.scale = parse_scale(option, value);
  }
}

/// All elements of a tensor of floating numbers.
std::vector<float> read_floats(const TensorSource& tensor) {
  const auto shape = tensor.shape();
  const int64_t count = *checked_count(shape);
  std::vector<std::byte> raw(static_cast<size_t>(count * dtype_bytes(tensor.dtype())));
  std::vector<float> values(static_cast<size_t>(count));
  const std::vector<int64_t> begin(shape.size(), 0);
  tensor.read(begin, shape, raw.data());
  to_floats(tensor.dtype(), raw.data(), count, values.data());
  return values;
}

struct Frequencies {
  int64_t heads = 0;
  std::vector<float> values;
};

Frequencies read_frequencies(const std::string& reference, const ReadControl& control) {
  const auto tensor = open_tensor_reference(reference, {"pos_frequencies"}, control);
  const auto shape = tensor->shape();
  if (shape.size() != 3 || shape[0] != 3 || !is_floating(tensor->dtype())) {
    throw file_error(tensor->name(), "",
                     "expected pos_frequencies, floating, [3, heads, head_dim / 2] (got " +
                         shape_text(shape) + ")");
  }
  const auto count = checked_count(shape);
  if (!count || *count > kMostFrequencies) {
    throw file_error(tensor->name(), "",
                     "has too many frequencies (got " + shape_text(shape) + ")");
  }
  return {shape[1], read_floats(*tensor)};
}

}  // namespace

std::vector<std::string> rope_words() {
  std::vector<std::string> words;
  for (const RopeFamily family : rope_families()) {
    const std::string name(rope_name(family));
    const std::string settings = fmt::format("{}", fmt::join(known_settings(family), ","));
    words.push_back(family == RopeFamily::mochi    ? name + ":FILE[:KEY]"
                    : settings.empty()             ? name
                    : family == RopeFamily::cosmos ? name + ":" + settings
                                                   : name + "[:" + settings + "]");
  }
  return words;
}

RopeOption RopeOption::parse(const std::string& text, const ReadControl& control) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  const std::string option = "--rope " + text;
  const auto family = parse_rope(name);
  if (!family) {
    const auto names = family_names();
    const std::string nearest = nearest_word(name, names);
    throw usage_error(fmt::format("{}: no such rotary embedding{} ({})", option,
                                  nearest.empty() ? "" : ", did you mean " + nearest + "?",
                                  fmt::join(names, ", ")));
  }
  RopeOption result;
  result.text = text;
  result.family = *family;
  if (*family == RopeFamily::mochi) {
    if (rest.empty()) {
      throw usage_error(option +
                        ": its frequencies are learnt: give mochi:FILE[:KEY], the model's "
                        "pos_frequencies");
    }
    Frequencies frequencies = read_frequencies(rest, control);
    result.heads = frequencies.heads;
    result.learnt = std::move(frequencies.values);
  } else if (*family == RopeFamily::ltx && colon != std::string::npos &&
             rest.find('=') == std::string::npos) {
    result.heads = parse_heads(option, rest);
  } else if (colon != std::string::npos) {
    parse_settings(option, rest, result);
  }
  if (*family == RopeFamily::cosmos && result.numbers.scale[0] == 0) {
    throw usage_error(
        option +
        ": its checkpoints differ: give cosmos:scale=TxYxX, rope_scale of the model's "
        "config (1x3x3 of Cosmos 2.5), and fps=N where the pipeline gives the model one");
  }
  return result;
}

bool is_token_positions(const TensorSource& tensor, int64_t queries) {
  const auto shape = tensor.shape();
  return shape.size() == 2 && shape[0] == queries && shape[1] >= 1 && shape[1] <= kMostAxes &&
         is_floating(tensor.dtype()) && !is_float8(tensor.dtype());
}

std::shared_ptr<const TokenPositions> read_positions(const TensorSource& tensor) {
  const auto shape = tensor.shape();
  auto positions = std::make_shared<TokenPositions>();
  positions->axes = shape[1];
  positions->values = read_floats(tensor);
  for (size_t i = 0; i < positions->values.size(); ++i) {
    if (std::isfinite(positions->values[i])) continue;
    const auto at = static_cast<int64_t>(i);
    throw file_error(tensor.name(), fmt::format("[{}, {}]", at / shape[1], at % shape[1]),
                     "expected a position, a finite number");
  }
  return positions;
}

HeadTensor RopeOption::apply(const HeadTensor& tensor, const TokenGrid& tokens, int64_t head_offset,
                             const std::shared_ptr<const TokenPositions>& positions) const {
  std::vector<HeadRotation> rotations;
  const int64_t model_heads = heads > 0 ? heads : head_offset + tensor.heads();
  for (int64_t head = 0; head < tensor.heads(); ++head) {
    const HeadRotation::Shape shape{tensor.width(), model_heads, head_offset + head,
                                    numbers,        learnt,      positions};
    if (const auto obstacle = HeadRotation::obstacle(family, tokens, shape)) {
      throw usage_error(
          fmt::format("--rope {}: does not suit {}: head {} of {}, head dimension {}, grid {}: {}",
                      text, tensor.source().name(), head_offset + head, model_heads, tensor.width(),
                      tokens.grid_text(), *obstacle));
    }
    rotations.push_back(*HeadRotation::make(family, tokens, shape));
  }
  return HeadTensor(rotated_tensor(tensor, std::move(rotations)), Layout::bhsd);
}

}  // namespace attnscope
