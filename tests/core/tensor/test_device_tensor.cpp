// Tensors in a device's memory, which plays in the host's here.
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/problem/attention_problem.h"
#include "core/tensor/device_tensor.h"
#include "core/tensor/memory_tensor.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

namespace attnscope::test {
namespace {

/// Reads what is named as if it were a device's.
class PlayedReader : public DeviceReader {
 public:
  mutable int reads = 0;
  mutable int searches = 0;
  int64_t lies = -1;  ///< what a search finds where nothing is

  void wait(int) const override {}
  void read(const DeviceRows& rows, std::byte* to) const override {
    ++reads;
    const int64_t bytes = dtype_bytes(rows.dtype);
    for (int64_t row = 0; row < rows.rows; ++row) {
      for (int64_t c = 0; c < rows.width; ++c, to += bytes) {
        const int64_t at = row * rows.row_stride + c * rows.channel_stride;
        std::memcpy(to, rows.data + at * bytes, static_cast<size_t>(bytes));
      }
    }
  }
  int64_t first_not_finite(const DeviceRows& rows) const override {
    ++searches;
    for (int64_t row = 0; row < rows.rows; ++row) {
      for (int64_t c = 0; c < rows.width; ++c) {
        float value = 0;
        const int64_t at = row * rows.row_stride + c * rows.channel_stride;
        std::memcpy(&value, rows.data + at * 4, 4);
        if (!std::isfinite(value)) return row;
      }
    }
    return lies;
  }
};

std::vector<float> numbers(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

std::shared_ptr<DeviceTensor> tensor_of(const std::vector<float>& values, size_t first,
                                        std::vector<int64_t> shape, std::vector<int64_t> strides,
                                        const DeviceReader& reader) {
  DeviceTensor::Parts parts;
  parts.name = "q";
  parts.shape = std::move(shape);
  parts.strides = std::move(strides);
  parts.device = 3;
  parts.data = reinterpret_cast<const std::byte*>(values.data() + first);
  parts.reader = &reader;
  return std::make_shared<DeviceTensor>(std::move(parts));
}

}  // namespace

TEST_CASE("a box of a tensor in a device's memory comes packed, whatever its strides") {
  const PlayedReader reader;
  const std::vector<float> values = numbers(4000);
  struct Case {
    size_t first;
    std::vector<int64_t> strides;
  };
  const std::vector<int64_t> shape{2, 3, 5, 4};
  for (const Case& c : {Case{0, {60, 20, 4, 1}}, Case{7, {600, 4, 30, 1}}, Case{1, {1, 2, 6, 30}},
                        Case{3000, {-60, 400, -4, 2}}, Case{5, {0, 20, 0, 1}}}) {
    const auto tensor = tensor_of(values, c.first, shape, c.strides, reader);
    for (const auto& [begin, count] :
         std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>{
             {{0, 0, 0, 0}, {2, 3, 5, 4}},
             {{1, 2, 1, 0}, {1, 1, 4, 4}},
             {{0, 1, 2, 1}, {2, 2, 1, 3}},
             {{1, 1, 1, 1}, {1, 1, 1, 1}},
             {{0, 0, 4, 3}, {2, 3, 1, 1}}}) {
      std::vector<float> expected;
      for (int64_t a = begin[0]; a < begin[0] + count[0]; ++a) {
        for (int64_t b = begin[1]; b < begin[1] + count[1]; ++b) {
          for (int64_t s = begin[2]; s < begin[2] + count[2]; ++s) {
            for (int64_t d = begin[3]; d < begin[3] + count[3]; ++d) {
              const int64_t at =
                  a * c.strides[0] + b * c.strides[1] + s * c.strides[2] + d * c.strides[3];
              expected.push_back(values[static_cast<size_t>(static_cast<int64_t>(c.first) + at)]);
            }
          }
        }
      }
      // One number more, which must stay.
      std::vector<float> read(expected.size() + 1, -1.0f);
      tensor->read(begin, count, reinterpret_cast<std::byte*>(read.data()));
      expected.push_back(-1.0f);
      CHECK(read == expected);
    }
    std::byte untouched{7};
    const std::vector<int64_t> none{0, 3, 5, 4}, zero{0, 0, 0, 0};
    tensor->read(zero, none, &untouched);
    CHECK(untouched == std::byte{7});
  }
}

TEST_CASE("rows of a head lie in a device's memory where layout and strides say") {
  const PlayedReader reader;
  const std::vector<float> values = numbers(4000);
  // [batch, tokens, heads, channels], a slice of something wider.
  const HeadTensor tensor(tensor_of(values, 11, {2, 5, 3, 4}, {500, 60, 12, 1}, reader),
                          Layout::bshd);
  const auto rows = tensor.device_rows(1, 2);
  REQUIRE(rows);
  CHECK(rows->device == 3);
  CHECK(rows->rows == 5);
  CHECK(rows->width == 4);
  CHECK(rows->row_stride == 60);
  CHECK(rows->channel_stride == 1);
  CHECK(reinterpret_cast<const float*>(rows->data) == values.data() + 11 + 500 + 24);
  CHECK(reinterpret_cast<const float*>(rows->part({2, 4}).data) ==
        values.data() + 11 + 500 + 24 + 120);
  CHECK(rows->part({2, 4}).rows == 2);
  const HeadTensor turned(tensor_of(values, 0, {5, 4}, {1, 5}, reader), Layout::sd);
  CHECK(turned.device_rows(0, 0)->row_stride == 1);
  CHECK(turned.device_rows(0, 0)->channel_stride == 5);
  // Those of the host do not, nor those that are rounded there.
  const HeadTensor host(std::make_shared<MemoryTensor>("k", DType::f32, std::vector<int64_t>{1, 1},
                                                       std::vector<std::byte>(4)),
                        Layout::sd);
  CHECK_FALSE(host.device_rows(0, 0));
  const std::vector<double> wide(20);
  DeviceTensor::Parts parts;
  parts.dtype = DType::f64;
  parts.shape = {5, 4};
  parts.strides = {4, 1};
  parts.data = reinterpret_cast<const std::byte*>(wide.data());
  parts.reader = &reader;
  CHECK_FALSE(
      HeadTensor(std::make_shared<DeviceTensor>(std::move(parts)), Layout::sd).device_rows(0, 0));
}

TEST_CASE("elements of a device's tensor lie on multiples of their size") {
  const PlayedReader reader;
  const std::vector<float> values(8);
  DeviceTensor::Parts parts;
  parts.name = "k";
  parts.shape = {1};
  parts.strides = {1};
  parts.data = reinterpret_cast<const std::byte*>(values.data()) + 2;
  parts.reader = &reader;
  const auto error = error_of([&] { const DeviceTensor tensor(parts); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::usage);
  CHECK(std::string(error->what()) == "k: elements do not lie on multiples of their size");
}

TEST_CASE("the device looks for NaN, and the words are those of tensors of the host") {
  PlayedReader reader;
  std::vector<float> values = numbers(600);
  const auto problem_of = [&](std::shared_ptr<const TensorSource> q) {
    AttentionProblem::Parts parts;
    parts.q = HeadTensor(std::move(q), Layout::hsd);
    parts.k = HeadTensor(tensor_of(values, 0, {3, 50, 4}, {200, 4, 1}, reader), Layout::hsd);
    return AttentionProblem::make(std::move(parts));
  };
  const auto device_problem = [&] {
    return problem_of(tensor_of(values, 0, {3, 50, 4}, {200, 4, 1}, reader));
  };
  device_problem().check_finite(0, 2);
  CHECK(reader.searches == 2);
  CHECK(reader.reads == 0);
  for (const float wrong : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::vector<float> good = values;
    values[200 + 37 * 4 + 2] = wrong;
    std::vector<std::byte> bytes(2400);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    const auto on_host = problem_of(std::make_shared<MemoryTensor>(
        "q", DType::f32, std::vector<int64_t>{3, 50, 4}, std::move(bytes)));
    const auto expected = error_of([&] { on_host.check_queries_finite(0, 1); });
    const auto error = error_of([&] { device_problem().check_queries_finite(0, 1); });
    REQUIRE(expected);
    REQUIRE(error);
    CHECK(std::string(error->what()) == expected->what());
    CHECK(error->code() == ErrorCode::value);
    CHECK(std::string(error->what()).find("head 1, token 37, channel 2 is ") != std::string::npos);
    values = good;
  }
  // A row that changes meanwhile is no reason to go on.
  reader.lies = 4;
  const auto error = error_of([&] { device_problem().check_queries_finite(0, 0); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::unavailable);
  std::stop_source stop;
  stop.request_stop();
  const auto stopped =
      error_of([&] { device_problem().check_queries_finite(0, 0, stop.get_token()); });
  REQUIRE(stopped);
  CHECK(stopped->code() == ErrorCode::interrupted);
}

}  // namespace attnscope::test
