#include "io/capture/call/rope_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (RopeFamily family : rope_families()) names.emplace_back(rope_name(family));
  return names;
}

int64_t parse_heads(const std::string& option, const std::string& text) {
  int64_t heads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), heads);
  if (error != std::errc() || end != text.data() + text.size() || heads < 1 || heads > 65536) {
    throw usage_error(option + ": expected ltx:HEADS, the number of heads of the model");
  }
  return heads;
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
  std::vector<std::byte> raw(static_cast<size_t>(*count * dtype_bytes(tensor->dtype())));
  std::vector<float> values(static_cast<size_t>(*count));
  const std::vector<int64_t> begin(3, 0);
  tensor->read(begin, shape, raw.data());
  to_floats(tensor->dtype(), raw.data(), *count, values.data());
  return {shape[1], std::move(values)};
}

}  // namespace

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
  } else if (*family == RopeFamily::ltx && !rest.empty()) {
    result.heads = parse_heads(option, rest);
  } else if (colon != std::string::npos) {
    throw usage_error(option + ": " + name + " takes nothing more");
  }
  return result;
}

HeadTensor RopeOption::apply(const HeadTensor& tensor, const TokenGrid& tokens,
                             int64_t head_offset) const {
  std::vector<HeadRotation> rotations;
  const int64_t model_heads = heads > 0 ? heads : head_offset + tensor.heads();
  for (int64_t head = 0; head < tensor.heads(); ++head) {
    auto rotation =
        head_offset + head < model_heads
            ? HeadRotation::make(family, tokens,
                                 {tensor.width(), model_heads, head_offset + head, 0, learnt})
            : std::nullopt;
    if (!rotation) {
      throw usage_error(
          fmt::format("--rope {}: does not suit {}: head {} of {}, head dimension {}, grid {}",
                      rope_name(family), tensor.source().name(), head_offset + head, model_heads,
                      tensor.width(), tokens.grid_text()));
    }
    rotations.push_back(std::move(*rotation));
  }
  return HeadTensor(rotated_tensor(tensor, std::move(rotations)), Layout::bhsd);
}

}  // namespace attnscope
