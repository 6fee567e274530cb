#include <algorithm>
#include <numeric>

#include "io/tensors/open_tensor_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::string dict(const std::string& descr, const std::string& shape,
                 const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

std::string reversed_elements(std::string bytes, size_t element) {
  for (size_t i = 0; i + element <= bytes.size(); i += element) {
    std::reverse(bytes.begin() + static_cast<int64_t>(i),
                 bytes.begin() + static_cast<int64_t>(i + element));
  }
  return bytes;
}

}  // namespace

TEST_CASE("npy: versions, byte orders and element orders give the same values") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.npy";
  std::vector<float> values(2 * 3 * 5);
  std::iota(values.begin(), values.end(), 0.5f);
  std::vector<float> fortran(values.size());
  for (size_t a = 0; a < 2; ++a) {
    for (size_t b = 0; b < 3; ++b) {
      for (size_t c = 0; c < 5; ++c) fortran[a + 2 * (b + 3 * c)] = values[(a * 3 + b) * 5 + c];
    }
  }
  const std::string little = raw(values);
  const std::vector<std::string> files{
      npy_bytes(dict("<f4", "(2, 3, 5)"), little, 1),
      npy_bytes(dict("<f4", "(2, 3, 5)"), little, 2),
      npy_bytes(dict("<f4", "(2, 3, 5)"), little, 3),
      npy_bytes(dict(">f4", "(2, 3, 5)"), reversed_elements(little, 4)),
      npy_bytes(dict("<f4", "(2, 3, 5)", "True"), raw(fortran)),
      npy_bytes(dict(">f4", "(2,3,5,)", "True"), reversed_elements(raw(fortran), 4)),
  };
  for (size_t i = 0; i < files.size(); ++i) {
    INFO("file " << i);
    write_bytes(path, files[i]);
    const auto tensor = open_tensor_file(path)->tensor("");
    CHECK(tensor->dtype() == DType::f32);
    CHECK(read_all<float>(*tensor) == values);
    CHECK(read_values<float>(*tensor, {1, 1, 2}, {1, 2, 2}) ==
          std::vector<float>{22.5f, 23.5f, 27.5f, 28.5f});
  }
}

TEST_CASE("npy: every element type is known") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.npy";
  const std::vector<std::pair<std::string, DType>> types{
      {"<f8", DType::f64}, {"<f2", DType::f16}, {"<i8", DType::i64},    {"<i4", DType::i32},
      {"<i2", DType::i16}, {"|i1", DType::i8},  {"<u8", DType::u64},    {"<u4", DType::u32},
      {"<u2", DType::u16}, {"|u1", DType::u8},  {"|b1", DType::boolean}};
  for (const auto& [descr, dtype] : types) {
    INFO(descr);
    write_bytes(path, npy_bytes(dict(descr, "(2,)"),
                                std::string(static_cast<size_t>(2 * dtype_bytes(dtype)), '\1')));
    CHECK(open_tensor_file(path)->tensor("")->dtype() == dtype);
  }
  write_bytes(path, npy_bytes(dict("<f4", "()"), raw<float>({3})));
  CHECK(read_all<float>(*open_tensor_file(path)->tensor("")) == std::vector<float>{3});
  write_bytes(path, npy_bytes(dict("<f4", "(0, 4)"), ""));
  CHECK(read_all<float>(*open_tensor_file(path)->tensor("")).empty());
}

TEST_CASE("npy: a long Fortran axis is read in bounded pieces with the right values") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.npy";
  constexpr size_t kRows = 100'000;
  std::vector<double> values(kRows * 2);
  std::iota(values.begin(), values.end(), 0.0);  // Fortran order: element (r, c) is r + kRows·c
  write_bytes(path, npy_bytes(dict("<f8", "(100000, 2)", "True"), raw(values)));
  const auto got = read_values<double>(*open_tensor_file(path)->tensor(""), {1, 0}, {99'998, 2});
  bool equal = true;
  for (size_t r = 0; r < 99'998; ++r) {
    equal &= got[2 * r] == static_cast<double>(r + 1);
    equal &= got[2 * r + 1] == static_cast<double>(r + 1 + kRows);
  }
  CHECK(equal);
}

TEST_CASE("npy: malformed files are refused in one line that names the place") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "bad.npy";
  const std::string data = raw<float>({1, 2});
  const auto with = [&](const std::string& text) { return npy_bytes(text, data); };
  std::string rank65 = "(";
  for (int i = 0; i < 65; ++i) rank65 += "1,";
  std::string long_header = npy_bytes("", "", 2);
  for (size_t i = 8; i < 12; ++i) long_header[i] = '\xff';
  struct Case {
    std::string what;
    std::string bytes;
    std::string part;
  };
  const std::vector<Case> cases{
      {"bad magic", "\x93NUMPX" + with(dict("<f4", "(2,)")).substr(6), "NUMPY"},
      {"9 bytes", "\x93NUMPY\1\0\0", "at least 10 bytes"},
      {"version 4", npy_bytes(dict("<f4", "(2,)"), data, 4), "version"},
      {"version 0", npy_bytes(dict("<f4", "(2,)"), data, 0), "version"},
      {"header beyond the file", with(dict("<f4", "(2,)")).substr(0, 20), "too large"},
      {"4 GiB header", long_header, "too large"},
      {"not a dictionary", with("[1, 2]"), "expected '{'"},
      {"code", with("{'descr': __import__('os'), }"), "expected a string"},
      {"NUL", with(std::string("{'descr': '<f4'\0}", 17)), "expected"},
      {"bad UTF-8", with("{'descr': '\xff'}"), "UTF-8"},
      {"missing key", with("{'descr': '<f4', 'fortran_order': False}"), "shape"},
      {"missing descr", with("{'fortran_order': False, 'shape': (2,)}"), "lacks the key \"descr\""},
      {"missing order", with("{'descr': '<f4', 'shape': (2,)}"), "lacks the key \"fortran_order\""},
      {"NUL in a string", with(std::string("{'descr': '<f4\0', 'x': 1}", 24)), "odd characters"},
      {"extra key", with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}"), "x"},
      {"duplicate key", with("{'descr': '<f4', 'descr': '<f4'}"), "twice"},
      {"fortran_order 1", with("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}"), "True"},
      {"shape is a list", with(dict("<f4", "[2]")), "tuple"},
      {"shape is a number in brackets", with(dict("<f4", "(2)")), "tuple"},
      {"negative shape", with(dict("<f4", "(-2,)")), "negative"},
      {"rank 65", with(dict("<f4", rank65 + ")")), "64"},
      {"shape overflows", with(dict("<f4", "(4294967296, 4294967296, 4)")), "overflows"},
      {"bytes overflow", with(dict("<f8", "(2305843009213693952,)")), "overflows"},
      {"fractional shape", with(dict("<f4", "(2.0,)")), "expected ',' or ')'"},
      {"shape is None", with(dict("<f4", "None")), "tuple"},
      {"dimension overflows", with(dict("<f4", "(99999999999999999999,)")), "too large"},
      {"object dtype", with(dict("|O", "(2,)")), "not supported"},
      {"structured dtype", with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"),
       "structured"},
      {"string dtype", with(dict("<U4", "(2,)")), "not supported"},
      {"date dtype", with(dict("<M8[ns]", "(1,)")), "not supported"},
      {"no byte order", with(dict("f4", "(2,)")), "not supported"},
      {"short data", with(dict("<f4", "(3,)")), "takes 12"},
      {"long data", with(dict("<f4", "(1,)")), "takes 4"},
      {"text after the dictionary", with(dict("<f4", "(2,)") + "x"), "after"},
      {"empty", "", "at least"},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    write_bytes(path, c.bytes);
    const std::string text = thrown_text(ErrorCode::file, [&] { open_tensor_file(path); });
    INFO(text);
    CHECK(text.rfind(path.string() + ": ", 0) == 0);
    CHECK(text.find(c.part) != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
  }
}

TEST_CASE("files of other kinds are told apart") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.bin";
  const std::vector<std::pair<std::string, std::string>> kinds{
      {std::string("PK\3\4") + std::string(20, ' '), "zip"},
      {"\x89HDF\r\n\x1a\n and more", "cannot be opened as HDF5"},
      {"just some text in a file", "is no safetensors"}};
  for (const auto& [bytes, part] : kinds) {
    write_bytes(path, bytes);
    const std::string text = thrown_text(ErrorCode::file, [&] { open_tensor_file(path); });
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(thrown_text(ErrorCode::file, [&] {
          open_tensor_file(folder.path());
        }).find("no regular file") != std::string::npos);
  CHECK(thrown_text(ErrorCode::file, [&] {
          open_tensor_file(folder.path() / "none");
        }).find("cannot be opened") != std::string::npos);
}
