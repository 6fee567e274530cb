#include <algorithm>
#include <numeric>

#include "core/tensor/fp4_tensor.h"
#include "io/tensors/open_tensor_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::string tensor_json(const std::string& name, const std::string& dtype, const std::string& shape,
                        int64_t begin, int64_t end) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape +
         R"(,"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

const std::string kGood = "{" + tensor_json("q", "F32", "[2]", 0, 8) + "}";

}  // namespace

TEST_CASE("safetensors: every dtype, metadata and names are read") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  const std::vector<std::pair<std::string, DType>> dtypes{
      {"F64", DType::f64},     {"F32", DType::f32}, {"F16", DType::f16}, {"BF16", DType::bf16},
      {"I64", DType::i64},     {"I32", DType::i32}, {"I16", DType::i16}, {"I8", DType::i8},
      {"U64", DType::u64},     {"U32", DType::u32}, {"U16", DType::u16}, {"U8", DType::u8},
      {"BOOL", DType::boolean}};
  std::string header = R"({"__metadata__":{"a":"1","b":"x y"})";
  std::string data;
  for (const auto& [name, dtype] : dtypes) {
    const auto begin = static_cast<int64_t>(data.size());
    for (int64_t i = 0; i < 3 * dtype_bytes(dtype); ++i) data += static_cast<char>(data.size());
    header += "," + tensor_json(name, name, "[3]", begin, static_cast<int64_t>(data.size()));
  }
  write_bytes(path, safetensors_bytes(header + "}", data));
  const auto file = open_tensor_file(path);
  CHECK(file->metadata() == std::map<std::string, std::string>{{"a", "1"}, {"b", "x y"}});
  CHECK(file->keys().size() == dtypes.size());
  int64_t begin = 0;
  for (const auto& [name, dtype] : dtypes) {
    INFO(name);
    const auto tensor = file->tensor(name);
    CHECK(tensor->dtype() == dtype);
    std::string bytes(static_cast<size_t>(3 * dtype_bytes(dtype)), '\0');
    const int64_t zero = 0;
    tensor->read({&zero, 1}, tensor->shape(), reinterpret_cast<std::byte*>(bytes.data()));
    CHECK(bytes == data.substr(static_cast<size_t>(begin), bytes.size()));
    begin += static_cast<int64_t>(bytes.size());
  }
  const std::string text = thrown_text(ErrorCode::file, [&] { file->tensor("F33"); });
  CHECK(text.find("did you mean F3") != std::string::npos);
}

TEST_CASE("safetensors: boxes of any shape have the right values") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  // [2, 300, 5, 7]: rows of one head of a [B, S, H, D] tensor are read in windows.
  const std::vector<int64_t> shape{2, 300, 5, 7};
  std::vector<float> values(2 * 300 * 5 * 7);
  std::iota(values.begin(), values.end(), 0.0f);
  write_bytes(path, safetensors_bytes("{" + tensor_json("x", "F32", "[2,300,5,7]", 0, 84000) + "}",
                                      raw(values)));
  const auto tensor = open_tensor_file(path)->tensor("x");
  CHECK(read_all<float>(*tensor) == values);
  uint32_t state = 1;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<int64_t> begin, count;
    for (int64_t extent : shape) {
      state = state * 1664525 + 1013904223;
      begin.push_back(state >> 8 & 0xffff ? (state >> 8) % static_cast<uint32_t>(extent) : 0);
      state = state * 1664525 + 1013904223;
      count.push_back(1 + (state >> 8) % static_cast<uint32_t>(extent - begin.back()));
    }
    const auto got = read_values<float>(*tensor, begin, count);
    size_t at = 0;
    bool equal = true;
    for (int64_t a = 0; a < count[0]; ++a) {
      for (int64_t b = 0; b < count[1]; ++b) {
        for (int64_t c = 0; c < count[2]; ++c) {
          for (int64_t d = 0; d < count[3]; ++d) {
            const int64_t index =
                (((begin[0] + a) * 300 + begin[1] + b) * 5 + begin[2] + c) * 7 + begin[3] + d;
            equal &= got[at++] == static_cast<float>(index);
          }
        }
      }
    }
    INFO("trial " << trial);
    REQUIRE(equal);
  }
}

TEST_CASE("safetensors: every head of [B, S, H, D] is read alone") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  // A row of 40 heads of 3 is far longer than what is wanted of it: rows are read one by one.
  std::vector<uint16_t> values(2 * 31 * 40 * 3);
  std::iota(values.begin(), values.end(), uint16_t{0});
  write_bytes(path, safetensors_bytes("{" + tensor_json("x", "BF16", "[2,31,40,3]", 0, 14880) + "}",
                                      raw(values)));
  const auto tensor = open_tensor_file(path)->tensor("x");
  for (int64_t batch = 0; batch < 2; ++batch) {
    for (int64_t head = 0; head < 40; ++head) {
      const auto got = read_values<uint16_t>(*tensor, {batch, 4, head, 0}, {1, 20, 1, 3});
      std::vector<uint16_t> expected;
      for (int64_t row = 4; row < 24; ++row) {
        for (int64_t d = 0; d < 3; ++d) {
          expected.push_back(static_cast<uint16_t>(((batch * 31 + row) * 40 + head) * 3 + d));
        }
      }
      INFO("batch " << batch << " head " << head);
      REQUIRE(got == expected);
    }
  }
}

TEST_CASE("safetensors: rank 0, zero dimensions and white space are accepted") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  write_bytes(path, safetensors_bytes("  {" + tensor_json("scalar", "F32", "[]", 0, 4) + "," +
                                          tensor_json("none", "F32", "[3,0,2]", 4, 4) + "}\n   ",
                                      raw<float>({2.5f})));
  const auto file = open_tensor_file(path);
  CHECK(read_all<float>(*file->tensor("scalar")) == std::vector<float>{2.5f});
  CHECK(read_all<float>(*file->tensor("none")).empty());
}

TEST_CASE("safetensors: a header as long as a pickle's first bytes is no pickle") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  for (const size_t length : {0x280, 0x380, 0x480}) {  // 80 02, 80 03, 80 04 in the file
    std::string header = kGood;
    header.resize(length, ' ');
    write_bytes(path, safetensors_bytes(header, std::string(8, '\0')));
    CHECK(open_tensor_file(path)->keys() == std::vector<std::string>{"q"});
  }
}

TEST_CASE("safetensors: malformed files are refused in one line that names the place") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "bad.safetensors";
  const std::string eight(8, '\1');
  const auto with = [&](const std::string& header) { return safetensors_bytes(header, eight); };
  const auto length = [](uint64_t value) {
    std::string bytes;
    for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(value >> shift & 0xff);
    return bytes;
  };
  std::string nested = "{\"q\":";
  for (int i = 0; i < 10000; ++i) nested += "[";
  std::string rank65 = "[1";
  for (int i = 1; i < 65; ++i) rank65 += ",1";
  std::string many = "[0";
  for (int i = 0; i < 1 << 20; ++i) many += ",0";
  struct Case {
    std::string what;
    std::string bytes;
    std::string part;
  };
  const std::vector<Case> cases{
      {"empty", "", "at least 8 bytes"},
      {"7 bytes", "1234567", "at least 8 bytes"},
      {"length 0", length(0) + "{}", "length is 0"},
      {"length beyond the file", length(100) + "{}", "too large"},
      {"length above 100 MB", length(100'000'001) + "{}", "too large"},
      {"length 2^64-1", length(~uint64_t{0}) + "{}", "too large"},
      {"bad UTF-8", with("{\"\xff\":1}"), "JSON"},
      {"a name in overlong UTF-8", with("{" + tensor_json("\xc1\xb1", "F32", "[2]", 0, 8) + "}"),
       "JSON"},
      {"lone brace", with("{"), "JSON"},
      {"text after the JSON", with(kGood + "x"), "JSON"},
      {"array root", with("[1]"), "object"},
      {"nesting", with(nested), "nested deeper"},
      {"duplicate tensor",
       with("{" + tensor_json("q", "F32", "[1]", 0, 4) + "," +
            tensor_json("q", "F32", "[1]", 4, 8) + "}"),
       "twice"},
      {"duplicate inner key",
       with(R"({"q":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})"), "twice"},
      {"metadata number", with(R"({"__metadata__":{"a":1}})"), "string"},
      {"metadata list", with(R"({"__metadata__":[]})"), "object of strings"},
      {"dtype that is a number", with(R"({"q":{"dtype":4,"shape":[2],"data_offsets":[0,8]}})"),
       "unknown dtype (got 4)"},
      {"unknown dtype beyond the file", with("{" + tensor_json("q", "F4", "[64]", 0, 32) + "}"),
       "beyond"},
      {"unknown dtype that leaves a hole", with("{" + tensor_json("q", "F4", "[12]", 0, 6) + "}"),
       "do not cover"},
      {"missing offsets", with(R"({"q":{"dtype":"F32","shape":[2]}})"),
       "tensor q: the field \"data_offsets\" is missing"},
      {"missing shape", with(R"({"q":{"dtype":"F32","data_offsets":[0,8]}})"),
       "tensor q: the field \"shape\" is missing"},
      {"missing dtype", with(R"({"q":{"shape":[2],"data_offsets":[0,8]}})"),
       "tensor q: the field \"dtype\" is missing"},
      {"a tensor that is a list", with(R"({"q":[]})"), "tensor q: expected an object"},
      {"offsets of three", with(R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[0,4,8]}})"),
       "expected [begin, end]"},
      {"shape that is a number", with(R"({"q":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})"),
       "shape: expected a list"},
      {"unknown field", with(R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})"),
       "unknown field"},
      {"negative dimension", with("{" + tensor_json("q", "F32", "[-2]", 0, 8) + "}"),
       "whole number"},
      {"fractional dimension", with("{" + tensor_json("q", "F32", "[2.0]", 0, 8) + "}"),
       "whole number"},
      {"exponent dimension", with("{" + tensor_json("q", "F32", "[2e0]", 0, 8) + "}"),
       "whole number"},
      {"product overflows",
       with("{" + tensor_json("q", "F32", "[4294967296,4294967296,4]", 0, 8) + "}"), "overflows"},
      {"bytes overflow", with("{" + tensor_json("q", "F32", "[4611686018427387904]", 0, 8) + "}"),
       "overflows"},
      {"dimension beyond 64 bits",
       with("{" + tensor_json("q", "F32", "[18446744073709551617]", 0, 8) + "}"), "whole number"},
      {"rank 65", with("{" + tensor_json("q", "F64", rank65 + "]", 0, 8) + "}"), "limit 64"},
      {"a million values", with("{\"q\":" + many + "]}"), "too many values"},
      {"a long name", with("{" + tensor_json(std::string(100'000, 'x'), "F32", "[3]", 0, 8) + "}"),
       "takes 12"},
      {"a long string that does not end", with("{\"" + std::string(100'000, 'x')), "JSON: byte"},
      {"a name that is a terminal's command",
       with("{" + tensor_json("a\\n\\u001b[2J", "F32", "[3]", 0, 8) + "}"), "a\\n\\x1b[2J: shape"},
      {"begin after end", with("{" + tensor_json("q", "F32", "[2]", 8, 0) + "}"), "backwards"},
      {"end beyond the file", with("{" + tensor_json("q", "F32", "[4]", 0, 16) + "}"), "beyond"},
      {"overlap",
       with("{" + tensor_json("a", "F32", "[2]", 0, 8) + "," +
            tensor_json("b", "F32", "[1]", 4, 8) + "}"),
       "overlaps"},
      {"hole", with("{" + tensor_json("q", "F32", "[1]", 4, 8) + "}"), "hole"},
      {"trailing bytes", with("{" + tensor_json("q", "F32", "[1]", 0, 4) + "}"), "do not cover"},
      {"short buffer", safetensors_bytes(kGood, "1234"), "beyond"},
      {"shape and bytes differ", with("{" + tensor_json("q", "F32", "[3]", 0, 8) + "}"),
       "takes 12"},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    write_bytes(path, c.bytes);
    const std::string text = thrown_text(ErrorCode::file, [&] { open_tensor_file(path); });
    INFO(text);
    CHECK(text.rfind(path.string() + ": ", 0) == 0);
    CHECK(text.find(c.part) != std::string::npos);
    CHECK(std::none_of(text.begin(), text.end(), [](unsigned char byte) { return byte < ' '; }));
    CHECK(text.size() < 1300);
  }
}

TEST_CASE("safetensors: a type that nobody knows locks its own tensor alone") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  const auto json = [](const std::string& name, const std::string& type, const std::string& shape,
                       int begin, int end) { return tensor_json(name, type, shape, begin, end); };
  write_bytes(path, safetensors_bytes("{" + json("q", "F32", "[2]", 0, 8) + "," +
                                          json("w4", "F4", "[2,8]", 8, 16) + "," +
                                          json("w6", "F6_E2M3", "[8]", 16, 22) + "," +
                                          json("s", "F8_E8M0", "[2]", 22, 24) + "," +
                                          json("none", "C64", "[0]", 24, 24) + "}",
                                      raw<float>({1, 2}) + std::string(16, 'x')));
  const auto file = open_tensor_file(path);
  CHECK(file->keys().size() == 5);
  CHECK(read_all<float>(*file->tensor("q")) == std::vector<float>{1, 2});
  CHECK(thrown_text(ErrorCode::file, [&] { file->tensor("w6"); }) ==
        path.string() + ": tensor w6: unknown dtype (got \"F6_E2M3\")");
  // Codes of 4 bits are bytes of two, which say what they are; exponents are bytes.
  const auto w4 = file->tensor("w4");
  CHECK(as_fp4(*w4) != nullptr);
  CHECK(std::ranges::equal(w4->shape(), std::vector<int64_t>{2, 4}));
  CHECK(read_all<uint8_t>(*w4) == std::vector<uint8_t>(8, 'x'));
  CHECK(as_fp4(*file->tensor("s")) == nullptr);
  CHECK(read_all<uint8_t>(*file->tensor("s")) == std::vector<uint8_t>(2, 'x'));
  write_bytes(path, safetensors_bytes("{" + json("odd", "F4", "[2,3]", 0, 3) + "}", "abc"));
  CHECK(thrown_text(ErrorCode::file, [&] { open_tensor_file(path)->tensor("odd"); }) ==
        path.string() + ": tensor odd: unknown dtype (got \"F4\")");
}

TEST_CASE("safetensors: a file cut short while open is an error, not a crash") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  write_bytes(path, safetensors_bytes(kGood, raw<float>({1, 2})));
  const auto tensor = open_tensor_file(path)->tensor("q");
  std::filesystem::resize_file(path, 20);
  const std::string text = thrown_text(ErrorCode::file, [&] { read_all<float>(*tensor); });
  CHECK(text.find("cut short") != std::string::npos);
}

TEST_CASE("safetensors: a header above 100 MB is refused however large the file is") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  constexpr int64_t kLimit = 100'000'000;
  for (const int64_t length : {kLimit + 1, 2 * kLimit}) {
    std::string start;
    for (int shift = 0; shift < 64; shift += 8) start += static_cast<char>(length >> shift & 0xff);
    write_bytes(path, start + "{}");
    std::filesystem::resize_file(path, 300'000'000);  // a hole
    const std::string text = thrown_text(ErrorCode::file, [&] { open_tensor_file(path); });
    CHECK(text == path.string() + ": header: its length is too large (got " +
                      std::to_string(length) + " bytes, limit 100000000)");
  }
}
