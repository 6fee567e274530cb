// Q and K whose codes have a scale each block of channels: NVFP4, MXFP4 and MXFP8.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/problem/attention_problem.h"
#include "core/tensor/fp4_tensor.h"
#include "io/capture/capture.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kTokens = 3, kChannels = 64;

/// The code of a token and channel, of 4 bits.
uint8_t code_of(int64_t token, int64_t channel) {
  return static_cast<uint8_t>((token * 5 + channel * 3) % 16);
}

/// [1, 1, 3, 64] codes, two a byte or one.
std::string codes(bool two, bool low_first = true) {
  std::string bytes;
  for (int64_t token = 0; token < kTokens; ++token) {
    for (int64_t c = 0; c < kChannels; c += two ? 2 : 1) {
      const int one = code_of(token, c), other = two ? code_of(token, c + 1) : 0;
      bytes += static_cast<char>(low_first ? one | other << 4 : one << 4 | other);
    }
  }
  return bytes;
}

/// `blocks` scales a token, as bytes of numbers from 0x30 on.
std::string scale_bytes(int64_t blocks) {
  std::string bytes;
  for (int64_t i = 0; i < kTokens * blocks; ++i) bytes += static_cast<char>(0x30 + i);
  return bytes;
}

double e4m3_scale(int64_t at) { return float8_value(DType::e4m3, static_cast<uint8_t>(0x30 + at)); }
double e8m0_scale(int64_t at) { return std::exp2(0x30 + static_cast<double>(at) - 127); }

/// A file whose q and k are the same codes with these scales.
CallFile call_of(const std::string& type, const std::string& bytes, const std::string& scale_type,
                 int64_t channels, int version = 2) {
  const int64_t blocks = kChannels / channels;
  // Of F4 shapes count codes.
  const auto width = static_cast<int64_t>(bytes.size()) / kTokens * (type == "F4" ? 2 : 1);
  CallFile call;
  call.version(version);
  for (const std::string name : {"q", "k"}) {
    call.tensor(name, type, {1, 1, kTokens, width}, bytes);
    call.tensor(name + "_scale", scale_type, {1, 1, kTokens, blocks}, scale_bytes(blocks));
  }
  return call;
}

Capture opened(const TemporaryFolder& folder, const CallFile& call,
               const FactOverrides& overrides = {}) {
  call.write(folder / "call.safetensors");
  return Capture::open(folder / "call.safetensors", overrides);
}

std::string refused_call(const CallFile& call, ErrorCode code,
                         const std::vector<std::string>& parts,
                         const FactOverrides& overrides = {}) {
  const TemporaryFolder folder;
  return refused([&] { (void)opened(folder, call, overrides); }, code, parts);
}

/// How many of q's values are not code · scale · factor.
int64_t wrong_values(const Capture& capture, int64_t channels, double (*scale)(int64_t),
                     double factor = 1) {
  const HeadTensor& q = capture.calls().front().problem->q();
  REQUIRE(q.width() == kChannels);
  REQUIRE(q.dtype() == DType::f32);
  std::vector<float> rows(static_cast<size_t>(kTokens * kChannels));
  q.read_rows(0, 0, {0, kTokens}, reinterpret_cast<std::byte*>(rows.data()));
  int64_t wrong = 0;
  for (int64_t i = 0; i < kTokens * kChannels; ++i) {
    const int64_t token = i / kChannels, c = i % kChannels;
    const double exact = static_cast<double>(e2m1_value(code_of(token, c))) *
                         scale(token * (kChannels / channels) + c / channels) * factor;
    wrong += rows[static_cast<size_t>(i)] == static_cast<float>(exact) ? 0 : 1;
  }
  return wrong;
}

FactOverrides told(const std::string& type) {
  FactOverrides overrides;
  overrides.q_dtype = overrides.k_dtype = type;
  return overrides;
}

}  // namespace

TEST_CASE("codes of 4 bits are read with a scale each block of channels") {
  const TemporaryFolder folder;
  const Capture nvfp4 = opened(folder, call_of("F4", codes(true), "F8_E4M3", 16));
  CHECK(wrong_values(nvfp4, 16, e4m3_scale) == 0);
  CHECK(nvfp4.calls().front().codes[0] == "q: nvfp4 with a scale each 16 channels of a token");
  CHECK(nvfp4.calls().front().unknown_keys.empty());
  for (const std::string type : {"F8_E8M0", "U8"}) {
    const Capture mxfp4 = opened(folder, call_of("F4", codes(true), type, 32));
    CHECK(wrong_values(mxfp4, 32, e8m0_scale) == 0);
    CHECK(mxfp4.calls().front().codes[1] == "k: mxfp4 with a scale each 32 channels of a token");
  }
}

TEST_CASE("plain bytes are codes of 4 bits where that is told") {
  const TemporaryFolder folder;
  // Two codes a byte, and one as ml_dtypes has them; scales of nvfp4 may be bytes as well.
  for (const bool two : {true, false}) {
    for (const std::string type : {"F8_E4M3", "U8"}) {
      const Capture capture = opened(folder, call_of("U8", codes(two), type, 16), told("nvfp4"));
      CHECK(wrong_values(capture, 16, e4m3_scale) == 0);
    }
    CHECK(wrong_values(opened(folder, call_of("U8", codes(two), "U8", 32), told("mxfp4")), 32,
                       e8m0_scale) == 0);
  }
  const CallFile high = call_of("U8", codes(true, false), "F8_E4M3", 16)
                            .fact("q_dtype", "nvfp4")
                            .fact("k_dtype", "nvfp4")
                            .fact("nibbles", "high-first");
  CHECK(wrong_values(opened(folder, high), 16, e4m3_scale) == 0);
}

TEST_CASE("8-bit codes with bytes for scales are MXFP8") {
  const TemporaryFolder folder;
  const Capture capture = opened(folder, call_of("F8_E4M3", codes(false), "F8_E8M0", 32));
  CHECK(capture.calls().front().codes[0] ==
        "q: mxfp8 e4m3 with a scale each 32 channels of a token");
  CHECK(capture.calls().front().recorded_dtype() == DType::e4m3);
  std::vector<float> row(static_cast<size_t>(kChannels));
  capture.calls().front().problem->q().read_rows(0, 0, {2, 3},
                                                 reinterpret_cast<std::byte*>(row.data()));
  for (int64_t c = 0; c < kChannels; ++c) {
    const double exact =
        static_cast<double>(float8_value(DType::e4m3, code_of(2, c))) * e8m0_scale(2 * 2 + c / 32);
    CHECK(row[static_cast<size_t>(c)] == static_cast<float>(exact));
  }
}

TEST_CASE("nvfp4 has a scale of the whole tensor beside the others") {
  const TemporaryFolder folder;
  const auto call = [] { return call_of("F4", codes(true), "F8_E4M3", 16); };
  CHECK(wrong_values(opened(folder, call().tensor("q_scale_2", "F32", {1}, raw<float>({0.375f}))),
                     16, e4m3_scale, 0.375) == 0);
  CHECK(wrong_values(opened(folder, call().fact("q_scale_2", "0.375")), 16, e4m3_scale, 0.375) ==
        0);
  // compressed-tensors divides by its own.
  const CallFile dump = call_of("F4", codes(true), "F8_E4M3", 16, 0)
                            .tensor("q_global_scale", "F32", {}, raw<float>({4}));
  const Capture divided = opened(folder, dump);
  CHECK(wrong_values(divided, 16, e4m3_scale, 0.25) == 0);
  CHECK(divided.calls().front().codes[0] ==
        "q: nvfp4 with a scale each 16 channels of a token, all divided by 4");
  CHECK(divided.calls().front().unknown_keys.empty());
  CHECK(refused_call(call().tensor("q_scale_2", "F32", {2}, raw<float>({1, 2})), ErrorCode::file,
                     {"q_scale_2", "expected one number", "got [2]"}) == "");
  CHECK(refused_call(call().tensor("q_scale_2", "F32", {1}, raw<float>({1})).fact("q_scale_2", "2"),
                     ErrorCode::file, {"q_scale_2", "is 2", "is there too"}) == "");
  for (const float bad : {0.0f, std::numeric_limits<float>::infinity()}) {
    const CallFile zero = call_of("F4", codes(true), "F8_E4M3", 16, 0)
                              .tensor("k_global_scale", "F32", {1}, raw<float>({bad}));
    CHECK(refused_call(zero, ErrorCode::file, {"k_global_scale", "finite number other than 0"}) ==
          "");
  }
  CallFile plain;
  plain.version(2).pair({1, 1, 2, 2}, {1, 1, 2, 2}).tensor("k_scale_2", "F32", {1});
  CHECK(refused_call(plain, ErrorCode::file, {"k_scale_2", "second scale of k", "nvfp4 alone"}) ==
        "");
}

TEST_CASE("one number is no scale of codes of 4 bits, nor is it beside a tensor") {
  CallFile bare;
  bare.version(2).tensor("q", "U8", {1, 1, kTokens, kChannels / 2}, codes(true));
  bare.tensor("k", "U8", {1, 1, kTokens, kChannels / 2}, codes(true));
  FactOverrides number = told("nvfp4");
  number.q_scale = "0.5";
  CHECK(refused_call(bare, ErrorCode::usage, {"tensor q", "codes of 4 bits without scales"},
                     number) == "");
  CHECK(refused_call(call_of("F4", codes(true), "F8_E4M3", 16), ErrorCode::usage,
                     {"tensor q", "codes of 4 bits without scales"}, number) == "");
  CHECK(refused_call(call_of("F4", codes(true), "F8_E4M3", 16).fact("k_scale", "0.5"),
                     ErrorCode::file, {"k_scale", "is 0.5", "is there too"}) == "");
}

TEST_CASE("what is told of scales that are none is said to be of no use") {
  const TemporaryFolder folder;
  CallFile plain;
  plain.version(2).pair({1, 1, 2, 4}, {1, 1, 2, 4}).fact("q_block", "64").fact("k_scale", "2");
  plain.fact("scales", "sage-thread").fact("nibbles", "high-first");
  const Capture capture = opened(folder, plain);
  const std::vector<std::string>& notes = capture.notes();
  const auto told = [&](const std::string& part) {
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return note.find(part) != std::string::npos;
    });
  };
  CHECK(told("q_block 64, scales sage-thread, nibbles high-first are not used: q is f32"));
  CHECK(told("k_scale 2 is not used: k is f32"));
  // Another tensor has codes, which these are of.
  CallFile cache;
  cache.version(2).tensor("q", "F32", {1, 1, kTokens, kChannels});
  cache.tensor("k", "F4", {1, 1, kTokens, kChannels}, codes(true));
  cache.tensor("k_scale", "F8_E4M3", {1, 1, kTokens, 4}, scale_bytes(4));
  const Capture other = opened(folder, cache.fact("nibbles", "low-first"));
  for (const std::string& note : other.notes()) {
    CHECK(note.find("not used") == std::string::npos);
  }
}

TEST_CASE("two codes a byte do not pass for one where scales are of another format") {
  for (const std::string type : {"U8", "F4"}) {
    CHECK(refused_call(call_of(type, codes(true), "U8", 32), ErrorCode::file,
                       {"q_scale", "2 scales a token", "two in a byte", "expected 4"},
                       told("nvfp4")) == "");
  }
}

TEST_CASE("codes of 4 bits whose scales are missing or do not fit are refused") {
  CallFile bare;
  bare.version(2).tensor("q", "F4", {1, 1, kTokens, kChannels}, codes(true));
  bare.tensor("k", "F4", {1, 1, kTokens, kChannels}, codes(true));
  CHECK(refused_call(bare, ErrorCode::usage,
                     {"tensor q", "codes of 4 bits without scales", "--q-scale FILE[:KEY]"}) == "");
  CHECK(refused_call(call_of("F4", codes(true), "F8_E4M3", 32), ErrorCode::file,
                     {"q_scale", "[1, 1, 3, 2]", "16 channels", "[1, 1, 3, 4]"}) == "");
  CHECK(refused_call(call_of("U8", codes(true), "F8_E4M3", 32), ErrorCode::file,
                     {"q_scale", "exponents", "mxfp4", "got e4m3"}, told("mxfp4")) == "");
  CHECK(refused_call(call_of("U8", codes(true), "I8", 16), ErrorCode::file,
                     {"q_scale", "nvfp4", "got i8"}, told("nvfp4")) == "");
  CHECK(refused_call(call_of("U8", codes(true), "U8", 16), ErrorCode::usage,
                     {"bytes of no told type", "nvfp4 or mxfp4"}) == "");
  CHECK(refused_call(call_of("F4", codes(true), "F8_E4M3", 16).fact("q_block", "16"),
                     ErrorCode::file, {"q_block", "tokens share", "nvfp4"}) == "");
  CHECK(refused_call(call_of("F4", codes(true), "F8_E4M3", 16).fact("scales", "sage-thread"),
                     ErrorCode::file, {"scales", "tokens share"}) == "");
  CHECK(refused_call(call_of("F4", codes(true), "F8_E4M3", 16).fact("nibbles", "big"),
                     ErrorCode::file, {"nibbles", "low-first or high-first", "got big"}) == "");
  CHECK(refused_call(call_of("F4", codes(true), "F8_E4M3", 16, 1).fact("nibbles", "low-first"),
                     ErrorCode::file, {"nibbles", "attnscope-capture/2"}) == "");
  // As many as cuBLAS has for tiles of 128 tokens x 4 scales.
  CallFile swizzled;
  swizzled.version(2).tensor("k", "F4", {1, 1, kTokens, kChannels}, codes(true));
  swizzled.tensor("q", "F4", {1, 1, kTokens, kChannels}, codes(true));
  swizzled.tensor("q_scale", "F8_E4M3", {1, 1, 128, 4});
  CHECK(refused_call(swizzled, ErrorCode::file, {"q_scale", "cuBLAS's order", "token by token"}) ==
        "");
}
