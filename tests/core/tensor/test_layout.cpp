#include <cstring>
#include <numeric>

#include "core/tensor/layout.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// The value that stands at (b, h, s, d) of every test tensor.
float value_at(int64_t b, int64_t h, int64_t s, int64_t d) {
  return static_cast<float>(((b * 8 + h) * 64 + s) * 16 + d);
}

/// A tensor of extents {b, h, s, d} in the layout, filled with value_at.
template <typename T, typename Store>
HeadTensor fill(Layout layout, DType dtype, std::array<int64_t, 4> extent, Store store) {
  const std::string order(layout_name(layout));
  std::vector<int64_t> shape;
  for (char axis : order) shape.push_back(extent[std::string("bhsd").find(axis)]);
  const int64_t count =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) {
    std::array<int64_t, 4> at{};
    int64_t rest = i;
    for (size_t axis = shape.size(); axis-- > 0;) {
      at[std::string("bhsd").find(order[axis])] = rest % shape[axis];
      rest /= shape[axis];
    }
    values.push_back(store(value_at(at[0], at[1], at[2], at[3])));
  }
  return HeadTensor(make_tensor("t.npy", dtype, shape, values), layout);
}

}  // namespace

TEST_CASE("every layout serves the same rows") {
  for (const Layout layout : {Layout::bhsd, Layout::bshd, Layout::hsd, Layout::shd, Layout::sd}) {
    INFO(layout_name(layout));
    const auto rank = layout_rank(layout);
    const std::array<int64_t, 4> extent{rank == 4 ? 2 : 1, rank >= 3 ? 3 : 1, 7, 5};
    const HeadTensor f32 = fill<float>(layout, DType::f32, extent, [](float v) { return v; });
    const HeadTensor wide =
        fill<double>(layout, DType::f64, extent, [](float v) { return double{v}; });
    const HeadTensor half =
        fill<f16>(layout, DType::f16, extent, [](float v) { return to_f16(v); });
    CHECK(wide.dtype() == DType::f32);
    CHECK(wide.row_bytes() == 20);
    CHECK(half.row_bytes() == 10);
    for (const HeadTensor* t : {&f32, &wide, &half}) {
      CHECK(t->batch() == extent[0]);
      CHECK(t->heads() == extent[1]);
      CHECK(t->tokens() == 7);
      CHECK(t->width() == 5);
      for (const IndexRange rows : {IndexRange{0, 7}, IndexRange{2, 3}, IndexRange{3, 7}}) {
        const int64_t b = extent[0] - 1, h = extent[1] - 1;
        const auto bytes = static_cast<size_t>(rows.size() * t->row_bytes());
        std::vector<std::byte> read(bytes + 1, std::byte{0x5a});
        t->read_rows(b, h, rows, read.data());
        CHECK(read.back() == std::byte{0x5a});
        std::vector<float> values(static_cast<size_t>(rows.size() * 5));
        to_floats(t->dtype(), read.data(), rows.size() * 5, values.data());
        bool same = true;
        for (int64_t i = 0; i < rows.size() * 5; ++i) {
          const float expected = value_at(b, h, rows.begin + i / 5, i % 5);
          const float stored = t == &half ? to_float(to_f16(expected)) : expected;
          same &= values[static_cast<size_t>(i)] == stored;
        }
        CHECK(same);
      }
      t->read_rows(0, 0, {3, 3}, nullptr);
    }
  }
}

TEST_CASE("f64 rows are rounded in pieces") {
  // 40 000 rows of 16 doubles are ten pieces.
  const int64_t rows = 40000;
  std::vector<double> values(static_cast<size_t>(rows * 16));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0 + static_cast<double>(i) * 0x1p-30;
  const HeadTensor tensor(make_tensor("t", DType::f64, {rows, 16}, values), Layout::sd);
  std::vector<float> read(values.size() - 16);
  tensor.read_rows(0, 0, {1, rows}, reinterpret_cast<std::byte*>(read.data()));
  int bad = 0;
  for (size_t i = 0; i < read.size(); ++i) bad += read[i] != static_cast<float>(values[i + 16]);
  CHECK(bad == 0);
}

TEST_CASE("tensors that do not fit the layout are refused") {
  const std::vector<float> values(24);
  const auto tensor = make_tensor("q.npy", DType::f32, {2, 3, 4}, values);
  CHECK(refused([&] { HeadTensor(tensor, Layout::bhsd); }, ErrorCode::usage,
                {"q.npy", "bhsd", "4 dimensions", "got 3"}) == "");
  CHECK(refused([&] { HeadTensor(tensor, Layout::sd); }, ErrorCode::usage, {"sd", "got 3"}) == "");
  const auto integers = make_tensor("i.npy", DType::i32, {6, 4}, std::vector<int32_t>(24));
  CHECK(refused([&] { HeadTensor(integers, Layout::sd); }, ErrorCode::usage, {"i.npy", "i32"}) ==
        "");
  CHECK_FALSE(static_cast<bool>(HeadTensor()));
}

TEST_CASE("layout names go both ways") {
  for (const std::string_view name : {"bhsd", "bshd", "hsd", "shd", "sd"}) {
    CHECK(layout_name(*parse_layout(name)) == name);
    CHECK(layout_rank(*parse_layout(name)) == static_cast<int>(name.size()));
  }
  CHECK_FALSE(parse_layout("dshb").has_value());
}

TEST_CASE("a tensor in memory gives any box") {
  std::vector<int32_t> values(2 * 3 * 4 * 5);
  std::iota(values.begin(), values.end(), 0);
  const auto tensor = make_tensor("m", DType::i32, {2, 3, 4, 5}, values);
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    std::array<int64_t, 4> begin{}, count{};
    int64_t total = 1;
    for (size_t axis = 0; axis < 4; ++axis) {
      begin[axis] = pick(random, 0, tensor->shape()[axis] - 1);
      count[axis] = pick(random, 0, tensor->shape()[axis] - begin[axis]);
      total *= count[axis];
    }
    std::vector<int32_t> box(static_cast<size_t>(total) + 1, -1);
    tensor->read(begin, count, reinterpret_cast<std::byte*>(box.data()));
    int bad = box.back() != -1;
    for (int64_t i = 0; i < total; ++i) {
      int64_t rest = i, expected = 0, stride = 1;
      for (size_t axis = 4; axis-- > 0;) {
        expected += (begin[axis] + rest % count[axis]) * stride;
        rest /= count[axis];
        stride *= tensor->shape()[axis];
      }
      bad += box[static_cast<size_t>(i)] != expected;
    }
    REQUIRE(bad == 0);
  }
  const auto scalar = make_tensor("s", DType::i32, {}, std::vector<int32_t>{7});
  int32_t value = 0;
  scalar->read({}, {}, reinterpret_cast<std::byte*>(&value));
  CHECK(value == 7);
  CHECK(refused(
            [] {
              make_tensor("x", DType::f32, {2, 2}, std::vector<float>(3));
            },
            ErrorCode::usage, {"x", "16", "12"}) == "");
}
