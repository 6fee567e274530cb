#include "io/tensors/npy.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <optional>
#include <string>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/files/input_file.h"
#include "io/files/utf8.h"
#include "io/tensors/file_tensor.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {
namespace {

// The format: "\x93NUMPY", major, minor, header length (2 bytes in version 1, 4 in 2 and 3), a
// Python dictionary literal with descr, fortran_order and shape, then the data.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

constexpr std::array<unsigned char, 6> kMagic{0x93, 'N', 'U', 'M', 'P', 'Y'};
constexpr int64_t kMaxNpyHeaderBytes = 1 << 20;

struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

/// Reads the dictionary literal: nothing but the three known keys with literal values.
class DictParser {
 public:
  DictParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  NpyHeader parse() {
    NpyHeader header;
    bool have_descr = false, have_order = false, have_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string_literal();
      expect(':');
      bool* seen = key == "descr"           ? &have_descr
                   : key == "fortran_order" ? &have_order
                   : key == "shape"         ? &have_shape
                                            : nullptr;
      if (seen == nullptr) fail("has an unknown key \"" + key + "\"");
      if (*seen) fail("has the key \"" + key + "\" twice");
      *seen = true;
      if (key == "descr") header.descr = descr_literal();
      if (key == "fortran_order") header.fortran_order = bool_literal();
      if (key == "shape") header.shape = tuple_literal();
      if (!accept(',') && peek() != '}') fail("expected ',' or '}'");
    }
    skip_space();
    if (at_ != text_.size()) fail("has text after the dictionary");
    if (!have_descr) fail("lacks the key \"descr\"");
    if (!have_order) fail("lacks the key \"fortran_order\"");
    if (!have_shape) fail("lacks the key \"shape\"");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw file_error(file_, "header, byte " + std::to_string(at_), what);
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "'");
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  std::string string_literal() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("expected a string");
    const size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos) fail("a string does not end");
    const std::string value(text_.substr(at_, end - at_));
    for (char c : value) {
      if (static_cast<unsigned char>(c) < 0x20 || c == '\\') fail("a string has odd characters");
    }
    at_ = end + 1;
    return value;
  }

  std::string descr_literal() {
    if (peek() == '[') fail("structured dtypes are not supported");
    return string_literal();
  }

  bool bool_literal() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    fail("fortran_order: expected True or False");
  }

  std::vector<int64_t> tuple_literal() {
    if (peek() != '(') fail("shape: expected a tuple");
    expect('(');
    std::vector<int64_t> shape;
    while (!accept(')')) {
      if (peek() == '-') fail("shape: a dimension is negative");
      if (std::isdigit(static_cast<unsigned char>(peek())) == 0) fail("shape: expected a number");
      std::optional<int64_t> value = 0;
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
        value = checked_mul(*value, 10);
        if (value) value = checked_add(*value, text_[at_] - '0');
        if (!value) fail("shape: a dimension is too large");
        ++at_;
      }
      shape.push_back(*value);
      if (shape.size() > kMaxRank) fail("shape: more than 64 dimensions");
      if (accept(',')) continue;
      if (peek() != ')') fail("shape: expected ',' or ')'");
      if (shape.size() == 1) fail("shape: expected a tuple");
    }
    return shape;
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
};

/// "<f4" → f32, little-endian.
FileTensorLayout element_layout(const std::string& descr, const std::string& file) {
  constexpr std::array<std::pair<std::string_view, DType>, 12> kTypes{{{"f8", DType::f64},
                                                                       {"f4", DType::f32},
                                                                       {"f2", DType::f16},
                                                                       {"i8", DType::i64},
                                                                       {"i4", DType::i32},
                                                                       {"i2", DType::i16},
                                                                       {"i1", DType::i8},
                                                                       {"u8", DType::u64},
                                                                       {"u4", DType::u32},
                                                                       {"u2", DType::u16},
                                                                       {"u1", DType::u8},
                                                                       {"b1", DType::boolean}}};
  FileTensorLayout layout;
  for (const auto& [name, dtype] : kTypes) {
    if (descr.size() != 3 || descr.substr(1) != name) continue;
    const bool single = dtype_bytes(dtype) == 1;
    const bool order = descr[0] == '<' || descr[0] == '>' || (single && descr[0] == '|');
    if (!order) break;
    layout.dtype = dtype;
    layout.big_endian = descr[0] == '>';
    return layout;
  }
  // ml_dtypes' types are void to NumPy: of two bytes bfloat16 alone; of one byte several, between
  // which only the user can tell (--q-dtype); float8_e5m2 calls itself a float of one byte.
  if (descr == "|V2" || descr == "<V2") return {.dtype = DType::bf16};
  if (descr == "|V1" || descr == "<V1") return {.dtype = DType::u8};
  if (descr == "<f1" || descr == "|f1") return {.dtype = DType::e5m2};
  throw file_error(file, "header", "the dtype '" + descr + "' is not supported");
}

/// The offset and length of the dictionary.
std::pair<int64_t, int64_t> header_place(const ByteSource& file, const std::string& name) {
  std::array<unsigned char, 12> start{};
  if (file.size() < 10) {
    throw file_error(name, "header",
                     "a .npy file has at least 10 bytes (got " + std::to_string(file.size()) + ")");
  }
  const auto have = static_cast<size_t>(std::min<int64_t>(file.size(), start.size()));
  file.read_at(0, std::as_writable_bytes(std::span(start)).first(have));
  if (!std::equal(kMagic.begin(), kMagic.end(), start.begin())) {
    throw file_error(name, "header", "it does not start with \\x93NUMPY");
  }
  const int major = start[6];
  if (major < 1 || major > 3) {
    throw file_error(name, "header", "unknown version " + std::to_string(major) + " (1 to 3)");
  }
  const int64_t prefix = major == 1 ? 10 : 12;
  int64_t length = start[8] | start[9] << 8;
  if (major > 1)
    length |= static_cast<int64_t>(start[10]) << 16 | static_cast<int64_t>(start[11]) << 24;
  const int64_t limit = std::min(kMaxNpyHeaderBytes, std::max<int64_t>(0, file.size() - prefix));
  if (length > limit) {
    throw file_error(name, "header",
                     "its length is too large (got " + std::to_string(length) + " bytes, limit " +
                         std::to_string(limit) + ")");
  }
  return {prefix, length};
}

/// The header, and where the data begin.
std::pair<NpyHeader, int64_t> read_header(const ByteSource& file, const std::string& name) {
  const auto [prefix, length] = header_place(file, name);
  std::string text(static_cast<size_t>(length), '\0');
  file.read_at(prefix, std::as_writable_bytes(std::span(text)));
  if (!valid_utf8(text)) throw file_error(name, "header", "is no valid UTF-8");
  return {DictParser(text, name).parse(), prefix + length};
}

/// NumPy's strings: bytes, or characters of 4 bytes; zeros fill them up.
std::string string_of(const std::string& descr, const std::string& data) {
  std::string text;
  const bool is_wide = descr[1] == 'U';
  for (size_t i = 0; i + (is_wide ? 4 : 1) <= data.size(); i += is_wide ? 4 : 1) {
    uint32_t c = 0;
    for (size_t byte = 0; byte < (is_wide ? 4 : 1); ++byte) {
      const size_t place = descr[0] == '>' ? 3 - byte : byte;
      c |= static_cast<uint32_t>(static_cast<unsigned char>(data[i + (is_wide ? place : 0)]))
           << 8 * byte;
    }
    if (c == 0) break;
    if (is_wide) {
      append_character(c, text);
    } else {
      text.push_back(static_cast<char>(c));
    }
  }
  return text;
}

/// True where pickled objects end as an array of the one object None does: with False and [None],
/// which it is built of, in the protocol that NumPy writes since 2.0, or the one before.
bool ends_with_none(const std::string& pickle) {
  if (pickle.ends_with("\x89]\x94Nat\x94"
                       "b."))
    return true;
  constexpr std::string_view kPattern("\x89]q?Natq?b.");
  if (pickle.size() < kPattern.size()) return false;
  return std::equal(kPattern.begin(), kPattern.end(), pickle.end() - kPattern.size(),
                    [](char expected, char got) { return expected == '?' || expected == got; });
}

class NpyFile : public TensorFile {
 public:
  NpyFile(std::shared_ptr<const ByteSource> bytes, const std::filesystem::path& name)
      : TensorFile(name), tensor_(read_npy(std::move(bytes), name.string())) {}
  std::vector<std::string> keys() const override { return {""}; }
  std::shared_ptr<const TensorSource> tensor(const std::string& key) const override {
    if (key.empty()) return tensor_;
    throw file_error(path().string(), "tensor " + key,
                     "a .npy file holds one array without a name");
  }
  const std::map<std::string, std::string>& metadata() const override { return metadata_; }

 private:
  std::shared_ptr<const TensorSource> tensor_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace

std::shared_ptr<const TensorSource> read_npy(std::shared_ptr<const ByteSource> file,
                                             const std::string& name) {
  auto [header, data] = read_header(*file, name);
  FileTensorLayout layout = element_layout(header.descr, name);
  layout.shape = header.shape;
  layout.offset = data;
  const auto count = checked_count(layout.shape);
  const auto bytes = count ? checked_mul(*count, dtype_bytes(layout.dtype)) : std::nullopt;
  if (!bytes)
    throw file_error(name, "header", "the shape " + shape_text(layout.shape) + " overflows");
  if (*bytes != file->size() - layout.offset) {
    throw file_error(name, "data",
                     "shape " + shape_text(layout.shape) + " of " +
                         std::string(dtype_name(layout.dtype)) + " takes " +
                         std::to_string(*bytes) + " bytes (got " +
                         std::to_string(file->size() - layout.offset) + ")");
  }
  if (header.fortran_order) {
    std::reverse(header.shape.begin(), header.shape.end());
    layout.strides = packed_strides(header.shape);
    std::reverse(layout.strides.begin(), layout.strides.end());
  }
  return std::make_shared<FileTensor>(std::move(file), name, std::move(layout));
}

std::optional<std::string> npy_text(const ByteSource& file, const std::string& name) {
  const auto [header, begin] = read_header(file, name);
  const std::string& descr = header.descr;
  const bool is_string = descr.size() > 2 && (descr[1] == 'U' || descr[1] == 'S');
  if ((!is_string && descr != "|O") || checked_count(header.shape) != 1) return std::nullopt;
  std::string data(static_cast<size_t>(file.size() - begin), '\0');
  file.read_at(begin, std::as_writable_bytes(std::span(data)));
  if (is_string) return string_of(descr, data);
  return ends_with_none(data) ? std::optional<std::string>("None") : std::nullopt;
}

std::shared_ptr<const TensorFile> open_npy(const std::filesystem::path& path) {
  return open_npy(std::make_shared<InputFile>(path), path);
}

std::shared_ptr<const TensorFile> open_npy(std::shared_ptr<const ByteSource> bytes,
                                           const std::filesystem::path& name) {
  return std::make_shared<NpyFile>(std::move(bytes), name);
}

}  // namespace attnscope
