#include <cmath>
#include <functional>
#include <numeric>

#include "core/base/error.h"
#include "core/tensor/scaled_tensor.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

using Place = std::array<int64_t, 4>;  // batch, head, token, channel

constexpr HeadExtents kExtents{2, 3, 70, 6};

std::vector<int64_t> shape_of(Layout layout, const HeadExtents& extents) {
  std::vector<int64_t> shape;
  for (const int role : layout_axes(layout)) shape.push_back(extents[static_cast<size_t>(role)]);
  return shape;
}

/// Another code at each place; never one that is NaN.
uint8_t code_at(const Place& at) {
  const auto code = static_cast<uint8_t>(at[0] * 131 + at[1] * 57 + at[2] * 7 + at[3] * 3 + 1);
  return (code & 0x7f) >= 0x7c || code == 0x80 ? uint8_t{0x39} : code;
}

/// Calls `visit` with each place of a tensor of the layout, in the order in which they stand.
void each_place(Layout layout, const HeadExtents& extents,
                const std::function<void(const Place&)>& visit) {
  const std::vector<int64_t> shape = shape_of(layout, extents);
  const int64_t count =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  for (int64_t i = 0; i < count; ++i) {
    Place at{};
    int64_t rest = i;
    for (size_t axis = shape.size(); axis-- > 0;) {
      at[static_cast<size_t>(layout_axes(layout)[axis])] = rest % shape[axis];
      rest /= shape[axis];
    }
    visit(at);
  }
}

std::shared_ptr<const TensorSource> codes(Layout layout, const HeadExtents& extents,
                                          DType dtype = DType::e4m3) {
  std::vector<uint8_t> stored;
  each_place(layout, extents, [&](const Place& at) { stored.push_back(code_at(at)); });
  return make_tensor("codes", dtype, shape_of(layout, extents), stored);
}

/// Scales 1.5, 2.5 … of the shape.
CodeScales scales_of(const std::vector<int64_t>& shape) {
  const int64_t count =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1.5f);
  CodeScales scales;
  scales.values = make_tensor("scales", DType::f32, shape, values);
  return scales;
}

struct Case {
  std::vector<int64_t> shape;
  std::string words;
  std::function<int64_t(const Place&)> index;  ///< which of the scales belongs to the place
  std::optional<int64_t> block = {};
  ThreadScales by_thread = ThreadScales::none;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list{
      {{}, "one scale", [](const Place&) { return 0; }},
      {{1}, "one scale", [](const Place&) { return 0; }},
      {{1, 1, 1, 1}, "one scale", [](const Place&) { return 0; }},
      {{3}, "a scale a head", [](const Place& p) { return p[1]; }},
      {{1, 3}, "a scale a head", [](const Place& p) { return p[1]; }},
      {{2, 3}, "a scale a head", [](const Place& p) { return p[0] * 3 + p[1]; }},
      {{2, 3, 1, 1}, "a scale a head", [](const Place& p) { return p[0] * 3 + p[1]; }},
      {{2, 1, 1, 1}, "a scale a batch item", [](const Place& p) { return p[0]; }},
      {{2, 3, 70},
       "a scale each token of a head",
       [](const Place& p) { return (p[0] * 3 + p[1]) * 70 + p[2]; }},
      {{2, 3, 70, 1},
       "a scale each token of a head",
       [](const Place& p) { return (p[0] * 3 + p[1]) * 70 + p[2]; }},
      {{2, 3, 2},
       "a scale each 64 tokens of a head",
       [](const Place& p) { return (p[0] * 3 + p[1]) * 2 + p[2] / 64; }},
      {{1, 1, 3}, "a scale each 32 tokens", [](const Place& p) { return p[2] / 32; }},
      {{2, 3, 7},
       "a scale each 10 tokens of a head",
       [](const Place& p) { return (p[0] * 3 + p[1]) * 7 + p[2] / 10; },
       10},
      {{1, 3, 6}, "a scale each channel of a head", [](const Place& p) { return p[1] * 6 + p[3]; }},
      {{2, 3, 1, 6},
       "a scale each channel of a head",
       [](const Place& p) { return (p[0] * 3 + p[1]) * 6 + p[3]; }},
      // SageAttention 2's quantisers: a warp of 32 queries in 8 rows; 64 keys in pairs of rows.
      {{2, 3, 32},
       "a scale a thread of SageAttention of a head",
       [](const Place& p) { return (p[0] * 3 + p[1]) * 32 + p[2] / 32 * 8 + p[2] % 8; },
       {},
       ThreadScales::queries},
      {{2, 3, 8},
       "a scale a thread of SageAttention of a head",
       [](const Place& p) { return (p[0] * 3 + p[1]) * 8 + p[2] / 64 * 4 + p[2] % 8 / 2; },
       {},
       ThreadScales::keys}};
  return list;
}

}  // namespace

TEST_CASE("codes are multiplied by the scale of their place in every layout") {
  for (const Layout layout : {Layout::bhsd, Layout::bshd}) {
    for (const Case& one : cases()) {
      INFO(layout_name(layout) << " " << one.words << " " << one.shape.size());
      CodeScales scales = scales_of(one.shape);
      scales.block = one.block;
      scales.by_thread = one.by_thread;
      const auto source = codes(layout, kExtents);
      CHECK(scales_words(*source, layout, scales) == one.words);
      const HeadTensor tensor(scaled_tensor(source, layout, scales), layout);
      REQUIRE(tensor.dtype() == DType::f32);
      for (const IndexRange rows : {IndexRange{0, 70}, IndexRange{31, 33}, IndexRange{69, 70}}) {
        for (const int64_t batch : {0, 1}) {
          std::vector<float> read(static_cast<size_t>(rows.size() * 6));
          tensor.read_rows(batch, 2, rows, reinterpret_cast<std::byte*>(read.data()));
          size_t i = 0;
          bool equal = true;
          for (int64_t token = rows.begin; token < rows.end; ++token) {
            for (int64_t channel = 0; channel < 6; ++channel, ++i) {
              const Place at{batch, 2, token, channel};
              const float scale = 1.5f + static_cast<float>(one.index(at));
              equal = equal && read[i] == float8_value(DType::e4m3, code_at(at)) * scale;
            }
          }
          CHECK(equal);
        }
      }
    }
  }
}

TEST_CASE("a batch item's axis may be missing from scales where there is one") {
  const HeadExtents extents{1, 3, 70, 5};
  const auto source = codes(Layout::shd, extents);
  CHECK(scales_words(*source, Layout::shd, scales_of({3, 70})) == "a scale each token of a head");
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 70, 1}, {1, 3, 70}})
    CHECK(scales_words(*source, Layout::shd, scales_of(shape)) == "a scale each token of a head");
  CHECK(scales_words(*source, Layout::shd, scales_of({3, 1, 1})) == "a scale a head");
  CHECK(scales_words(*source, Layout::shd, scales_of({3, 1, 5})) ==
        "a scale each channel of a head");
  const HeadTensor channels(scaled_tensor(source, Layout::shd, scales_of({3, 1, 5})), Layout::shd);
  const HeadTensor tensor(scaled_tensor(source, Layout::shd, scales_of({3, 2})), Layout::shd);
  std::vector<float> row(5);
  tensor.read_rows(0, 1, {64, 65}, reinterpret_cast<std::byte*>(row.data()));
  CHECK(row[4] == float8_value(DType::e4m3, code_at({0, 1, 64, 4})) * 4.5f);
  channels.read_rows(0, 1, {64, 65}, reinterpret_cast<std::byte*>(row.data()));
  CHECK(row[2] == float8_value(DType::e4m3, code_at({0, 1, 64, 2})) * 8.5f);
}

TEST_CASE("integers are signed codes, and every type of codes has its own values") {
  for (const DType dtype : {DType::i8, DType::e5m2, DType::e4m3fnuz, DType::e5m2fnuz}) {
    INFO(dtype_name(dtype));
    const auto source = codes(Layout::bhsd, kExtents, dtype);
    const HeadTensor tensor(scaled_tensor(source, Layout::bhsd, {.factor = 0.25}), Layout::bhsd);
    std::vector<float> read(70 * 6);
    tensor.read_rows(1, 0, {0, 70}, reinterpret_cast<std::byte*>(read.data()));
    for (int64_t token = 0; token < 70; ++token) {
      const uint8_t code = code_at({1, 0, token, 2});
      const float value = dtype == DType::i8 ? static_cast<float>(static_cast<int8_t>(code))
                                             : float8_value(dtype, code);
      CHECK(read[static_cast<size_t>(token * 6 + 2)] == value * 0.25f);
    }
  }
}

TEST_CASE("scales that fit no axis, or several, are refused") {
  const auto refusal = [](const HeadExtents& extents, const std::vector<int64_t>& shape,
                          std::optional<int64_t> block = {},
                          ThreadScales by_thread = ThreadScales::none) {
    CodeScales scales = scales_of(shape);
    scales.block = block;
    scales.by_thread = by_thread;
    return thrown_text(ErrorCode::file, [&] {
      (void)scaled_tensor(codes(Layout::bhsd, extents), Layout::bhsd, scales);
    });
  };
  CHECK(refusal(kExtents, {4})
            .find("scales: [4] is no shape of scales for 2 batch items, 3 heads, 70 tokens and 6 "
                  "channels") == 0);
  CHECK(refusal(kExtents, {2, 3, 9}).find("16, 32, 64 or 128 tokens, each token or each channel") !=
        std::string::npos);
  // Blocks are told, and these are heads.
  CHECK(refusal(kExtents, {3}, 32).find("is no shape") != std::string::npos);
  // Grouped queries' heads of keys, which are as many as blocks of 64 tokens.
  CHECK(refusal({1, 6, 70, 5}, {1, 2}).find("is no shape") != std::string::npos);
  CHECK(refusal(kExtents, {3, 70}).find("is no shape") != std::string::npos);
  CHECK(refusal(kExtents, {2, 3, 70, 6}).find("is no shape") != std::string::npos);
  CHECK(refusal(kExtents, {2, 3, 4}, 16).find("X is each 16 tokens)") != std::string::npos);
  CHECK(refusal(kExtents, {2, 3, 5}, {}, ThreadScales::queries).find("SageAttention's threads") !=
        std::string::npos);
  // 80 tokens in blocks of 16, or 5 channels.
  CHECK(refusal({1, 2, 80, 5}, {1, 2, 5}).find("tell how many tokens share a scale") !=
        std::string::npos);
}
