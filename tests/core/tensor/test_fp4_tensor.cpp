#include <bit>
#include <cmath>

#include "core/tensor/fp4_tensor.h"
#include "core/tensor/scaled_tensor.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kTokens = 5, kChannels = 70;

/// The code of a token and channel.
uint8_t code_at(int64_t token, int64_t channel) {
  return static_cast<uint8_t>((token * 37 + channel * 11 + 3) % 16);
}

/// [1, 1, tokens, channels / 2] bytes of two codes each.
std::shared_ptr<const TensorSource> pairs(NibbleOrder order) {
  std::vector<uint8_t> bytes;
  for (int64_t token = 0; token < kTokens; ++token) {
    for (int64_t channel = 0; channel < kChannels; channel += 2) {
      const uint8_t a = code_at(token, channel), b = code_at(token, channel + 1);
      bytes.push_back(order == NibbleOrder::low_first ? static_cast<uint8_t>(a | b << 4)
                                                      : static_cast<uint8_t>(a << 4 | b));
    }
  }
  return make_tensor("pairs", DType::u8, {1, 1, kTokens, kChannels / 2}, bytes);
}

/// A box of rows and channels with guards behind it, which must stay.
template <typename T>
std::vector<T> box(const TensorSource& tensor, IndexRange tokens, IndexRange channels) {
  const std::array<int64_t, 4> begin{0, 0, tokens.begin, channels.begin};
  const std::array<int64_t, 4> count{1, 1, tokens.size(), channels.size()};
  const auto size = static_cast<size_t>(tokens.size() * channels.size());
  std::vector<std::byte> room(size * sizeof(T) + 16, std::byte{0x5a});
  tensor.read(begin, count, room.data());
  for (size_t i = size * sizeof(T); i < room.size(); ++i) CHECK(room[i] == std::byte{0x5a});
  std::vector<T> values(size);
  if (size > 0) std::memcpy(values.data(), room.data(), size * sizeof(T));
  return values;
}

/// Calls `visit` with boxes that begin and end at even and odd channels.
template <typename Visit>
void each_box(const Visit& visit) {
  for (const IndexRange tokens : {IndexRange{0, 5}, {1, 4}, {4, 5}, {2, 2}}) {
    for (int64_t begin = 0; begin < 36; begin += 1 + begin / 7) {
      for (const int64_t size : {0, 1, 2, 3, 15, 16, 17, 33, 34}) {
        visit(tokens, IndexRange{begin, begin + size});
      }
    }
    visit(tokens, IndexRange{0, kChannels});
  }
}

}  // namespace

TEST_CASE("each e2m1 code has its value") {
  const std::array<float, 8> values{0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (uint8_t code = 0; code < 16; ++code) {
    const float expected = code < 8 ? values[code] : -values[code - 8];
    CHECK(std::bit_cast<uint32_t>(e2m1_value(code)) == std::bit_cast<uint32_t>(expected));
  }
}

TEST_CASE("each e8m0 code is a power of two") {
  for (int code = 0; code < 255; ++code) {
    CHECK(static_cast<double>(e8m0_value(static_cast<uint8_t>(code))) == std::exp2(code - 127));
  }
  CHECK(std::isnan(e8m0_value(255)));
}

TEST_CASE("two codes of a byte are read as two") {
  for (const NibbleOrder order : {NibbleOrder::low_first, NibbleOrder::high_first}) {
    const auto codes = nibble_tensor(pairs(order), order);
    CHECK(codes->shape()[3] == kChannels);
    each_box([&](IndexRange tokens, IndexRange channels) {
      INFO(channels.begin << " to " << channels.end);
      std::vector<uint8_t> expected;
      for (int64_t token = tokens.begin; token < tokens.end; ++token) {
        for (int64_t c = channels.begin; c < channels.end; ++c) {
          expected.push_back(code_at(token, c));
        }
      }
      CHECK(box<uint8_t>(*codes, tokens, channels) == expected);
    });
  }
}

TEST_CASE("blocks of channels share a scale") {
  const auto codes = nibble_tensor(pairs(NibbleOrder::low_first), NibbleOrder::low_first);
  const auto check = [&](const CodeScales& scales, int64_t blocks, const auto& scale_of) {
    const auto values = scaled_tensor(codes, Layout::bhsd, scales);
    CHECK(values->dtype() == DType::f32);
    each_box([&](IndexRange tokens, IndexRange channels) {
      const std::vector<float> found = box<float>(*values, tokens, channels);
      size_t i = 0;
      for (int64_t token = tokens.begin; token < tokens.end; ++token) {
        for (int64_t c = channels.begin; c < channels.end; ++c, ++i) {
          const int64_t at = token * blocks + c / *scales.channels;
          const double exact = static_cast<double>(e2m1_value(code_at(token, c))) * scale_of(at);
          INFO("token " << token << " channel " << c);
          CHECK(found[i] == static_cast<float>(exact * scales.factor));
        }
      }
    });
  };
  // 70 channels are four blocks of 16 and one of 6, and two of 32 and one of 6.
  std::vector<uint8_t> bytes;
  for (uint8_t i = 0; i < 25; ++i) bytes.push_back(static_cast<uint8_t>(0x20 + 3 * i));
  const auto e4m3 = [&](int64_t at) {
    return static_cast<double>(float8_value(DType::e4m3, bytes[static_cast<size_t>(at)]));
  };
  CodeScales scales;
  scales.e2m1 = true;
  scales.channels = 16;
  scales.factor = 0.375;
  scales.values = make_tensor("scales", DType::e4m3, {1, 1, kTokens, 5}, bytes);
  check(scales, 5, e4m3);
  scales.values = make_tensor("scales", DType::u8, {1, 1, kTokens, 5}, bytes);
  scales.type = ScaleCodes::e4m3;
  check(scales, 5, e4m3);
  CHECK(scales_words(*codes, Layout::bhsd, scales) == "a scale each 16 channels of a token");
  scales.factor = 1;
  scales.channels = 32;
  scales.type = ScaleCodes::e8m0;
  bytes.resize(15);
  scales.values = make_tensor("scales", DType::u8, {1, 1, kTokens, 3}, bytes);
  check(scales, 3, [&](int64_t at) { return std::exp2(bytes[static_cast<size_t>(at)] - 127.0); });
}

TEST_CASE("a byte of two codes is no single one") {
  CodeScales scales;
  scales.e2m1 = true;
  const auto values =
      scaled_tensor(make_tensor("codes", DType::u8, {1, 3}, std::vector<uint8_t>{15, 16, 0xf2}),
                    Layout::sd, scales);
  const std::vector<float> found = [&] {
    std::vector<float> row(3);
    const std::array<int64_t, 2> begin{0, 0}, count{1, 3};
    values->read(begin, count, reinterpret_cast<std::byte*>(row.data()));
    return row;
  }();
  CHECK(found[0] == -6);
  CHECK(std::isnan(found[1]));
  CHECK(std::isnan(found[2]));
}

TEST_CASE("shapes of two codes a byte that overflow are refused") {
  struct Endless : TensorSource {
    DType dtype() const override { return DType::u8; }
    std::span<const int64_t> shape() const override { return extents; }
    const std::string& name() const override { return title; }
    void read(std::span<const int64_t>, std::span<const int64_t>, std::byte*) const override {}
    std::vector<int64_t> extents{1, int64_t{1} << 62};
    std::string title = "endless";
  };
  CHECK(refused([] { nibble_tensor(std::make_shared<Endless>(), NibbleOrder::low_first); },
                ErrorCode::file, {"endless", "overflows"}) == "");
}

TEST_CASE("every 8-bit code with every exponent is exact") {
  // A token each exponent, a channel each code.
  std::vector<uint8_t> codes, exponents;
  for (int exponent = 0; exponent < 256; ++exponent) {
    for (int code = 0; code < 256; ++code) codes.push_back(static_cast<uint8_t>(code));
    for (int block = 0; block < 8; ++block) exponents.push_back(static_cast<uint8_t>(exponent));
  }
  for (const DType dtype : {DType::e4m3, DType::e5m2}) {
    CodeScales scales;
    scales.channels = 32;
    scales.type = ScaleCodes::e8m0;
    scales.values = make_tensor("scales", DType::u8, {256, 8}, exponents);
    const auto values =
        scaled_tensor(make_tensor("codes", dtype, {256, 256}, codes), Layout::sd, scales);
    std::vector<float> found(256 * 256);
    const std::array<int64_t, 2> begin{0, 0}, count{256, 256};
    values->read(begin, count, reinterpret_cast<std::byte*>(found.data()));
    int64_t wrong = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const auto code = static_cast<uint8_t>(i % 256);
      const auto exponent = static_cast<int>(i / 256);
      const double exact = static_cast<double>(float8_value(dtype, code)) *
                           (exponent == 255 ? std::nan("") : std::exp2(exponent - 127));
      const bool same =
          std::isnan(exact) ? std::isnan(found[i]) : found[i] == static_cast<float>(exact);
      wrong += same ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("scales of blocks that do not fit are refused, and cuBLAS's order by name") {
  const auto codes = make_tensor("codes", DType::e4m3, {1, 2, 100, 64},
                                 std::vector<uint8_t>(size_t{2 * 100 * 64}));
  const auto refuse = [&](std::vector<int64_t> shape, const std::vector<std::string>& parts) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    CodeScales scales;
    scales.channels = 32;
    scales.type = ScaleCodes::e8m0;
    scales.values = make_tensor("scales", DType::u8, std::move(shape),
                                std::vector<uint8_t>(static_cast<size_t>(count)));
    CHECK(refused([&] { scaled_tensor(codes, Layout::bhsd, scales); }, ErrorCode::file, parts) ==
          "");
  };
  refuse({1, 2, 100, 4}, {"scales", "[1, 2, 100, 4]", "codes", "32 channels", "[1, 2, 100, 2]"});
  refuse({2, 100, 2}, {"expected [1, 2, 100, 2]"});
  // Tiles of 128 tokens and four scales.
  refuse({1, 2, 128, 4}, {"[1, 2, 128, 4]", "cuBLAS's order", "token by token"});
  refuse({1024}, {"cuBLAS's order"});
}
