#include "io/tensors/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/selection.h"
#include "core/tensor/fp4_tensor.h"
#include "io/files/json_types.h"
#include "io/tensors/file_tensor.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {
namespace {

// The format: 8 bytes little-endian header length, a JSON object of that length (tensor name →
// dtype, shape, data_offsets; __metadata__ → strings), then the tensors' bytes without holes.
// https://github.com/huggingface/safetensors#format

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kMaxSafetensorsHeaderBytes = 100'000'000;

/// Two codes of e2m1 a byte; its shapes count codes.
constexpr std::string_view kFp4 = "F4";

/// How the elements are read; of kFp4 those of the bytes.
std::optional<DType> safetensors_dtype(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, DType>, 19> kNames{
      {{"F64", DType::f64},
       {"F32", DType::f32},
       {"F16", DType::f16},
       {"BF16", DType::bf16},
       {"F8_E4M3", DType::e4m3},
       {"F8_E5M2", DType::e5m2},
       {"F8_E4M3FNUZ", DType::e4m3fnuz},
       {"F8_E5M2FNUZ", DType::e5m2fnuz},
       {kFp4, DType::u8},
       {"F8_E8M0", DType::u8},
       {"I64", DType::i64},
       {"I32", DType::i32},
       {"I16", DType::i16},
       {"I8", DType::i8},
       {"U64", DType::u64},
       {"U32", DType::u32},
       {"U16", DType::u16},
       {"U8", DType::u8},
       {"BOOL", DType::boolean}}};
  for (const auto& [known, dtype] : kNames) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

struct TensorEntry {
  std::string key;
  std::string type;            ///< as the file calls it
  std::optional<DType> dtype;  ///< none: a type that is not known, whose elements have no size
  std::vector<int64_t> shape;
  int64_t begin = 0;
  int64_t end = 0;
};

/// Reads and checks one file's header.
class HeaderReader {
 public:
  HeaderReader(const ByteSource& file, const std::string& name, const JsonLimits& limits)
      : file_(file), name_(name), limits_(limits) {}

  void read() {
    const int64_t length = header_length();
    std::string text(static_cast<size_t>(length), '\0');
    file_.read_at(kLengthBytes, std::as_writable_bytes(std::span(text)));
    data_begin_ = kLengthBytes + length;
    const Json header = parse_strict_json(text, name_, "header", limits_);
    if (!header.is_object()) {
      throw file_error(name_, "header",
                       std::string("expected a JSON object (got ") + header.type_name() + ")");
    }
    for (const auto& [key, value] : header.items()) {
      if (key == "__metadata__") {
        read_metadata(value);
      } else {
        tensors_.push_back(read_tensor(key, value));
      }
    }
    check_offsets();
  }

  int64_t data_begin() const { return data_begin_; }
  std::vector<TensorEntry>& tensors() { return tensors_; }
  std::map<std::string, std::string>& metadata() { return metadata_; }

 private:
  int64_t header_length() const {
    if (file_.size() < kLengthBytes) {
      throw file_error(
          name_, "header",
          "a safetensors file has at least 8 bytes (got " + std::to_string(file_.size()) + ")");
    }
    std::array<unsigned char, kLengthBytes> bytes;
    file_.read_at(0, std::as_writable_bytes(std::span(bytes)));
    uint64_t length = 0;
    for (size_t i = bytes.size(); i-- > 0;) length = length << 8 | bytes[i];
    const auto rest = static_cast<uint64_t>(file_.size() - kLengthBytes);
    if (length == 0) throw file_error(name_, "header", "its length is 0");
    if (length > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes) || length > rest) {
      throw file_error(
          name_, "header",
          "its length is too large (got " + std::to_string(length) + " bytes, limit " +
              std::to_string(std::min(rest, static_cast<uint64_t>(kMaxSafetensorsHeaderBytes))) +
              ")");
    }
    return static_cast<int64_t>(length);
  }

  void read_metadata(const Json& value) {
    if (!value.is_object())
      throw file_error(name_, "__metadata__", "expected an object of strings");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) {
        throw file_error(name_, "__metadata__: " + key,
                         std::string("expected a string (got ") + text.type_name() + ")");
      }
      metadata_[key] = text.get<std::string>();
    }
  }

  /// A non-negative whole number, as JSON integers are written.
  int64_t whole_number(const Json& value, const std::string& where) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
      throw file_error(name_, where,
                       "expected a whole number from 0 to 2^63-1 (got " + value.dump() + ")");
    }
    return value.get<int64_t>();
  }

  const Json& field(const Json& object, const char* key, const std::string& where) const {
    const auto found = object.find(key);
    if (found == object.end()) {
      throw file_error(name_, where, std::string("the field \"") + key + "\" is missing");
    }
    return *found;
  }

  TensorEntry read_tensor(const std::string& key, const Json& value) const {
    const std::string where = "tensor " + key;
    if (!value.is_object()) throw file_error(name_, where, "expected an object");
    for (const auto& [name, unused] : value.items()) {
      if (name != "dtype" && name != "shape" && name != "data_offsets") {
        throw file_error(name_, where, "has an unknown field \"" + name + "\"");
      }
    }
    TensorEntry entry;
    entry.key = key;
    const Json& dtype = field(value, "dtype", where);
    if (!dtype.is_string()) {
      throw file_error(name_, where, "unknown dtype (got " + dtype.dump() + ")");
    }
    entry.type = dtype.get<std::string>();
    entry.dtype = safetensors_dtype(entry.type);
    const Json& shape = field(value, "shape", where);
    if (!shape.is_array()) throw file_error(name_, where, "shape: expected a list");
    if (shape.size() > kMaxRank) {
      throw file_error(name_, where,
                       "shape: too many dimensions (got " + std::to_string(shape.size()) +
                           ", limit " + std::to_string(kMaxRank) + ")");
    }
    for (const Json& extent : shape) {
      entry.shape.push_back(whole_number(extent, where + ": shape"));
    }
    const Json& offsets = field(value, "data_offsets", where);
    if (!offsets.is_array() || offsets.size() != 2) {
      throw file_error(name_, where, "data_offsets: expected [begin, end]");
    }
    entry.begin = whole_number(offsets[0], where + ": data_offsets");
    entry.end = whole_number(offsets[1], where + ": data_offsets");
    if (entry.type == kFp4) take_pairs(entry);
    check_size(entry, where);
    return entry;
  }

  /// Makes the shape of pairs that of their bytes. An odd number of channels is of no type that is
  /// known.
  static void take_pairs(TensorEntry& entry) {
    if (entry.shape.empty() || entry.shape.back() % 2 != 0) {
      entry.dtype.reset();
    } else {
      entry.shape.back() /= 2;
    }
  }

  void check_size(const TensorEntry& entry, const std::string& where) const {
    if (entry.begin > entry.end) {
      throw file_error(name_, where,
                       "data_offsets run backwards (got " + std::to_string(entry.begin) + " to " +
                           std::to_string(entry.end) + ")");
    }
    const int64_t data_bytes = file_.size() - data_begin_;
    if (entry.end > data_bytes) {
      throw file_error(name_, where,
                       "its data lie beyond the end of the file (got end " +
                           std::to_string(entry.end) + ", limit " + std::to_string(data_bytes) +
                           ")");
    }
    if (!entry.dtype) return;
    const auto count = checked_count(entry.shape);
    const auto bytes = count ? checked_mul(*count, dtype_bytes(*entry.dtype)) : std::nullopt;
    if (!bytes) {
      throw file_error(name_, where, "the shape " + shape_text(entry.shape) + " overflows");
    }
    if (*bytes != entry.end - entry.begin) {
      throw file_error(name_, where,
                       "shape " + shape_text(entry.shape) + " of " +
                           std::string(dtype_name(*entry.dtype)) + " takes " +
                           std::to_string(*bytes) + " bytes (got " +
                           std::to_string(entry.end - entry.begin) + ")");
    }
  }

  /// The tensors must cover the rest of the file once, without holes.
  void check_offsets() {
    std::vector<const TensorEntry*> order;
    for (const TensorEntry& entry : tensors_) order.push_back(&entry);
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
    });
    int64_t at = 0;
    for (const TensorEntry* entry : order) {
      if (entry->begin != at) {
        throw file_error(name_, "tensor " + entry->key,
                         std::string(entry->begin < at ? "overlaps the one before it"
                                                       : "leaves a hole before it") +
                             " (got begin " + std::to_string(entry->begin) + ", expected " +
                             std::to_string(at) + ")");
      }
      at = entry->end;
    }
    const int64_t data_bytes = file_.size() - data_begin_;
    if (at != data_bytes) {
      throw file_error(name_, "data",
                       "the tensors do not cover it (got " + std::to_string(at) + " of " +
                           std::to_string(data_bytes) + " bytes)");
    }
  }

  const ByteSource& file_;
  const std::string name_;
  const JsonLimits limits_;
  int64_t data_begin_ = 0;
  std::vector<TensorEntry> tensors_;
  std::map<std::string, std::string> metadata_;
};

class SafetensorsFile : public TensorFile {
 public:
  SafetensorsFile(std::shared_ptr<const ByteSource> file, const std::filesystem::path& name,
                  const JsonLimits& limits)
      : TensorFile(name), file_(std::move(file)) {
    HeaderReader reader(*file_, name.string(), limits);
    reader.read();
    data_begin_ = reader.data_begin();
    tensors_ = std::move(reader.tensors());
    metadata_ = std::move(reader.metadata());
    std::stable_sort(tensors_.begin(), tensors_.end(),
                     [](const auto& a, const auto& b) { return a.begin < b.begin; });
  }

  std::vector<std::string> keys() const override {
    std::vector<std::string> names;
    for (const TensorEntry& entry : tensors_) names.push_back(entry.key);
    return names;
  }

  std::shared_ptr<const TensorSource> tensor(const std::string& key) const override {
    for (const TensorEntry& entry : tensors_) {
      if (entry.key != key) continue;
      if (!entry.dtype) throw unknown_type(*this, key, "\"" + entry.type + "\"");
      auto tensor = std::make_shared<FileTensor>(
          file_, path().string() + ": tensor " + key,
          FileTensorLayout{
              .dtype = *entry.dtype, .shape = entry.shape, .offset = data_begin_ + entry.begin});
      if (entry.type == kFp4) return std::make_shared<Fp4Bytes>(std::move(tensor), std::nullopt);
      return tensor;
    }
    throw missing_tensor(*this, key);
  }

  const std::map<std::string, std::string>& metadata() const override { return metadata_; }

 private:
  std::shared_ptr<const ByteSource> file_;
  int64_t data_begin_ = 0;
  std::vector<TensorEntry> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace

std::shared_ptr<const TensorFile> read_safetensors(std::shared_ptr<const ByteSource> bytes,
                                                   const std::filesystem::path& name,
                                                   const JsonLimits& limits) {
  return std::make_shared<SafetensorsFile>(std::move(bytes), name, limits);
}

}  // namespace attnscope
