#include "tests/support/backend/attention_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <sstream>

#include "core/mask/block_causal.h"
#include "core/mask/mask_valid.h"
#include "core/mask/query_spans.h"
#include "core/mask/recorded_blocks.h"
#include "core/mask/same_segment.h"
#include "core/tensor/memory_tensor.h"
#include "tests/support/backend/place_masks.h"

namespace attnscope::test {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

template <typename T>
std::vector<std::byte> as_bytes(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Rounds the values to what dtype stores.
std::vector<std::byte> round_to(DType dtype, std::vector<float>& values) {
  if (dtype == DType::f32) return as_bytes(values);
  std::vector<uint16_t> stored;
  for (float& value : values) {
    if (dtype == DType::f16) {
      stored.push_back(to_f16(value).bits);
      value = to_float(f16{stored.back()});
    } else {
      stored.push_back(to_bf16(value).bits);
      value = to_float(bf16{stored.back()});
    }
  }
  return as_bytes(stored);
}

std::vector<float> normal_values(int64_t count, double deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, static_cast<float>(deviation));
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<uint8_t> random_bits(int64_t count, double density, unsigned seed) {
  std::mt19937 random(seed);
  std::bernoulli_distribution keep(density);
  std::vector<uint8_t> bits(static_cast<size_t>(count));
  for (uint8_t& bit : bits) bit = keep(random) ? 1 : 0;
  return bits;
}

double allow(bool allowed) { return allowed ? 0 : kMasked; }

std::shared_ptr<MemoryTensor> bool_tensor(std::vector<int64_t> shape,
                                          const std::vector<uint8_t>& bits) {
  return std::make_shared<MemoryTensor>("mask", DType::boolean, std::move(shape), as_bytes(bits));
}

std::shared_ptr<MemoryTensor> float_tensor(std::vector<int64_t> shape,
                                           const std::vector<float>& values) {
  return std::make_shared<MemoryTensor>("mask", DType::f32, std::move(shape), as_bytes(values));
}

MaskCase key_masks(std::string_view name, const Shape& s) {
  if (name == "key_lengths") {
    std::vector<int64_t> lengths;
    for (int64_t b = 0; b < s.batch; ++b)
      lengths.push_back(std::max<int64_t>(1, s.keys * 2 / 3 - b));
    return {"", Mask::key_lengths(lengths, s.keys), [lengths](auto b, auto, auto, auto j) {
              return allow(j < lengths[static_cast<size_t>(b)]);
            }};
  }
  const auto bits = random_bits(s.keys, 0.4, 11);
  return {"", Mask::keys({bits}),
          [bits](auto, auto, auto, auto j) { return allow(bits[static_cast<size_t>(j)] != 0); }};
}

MaskCase segment_mask(const Shape& s) {
  // Three segments of uneven length; the second has no keys, so its queries are fully masked.
  const std::vector<int64_t> cu_queries{0, s.queries / 3, s.queries / 2, s.queries};
  const std::vector<int64_t> cu_keys{0, s.keys / 2, s.keys / 2, s.keys};
  const auto segment_of = [](const std::vector<int64_t>& cu, int64_t i) {
    // Empty segments hold nothing: the first whose end is beyond i.
    int64_t segment = 0;
    while (i >= cu[static_cast<size_t>(segment) + 1]) ++segment;
    return segment;
  };
  return {"", Mask::segments(cu_queries, cu_keys), [=](auto, auto, auto i, auto j) {
            return allow(segment_of(cu_queries, i) == segment_of(cu_keys, j));
          }};
}

MaskCase block_mask(const Shape& s) {
  BlockMask blocks;
  blocks.heads = s.heads;
  blocks.block_queries = 20;
  blocks.block_keys = 48;
  blocks.query_blocks = (s.queries + 19) / 20;
  blocks.key_blocks = (s.keys + 47) / 48;
  blocks.bits = random_bits(s.heads * blocks.query_blocks * blocks.key_blocks, 0.35, 5);
  return {"", Mask::blocks(blocks), [blocks](auto, auto h, auto i, auto j) {
            const int64_t at = (h * blocks.query_blocks + i / 20) * blocks.key_blocks + j / 48;
            return allow(blocks.bits[static_cast<size_t>(at)] != 0);
          }};
}

/// Bool [1, H, Nq, Nk], or float [B, 1, Nq, Nk] with a fifth of −inf; "masked_rows" masks whole
/// rows of a bool mask.
MaskCase dense_mask(std::string_view name, const Shape& s) {
  if (name == "dense_float") {
    auto values = normal_values(s.batch * s.queries * s.keys, 3, 7);
    for (size_t i = 0; i < values.size(); i += 5) {
      values[i] = -std::numeric_limits<float>::infinity();
    }
    return {"", Mask::tensor(float_tensor({s.batch, 1, s.queries, s.keys}, values)),
            [values, s](auto b, auto, auto i, auto j) {
              return double{values[static_cast<size_t>((b * s.queries + i) * s.keys + j)]};
            }};
  }
  auto bits = random_bits(s.heads * s.queries * s.keys, name == "masked_rows" ? 0.01 : 0.5, 9);
  if (name == "masked_rows") {
    for (size_t i = 0; i < bits.size(); ++i) {
      if (i / static_cast<size_t>(s.keys) % 3 != 1) bits[i] = 0;
    }
  }
  return {"", Mask::tensor(bool_tensor({1, s.heads, s.queries, s.keys}, bits)),
          [bits, s](auto, auto h, auto i, auto j) {
            return allow(bits[static_cast<size_t>((h * s.queries + i) * s.keys + j)] != 0);
          }};
}

/// How torch programs mask a batch of sequences padded on the left, with finite biases:
/// "padded_keys" is [B, 1, 1, Nk], the last of several batch items nothing but padding;
/// "padded_rows" is [B, 1, Nq, Nk], and its padded queries have no key.
MaskCase padded_batch(std::string_view name, const Shape& s) {
  const bool by_row = name == "padded_rows";
  const auto bias = [=](int64_t b, int64_t, int64_t i, int64_t j) {
    if (!by_row) return allow((b == 0 || b < s.batch - 1) && j >= s.keys / 3 + b);
    return allow(i >= s.queries / 3 && j >= s.keys / 3 + b && j <= i + s.keys / 2);
  };
  constexpr float kLowestBfloat = -0x1.fep127f;  // torch.finfo(torch.bfloat16).min
  const int64_t rows = by_row ? s.queries : 1;
  std::vector<float> values;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < s.keys; ++j) {
        values.push_back(bias(b, 0, i, j) == 0 ? 0.0f : i % 2 == 0 ? -1e9f : kLowestBfloat);
      }
    }
  }
  return {"", Mask::tensor(float_tensor({s.batch, 1, rows, s.keys}, values)), bias};
}

/// A stream in pieces of queries, of which the second is missing. Each sees a run of first keys, a
/// window of those behind them, and the diagonal of its own.
MaskCase stream_mask(const Shape& s) {
  const int64_t piece = std::max<int64_t>(1, s.queries / 5);
  std::vector<QuerySpan> spans;
  for (int64_t first = 0; first < s.queries; first += piece) {
    if (first == piece) continue;
    const IndexRange queries{first, std::min(first + piece, s.queries)};
    const int64_t own = std::min(first, s.keys);
    const int64_t sink = std::min<int64_t>(own, 3);
    const IndexRange ranges[] = {
        {0, sink}, {std::max(sink, own - 41), own}, {own, std::min(first + piece, s.keys)}};
    for (const IndexRange& keys : ranges) {
      if (!keys.empty()) spans.push_back({queries, keys, keys.begin == own});
    }
  }
  auto tensor = std::make_shared<MemoryTensor>(
      "mask", DType::i64, std::vector<int64_t>{static_cast<int64_t>(spans.size()), 5},
      as_bytes(query_span_rows(spans)));
  return {"", query_spans_mask(std::move(tensor)), [=](auto, auto, auto i, auto j) {
            return allow(std::any_of(spans.begin(), spans.end(), [&](const QuerySpan& span) {
              return span.queries.contains(i) && span.keys.contains(j) &&
                     (!span.causal || j - span.keys.begin <= i - span.queries.begin);
            }));
          }};
}

/// Masks as captures state them, of several batch items where there are: tokens that are valid or
/// of a segment, alone and in runs, and blocks of their own for each head.
MaskCase recorded_mask(std::string_view name, const Shape& s) {
  if (name == "block_causal") {
    return {"", block_causal_mask(43),
            [](auto, auto, auto i, auto j) { return allow(j / 43 <= i / 43); }};
  }
  if (name == "spans") return stream_mask(s);
  if (name == "recorded_blocks") {
    const int64_t rows = (s.queries + 15) / 16, columns = (s.keys + 63) / 64;
    const auto bits = random_bits(s.batch * s.heads * rows * columns, 0.4, 17);
    return {"", recorded_blocks_mask(bool_tensor({s.batch, s.heads, rows, columns}, bits), 16, 64),
            [=](auto b, auto h, auto i, auto j) {
              const int64_t row = (b * s.heads + h) * rows + i / 16;
              return allow(bits[static_cast<size_t>(row * columns + j / 64)] != 0);
            }};
  }
  if (name == "same_segment") {
    std::vector<int64_t> segments;
    for (int64_t at = 0; at < s.batch * s.keys; ++at) {
      const int64_t b = at / s.keys, j = at % s.keys;
      segments.push_back(j < s.keys / 2 ? j / (s.keys / 5 + b + 1) : 90 + j % (2 + b));
    }
    auto tensor = std::make_shared<MemoryTensor>(
        "mask", DType::i64, std::vector<int64_t>{s.batch, s.keys}, as_bytes(segments));
    return {"", same_segment_mask(std::move(tensor)), [=](auto b, auto, auto i, auto j) {
              return allow(segments[static_cast<size_t>(b * s.keys + i)] ==
                           segments[static_cast<size_t>(b * s.keys + j)]);
            }};
  }
  auto valid = random_bits(s.batch * s.keys, 0.6, 19);
  for (int64_t b = 0; b < s.batch; ++b) {
    const auto item = valid.begin() + b * s.keys;
    std::fill(item, item + s.keys / 3, uint8_t{1});
    std::fill(item + s.keys - s.keys / 3 + b, item + s.keys, uint8_t{0});
  }
  const auto tensor = bool_tensor({s.batch, s.keys}, valid);
  const auto is_valid = [=](int64_t b, int64_t token) {
    return valid[static_cast<size_t>(b * s.keys + token)] != 0;
  };
  if (name == "valid") {
    return {"", valid_keys_mask(tensor),
            [=](auto b, auto, auto, auto j) { return allow(is_valid(b, j)); }};
  }
  const bool causal = name == "causal_valid_pairs";
  const Mask pairs = valid_pairs_mask(tensor);
  return {"", causal ? Mask::causal() & pairs : pairs, [=](auto b, auto, auto i, auto j) {
            return allow(is_valid(b, i) && is_valid(b, j) && (!causal || j <= i));
          }};
}

MaskCase causal_and_keys(const Shape& s) {
  const MaskCase keys = key_masks("keys", s);
  return {"", Mask::causal() & keys.mask, [keys](auto b, auto h, auto i, auto j) {
            return j <= i ? keys.bias(b, h, i, j) : kMasked;
          }};
}

MaskCase far_mask(const FarKeys& far, const Shape& s) {
  const auto bias = [far, keys = s.keys](auto, auto, int64_t i, int64_t j) {
    const int64_t turned = far.by_row ? (j + 37 * i) % keys : j;
    return far.keys.contains(turned) ? double{*far.bias} : 0.0;
  };
  const int64_t rows = far.by_row ? s.queries : 1;
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < s.keys; ++j) values.push_back(static_cast<float>(bias(0, 0, i, j)));
  }
  return {"far", Mask::tensor(float_tensor({rows, s.keys}, values)), bias};
}

/// Gives channel 0 to the products with far keys.
void set_far_products(const AttentionCase& c, std::vector<float>& q, std::vector<float>& k) {
  if (c.far.product == 0) return;
  const auto value = static_cast<float>(std::sqrt(std::fabs(c.far.product)));
  const Shape& s = c.shape;
  for (int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
    q[static_cast<size_t>(row * s.head_dim)] = row % 3 == 2 ? 0 : value;
  }
  for (int64_t row = 0; row < s.batch * s.kv_heads * s.keys; ++row) {
    k[static_cast<size_t>(row * s.head_dim)] =
        c.far.keys.contains(row % s.keys) ? std::copysign(value, static_cast<float>(c.far.product))
                                          : 0.0f;
  }
}

MaskCase build_mask(std::string_view name, const Shape& s) {
  if (name == "none") return {"", Mask(), [](auto, auto, auto, auto) { return 0.0; }};
  if (name == "causal") {
    return {"", Mask::causal(), [](auto, auto, auto i, auto j) { return allow(j <= i); }};
  }
  if (name == "last_window") {
    return {"", Mask::window(31, 7, s.keys - s.queries), [s](auto, auto, auto i, auto j) {
              const int64_t at = i + s.keys - s.queries;
              return allow(j >= at - 31 && j <= at + 7);
            }};
  }
  if (auto place = place_mask_case(name, s)) return *place;
  if (name == "window") {
    return {"", Mask::window(37),
            [](auto, auto, auto i, auto j) { return allow(std::abs(i - j) <= 37); }};
  }
  if (name == "key_lengths" || name == "keys") return key_masks(name, s);
  if (name == "segments") return segment_mask(s);
  if (name == "blocks") return block_mask(s);
  if (name == "causal_and_keys") return causal_and_keys(s);
  if (name.starts_with("padded")) return padded_batch(name, s);
  if (name == "valid" || name == "block_causal" || name == "recorded_blocks" || name == "spans" ||
      name == "same_segment" || name.ends_with("valid_pairs")) {
    return recorded_mask(name, s);
  }
  if (name == "key_bias" || name == "low_bias" || name == "lowest_bias") {
    auto values = normal_values(s.keys, 5, 13);
    // Every logit of a row far below 0: the reference of its sum has to follow, as far as it can.
    const float shift = name == "key_bias" ? 0.0f : name == "low_bias" ? 700.0f : 3.5e6f;
    for (float& value : values) value -= shift;
    return {"", Mask::tensor(float_tensor({s.keys}, values)),
            [values](auto, auto, auto, auto j) { return double{values[static_cast<size_t>(j)]}; }};
  }
  return dense_mask(name, s);
}

double feature(ScoreFunction score, double x) {
  if (score == ScoreFunction::linear_relu) return std::max(0.0, x);
  if (score == ScoreFunction::linear_elu1) return x > 0 ? x + 1 : std::exp(x);
  return x;
}

std::vector<double> features(ScoreFunction score, const std::vector<float>& values) {
  std::vector<double> result;
  for (const float value : values) result.push_back(feature(score, double{value}));
  return result;
}

Sinks sinks_of(const AttentionCase& c) {
  if (c.sinks == "none") return {};
  const Shape& s = c.shape;
  const bool by_query = c.sinks == "query";
  const Sinks::Shape shape{by_query ? s.batch : 1, s.heads, by_query ? s.queries : 1};
  std::vector<float> logits;
  for (int64_t b = 0; b < shape[0]; ++b) {
    for (int64_t h = 0; h < shape[1]; ++h) {
      for (int64_t i = 0; i < shape[2]; ++i) {
        logits.push_back(static_cast<float>(sink_of(c, b, h, i)));
      }
    }
  }
  return {shape, std::move(logits)};
}

/// Also gives the features of the values that were stored.
AttentionProblem build(const AttentionCase& c, const MaskCase& mask,
                       std::vector<double>& q_features, std::vector<double>& k_features,
                       std::vector<float>& v) {
  const Shape& s = c.shape;
  AttentionProblem::Parts parts;
  auto q = normal_values(s.batch * s.heads * s.queries * s.head_dim, c.amplitude, c.seed);
  auto k = normal_values(s.batch * s.kv_heads * s.keys * s.head_dim, c.amplitude, c.seed + 1);
  for (size_t i = 0; i < q.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / s.head_dim;
    if (!c.mixed_rows || row % 2 == 1) q[i] += c.q_shift;
  }
  for (float& value : k) value += c.k_shift;
  for (size_t i = 0; i < q.size(); i += static_cast<size_t>(s.head_dim)) q[i] += c.common_channel;
  for (size_t i = 0; i < k.size(); i += static_cast<size_t>(s.head_dim)) k[i] += c.common_channel;
  set_far_products(c, q, k);
  parts.q =
      HeadTensor(std::make_shared<MemoryTensor>(
                     "q", c.dtype, std::vector<int64_t>{s.batch, s.heads, s.queries, s.head_dim},
                     round_to(c.dtype, q)),
                 Layout::bhsd);
  parts.k =
      HeadTensor(std::make_shared<MemoryTensor>(
                     "k", c.dtype, std::vector<int64_t>{s.batch, s.kv_heads, s.keys, s.head_dim},
                     round_to(c.dtype, k)),
                 Layout::bhsd);
  if (c.value_width > 0) {
    v = normal_values(s.batch * s.kv_heads * s.keys * c.value_width, c.value_amplitude, c.seed + 2);
    parts.v = HeadTensor(
        std::make_shared<MemoryTensor>(
            "v", c.dtype, std::vector<int64_t>{s.batch, s.kv_heads, s.keys, c.value_width},
            round_to(c.dtype, v)),
        Layout::bhsd);
  }
  q_features = features(c.score, q);
  k_features = features(c.score, k);
  parts.scale = c.scale;
  if (c.own_scales) {
    const double first = c.scale == 0 ? 1 / std::sqrt(static_cast<double>(s.head_dim)) : c.scale;
    std::vector<double> each;
    for (int64_t h = 0; h < s.heads; ++h) {
      each.push_back(first * (1 + static_cast<double>(h) / static_cast<double>(s.heads)));
    }
    parts.scale = HeadScales(each);
  }
  parts.score = c.score;
  parts.mask = mask.mask;
  parts.sinks = sinks_of(c);
  parts.id.kind = CallKind::cross;  // queries and keys may differ in number
  if (c.grid[0] > 0) {
    TokenGrid tokens = TokenGrid::video(s.keys, c.grid, c.text, c.place);
    if (!c.text_valid.empty()) tokens.set_text_valid(c.text_valid);
    parts.query_tokens = parts.key_tokens = tokens;
    parts.id.kind = CallKind::joint;
  }
  parts.name = "case";
  return AttentionProblem::make(std::move(parts));
}

std::string far_text(const FarKeys& far) {
  if (far.keys.empty()) return "";
  std::ostringstream text;
  text << ", far keys " << far.keys.begin << ":" << far.keys.end;
  if (far.bias) text << " bias " << *far.bias << (far.by_row ? " by row" : "");
  if (far.product != 0) text << " product " << far.product;
  return text.str();
}

}  // namespace

std::string to_text(const Shape& s) {
  return "B=" + std::to_string(s.batch) + " H=" + std::to_string(s.heads) + "/" +
         std::to_string(s.kv_heads) + " Nq=" + std::to_string(s.queries) +
         " Nk=" + std::to_string(s.keys) + " d=" + std::to_string(s.head_dim);
}

double sink_of(const AttentionCase& description, int64_t batch, int64_t head, int64_t query) {
  if (description.sinks == "far") return 1000;
  const bool by_query = description.sinks == "query";
  if (description.sinks == "none" || (by_query && query % 7 == 3)) return kMasked;
  const int64_t at = by_query ? 5 * batch + 3 * head + query : head + 1;
  return double{kSinkLevels[static_cast<size_t>(at) % std::size(kSinkLevels)]};
}

MaskCase mask_case(std::string_view name, const Shape& shape) {
  MaskCase mask = build_mask(name, shape);
  mask.name = name;
  return mask;
}

Oracle::Oracle(const AttentionCase& description)
    : case_(description),
      mask_(description.far.bias ? far_mask(description.far, description.shape)
                                 : mask_case(description.mask, description.shape)),
      problem_(build(case_, mask_, q_, k_, v_)) {}

double Oracle::value(int64_t batch, int64_t head, int64_t key, int64_t channel) const {
  const Shape& s = case_.shape;
  const int64_t kv_head = head / (s.heads / s.kv_heads);
  const int64_t row = (batch * s.kv_heads + kv_head) * s.keys + key;
  return double{v_[static_cast<size_t>(row * case_.value_width + channel)]};
}

std::string Oracle::text() const {
  return to_text(case_.shape) + " " + std::string(dtype_name(case_.dtype)) + " " +
         score_name(case_.score) + " mask " + mask_.name + " amplitude " +
         std::to_string(case_.amplitude) + " sinks " + std::string(case_.sinks) +
         far_text(case_.far);
}

std::vector<std::byte> Oracle::query_rows(int64_t batch, int64_t head,
                                          const std::vector<int64_t>& index) const {
  const int64_t bytes = problem_.q().row_bytes();
  std::vector<std::byte> rows(index.size() * static_cast<size_t>(bytes));
  for (size_t r = 0; r < index.size(); ++r) {
    problem_.q().read_rows(batch, head, {index[r], index[r] + 1},
                           rows.data() + static_cast<int64_t>(r) * bytes);
  }
  return rows;
}

Oracle::Row Oracle::row(int64_t batch, int64_t head, int64_t query) const {
  const Shape& s = case_.shape;
  const bool linear = is_linear(case_.score);
  const int64_t kv_head = head / (s.heads / s.kv_heads);
  const double* q = q_.data() + ((batch * s.heads + head) * s.queries + query) * s.head_dim;
  Row row;
  double sum = 0;
  std::vector<double> products;
  for (int64_t j = 0; j < s.keys; ++j) {
    const double* k = k_.data() + ((batch * s.kv_heads + kv_head) * s.keys + j) * s.head_dim;
    double dot = 0;
    double magnitude = 0;
    for (int64_t i = 0; i < s.head_dim; ++i) {
      const double product = q[i] * k[i];
      dot += product;
      magnitude += std::fabs(product);
    }
    const double bias = mask_.bias(batch, head, query, j);
    const double cap = case_.score.cap;
    const double logit = problem_.scale(head) * dot;
    row.logits.push_back((cap == 0 ? logit : cap * std::tanh(logit / cap)) + bias);
    products.push_back(bias == kMasked ? 0 : dot);
    if (bias != kMasked) {
      row.magnitude = std::max(row.magnitude, problem_.scale(head) * magnitude + std::fabs(bias));
    }
  }
  row.one_sign = case_.common_channel != 0;
  row.logit_error =
      0x1p-24 * row.magnitude * (row.one_sign ? static_cast<double>(s.head_dim) + 2 : 1.0);
  // Roundings on the way to the tangent and back.
  row.logit_error += 0x1p-21 * std::min(case_.score.cap, row.magnitude);
  const double largest = *std::max_element(row.logits.begin(), row.logits.end());
  for (size_t j = 0; j < row.logits.size(); ++j) {
    if (linear) {
      row.weights.push_back(products[j]);
    } else if (case_.score == ScoreFunction::sigmoid) {
      row.weights.push_back(1 / (1 + std::exp(-row.logits[j])));
    } else {
      row.weights.push_back(largest == kMasked ? 0 : std::exp(row.logits[j] - largest));
    }
    sum += row.weights.back();
  }
  if (case_.score == ScoreFunction::sigmoid) return row;
  const double of_keys = std::log(sum) + (linear || largest == kMasked ? 0 : largest);
  const double sink = sink_of(case_, batch, head, query);
  const double more = std::max(of_keys, sink);
  row.lse =
      more == kMasked ? kMasked : more + std::log(std::exp(of_keys - more) + std::exp(sink - more));
  const double share = std::exp(of_keys - row.lse);
  for (double& weight : row.weights) weight = sum == 0 ? 0 : weight / sum * share;
  return row;
}

}  // namespace attnscope::test
