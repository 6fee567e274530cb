#include "io/tensors/torch_file.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/tensor/fp4_tensor.h"
#include "io/files/json_types.h"
#include "io/tensors/file_tensor.h"
#include "io/tensors/recorded_values.h"
#include "io/tensors/torch_pickle.h"
#include "io/tensors/value_names.h"

namespace attnscope {
namespace {

// The format: a zip archive ROOT/data.pkl, ROOT/data/KEY (the storages), ROOT/byteorder.
// https://pytorch.org/docs/stable/notes/serialization.html

using Kind = TorchPickle::Kind;

constexpr int64_t kByteOrderBytes = 16;
constexpr int kMaxPickleDepth = 64;
/// Of a storage, where values are looked for first.
constexpr int64_t kFirstBytes = 64 << 10;
/// Bytes of a number, string or list as JSON, without its letters; and of a tensor, with its places
/// in lists, without its name and shape.
constexpr int64_t kPlainBytes = 64;
constexpr int64_t kTensorBytes = 512;

std::string root_of(const std::string& pickle_name) {
  return pickle_name.substr(0, pickle_name.size() - std::string_view("data.pkl").size());
}

bool is_pickle_name(const std::string& name) {
  return name == "data.pkl" || name.ends_with("/data.pkl");
}

/// True where all elements of a view, which begins at its `offset`, are among the first `count`.
bool fits_storage(const TorchTensor& view, int64_t count) {
  int64_t last = view.offset;
  for (size_t axis = 0; axis < view.shape.size(); ++axis) {
    if (view.shape[axis] == 0) return view.offset <= count;
    const auto reach = checked_mul(view.shape[axis] - 1, view.strides[axis]);
    const auto next = reach ? checked_add(last, *reach) : std::nullopt;
    if (!next) return false;
    last = *next;
  }
  return last < count;
}

class TorchFile : public TensorFile {
 public:
  explicit TorchFile(ZipFile zip)
      : TensorFile(zip.path()), zip_(std::move(zip)), memory_(zip_.head_memory()) {
    const ZipMember& member = find_pickle();
    root_ = root_of(member.name);
    has_checksums_ = member.crc != 0;
    check_byte_order();
    take_memory(member.bytes);
    const std::string bytes = read_text(member);
    pickle_ = read_torch_pickle(bytes, path().string(), memory_);
    for (const TorchStorage& storage : pickle_.storages) open_storage(storage);
    if (!has_checksums_) require_values();
    add_value(pickle_.root, "", 0);
    if (tensors_.empty()) fail("data.pkl", "holds no tensor");
    pickle_ = {};
  }

  std::vector<std::string> keys() const override { return keys_; }
  std::shared_ptr<const TensorSource> tensor(const std::string& key) const override {
    const auto found = tensors_.find(key);
    if (found == tensors_.end()) throw missing_tensor(*this, key);
    if (!found->second.source) throw unknown_type(*this, key, found->second.type);
    return found->second.source;
  }
  const std::map<std::string, std::string>& metadata() const override { return metadata_; }

 private:
  struct NamedTensor {
    std::shared_ptr<const TensorSource> source;  ///< null: of a type that is not known
    std::string type;
  };

  void take_memory(int64_t bytes) { memory_.take(bytes, "data.pkl", "what it holds"); }
  [[noreturn]] void fail(const std::string& where, const std::string& what) const {
    throw file_error(path().string(), where, what);
  }

  const ZipMember& find_pickle() const {
    const ZipMember* found = nullptr;
    for (const ZipMember& member : zip_.members()) {
      if (!is_pickle_name(member.name)) continue;
      if (found != nullptr) fail("member " + member.name, "is a second data.pkl");
      found = &member;
    }
    return *found;
  }

  /// torch.save may be told to compute no checksums (torch.utils.serialization.config), and writes
  /// 0 as each: that of data.pkl tells, since torch.serialization.skip_data leaves 0 for values
  /// that it did not write, too.
  std::shared_ptr<const ByteSource> open_member(ZipMember member) const {
    member.has_crc = has_checksums_;
    return zip_.open(member);
  }

  std::string read_text(const ZipMember& member) const {
    const auto source = open_member(member);
    source->verify();
    std::string text(static_cast<size_t>(member.bytes), '\0');
    source->read_at(0, std::as_writable_bytes(std::span(text)));
    return text;
  }

  void check_byte_order() const {
    const ZipMember* member = zip_.find(root_ + "byteorder");
    if (member == nullptr) return;  // older versions: little-endian
    if (member->bytes > kByteOrderBytes) {
      fail("byteorder", "is too large (got " + std::to_string(member->bytes) + " bytes, limit " +
                            std::to_string(kByteOrderBytes) + ")");
    }
    const std::string order = read_text(*member);
    if (order == "little") return;
    fail("byteorder", "expected little (got \"" + order +
                          "\"): save it again on a little-endian machine, or as safetensors");
  }

  void open_storage(const TorchStorage& storage) {
    const std::string name = root_ + "data/" + storage.key;
    const ZipMember* member = zip_.find(name);
    if (member == nullptr) fail("member " + name, "is missing");
    if (!storage.type.dtype) return;
    const auto bytes = checked_mul(storage.count, dtype_bytes(*storage.type.dtype));
    if (!bytes || *bytes != member->bytes) {
      fail("member " + name, "does not have its storage's size (got " +
                                 std::to_string(member->bytes) + " bytes, expected " +
                                 std::to_string(storage.count) + " x " +
                                 std::string(dtype_name(*storage.type.dtype)) + ")");
    }
    auto& source = storages_[storage.key];
    if (!source) source = open_member(*member);
  }

  /// Without checksums nothing else tells the file of a tensor's values from one that has only room
  /// for them.
  void require_values() const {
    for (const int64_t piece : {kFirstBytes, std::numeric_limits<int64_t>::max()}) {
      int64_t bytes = 0;
      for (const auto& [key, source] : storages_) {
        bytes += source->size();
        if (has_values(*source, std::min(piece, source->size()), key)) return;
      }
      if (bytes == 0) return;
    }
    fail("", "holds zeros alone, and no checksums: torch.serialization.skip_data saves no values");
  }

  /// True where one of the first `count` bytes is not 0.
  bool has_values(const ByteSource& source, int64_t count, const std::string& key) const {
    LongRead pass(zip_.control(), path().string() + ": member " + root_ + "data/" + key, count);
    std::vector<std::byte> buffer(static_cast<size_t>(std::min(count, kFirstBytes)));
    for (int64_t at = 0; at < count; at += static_cast<int64_t>(buffer.size())) {
      const auto part = static_cast<size_t>(std::min<int64_t>(count - at, kFirstBytes));
      source.read_at(at, std::span(buffer).first(part));
      const auto end = buffer.begin() + static_cast<std::ptrdiff_t>(part);
      if (std::find_if(buffer.begin(), end, [](std::byte b) { return b != std::byte{0}; }) != end) {
        return true;
      }
      pass.update(at + static_cast<int64_t>(part));
    }
    return false;
  }

  void add_value(size_t index, const std::string& key, int depth) {
    // Shared parts are told at every place where they occur.
    take_memory(kPlainBytes + static_cast<int64_t>(key.size()));
    check_depth(depth);
    const TorchPickle::Value& value = pickle_.values[index];
    switch (value.kind) {
      case Kind::none:
        return;
      case Kind::tensor:
        return add_tensor(pickle_.tensors[static_cast<size_t>(value.integer)], key);
      case Kind::dict:
        for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
          add_value(value.items[i + 1], joined(key, key_text(value.items[i])), depth + 1);
        }
        return;
      case Kind::list:
      case Kind::tuple:
        if (const auto plain = plain_value(index, depth)) return add_plain(*plain, key);
        for (size_t i = 0; i < value.items.size(); ++i) {
          add_value(value.items[i], joined(key, std::to_string(i)), depth + 1);
        }
        return;
      case Kind::storage:
      case Kind::name:
        fail(where(key), "is no tensor, number or string");
      default:
        return add_plain(*plain_value(index, depth), key);
    }
  }

  void check_depth(int depth) const {
    if (depth > kMaxPickleDepth) {
      fail("data.pkl", "is nested too deep (limit " + std::to_string(kMaxPickleDepth) + ")");
    }
  }

  static std::string joined(const std::string& outer, const std::string& inner) {
    return outer.empty() ? inner : outer + "." + inner;
  }
  static std::string where(const std::string& key) {
    return key.empty() ? "data.pkl" : "tensor " + key;
  }

  std::string key_text(size_t index) const {
    const TorchPickle::Value& key = pickle_.values[index];
    if (key.kind == Kind::text) return key.text;
    if (key.kind == Kind::integer) return std::to_string(key.integer);
    fail("data.pkl", "a dictionary has a key that is no string or whole number");
  }

  /// A number, string, truth value, or a list of such; nothing where there are tensors in it.
  std::optional<Json> plain_value(size_t index, int depth) {
    check_depth(depth);
    const TorchPickle::Value& value = pickle_.values[index];
    // As JSON, and as text of JSON.
    take_memory(kPlainBytes + 2 * static_cast<int64_t>(value.text.size()));
    switch (value.kind) {
      case Kind::none:
        return Json();
      case Kind::boolean:
        return value.integer != 0;
      case Kind::integer:
        return value.integer < 0 ? Json(value.integer) : Json(static_cast<uint64_t>(value.integer));
      case Kind::real:
        return value.real;
      case Kind::text:
        return value.text;
      case Kind::list:
      case Kind::tuple: {
        Json list = Json::array();
        for (const size_t item : value.items) {
          auto plain = plain_value(item, depth + 1);
          if (!plain) return std::nullopt;
          list.push_back(std::move(*plain));
        }
        return list;
      }
      default:
        return std::nullopt;
    }
  }

  void add_plain(const Json& value, const std::string& key) {
    if (!key.empty()) metadata_.emplace(key, text_of_value(value));
  }

  void add_tensor(const TorchTensor& tensor, const std::string& key) {
    const TorchStorage& storage = pickle_.storages[tensor.storage];
    take_memory(kTensorBytes + 3 * static_cast<int64_t>(key.size()) +
                16 * static_cast<int64_t>(tensor.shape.size()));
    if (!tensor.type.dtype) return add_named(key, {nullptr, tensor.type.name});
    const DType dtype = *tensor.type.dtype;
    const int64_t element = dtype_bytes(dtype);
    const auto count = checked_count(tensor.shape);
    if (!count || !checked_mul(*count, element)) {
      fail(where(key), "the shape " + shape_text(tensor.shape) + " overflows");
    }
    // A storage without a type counts bytes.
    if (!fits_storage(tensor, storage.count * dtype_bytes(*storage.type.dtype) / element)) {
      fail(where(key), "shape " + shape_text(tensor.shape) + " with strides " +
                           shape_text(tensor.strides) + " from element " +
                           std::to_string(tensor.offset) + " does not fit its storage of " +
                           std::to_string(storage.count));
    }
    std::shared_ptr<const TensorSource> source = std::make_shared<FileTensor>(
        storages_.at(storage.key), path().string() + (key.empty() ? "" : ": tensor " + key),
        FileTensorLayout{.dtype = dtype,
                         .shape = tensor.shape,
                         .offset = tensor.offset * element,
                         .strides = tensor.strides});
    if (tensor.type.name == kTorchFp4) {
      source = std::make_shared<Fp4Bytes>(std::move(source), std::nullopt);
    }
    const auto text = names_value(key) ? text_of_tensor(*source) : std::nullopt;
    if (text && metadata_.emplace(key, *text).second) return;
    add_named(key, {std::move(source), tensor.type.name});
  }

  void add_named(const std::string& key, NamedTensor tensor) {
    if (!tensors_.emplace(key, std::move(tensor)).second) fail(where(key), "is there twice");
    keys_.push_back(key);
  }

  ZipFile zip_;
  HeadMemory memory_;
  std::string root_;
  bool has_checksums_ = true;
  TorchPickle pickle_;
  std::map<std::string, std::shared_ptr<const ByteSource>> storages_;
  std::map<std::string, NamedTensor> tensors_;
  std::vector<std::string> keys_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace

bool is_torch_zip(const ZipFile& zip) {
  for (const ZipMember& member : zip.members()) {
    if (is_pickle_name(member.name)) return true;
  }
  return false;
}

std::shared_ptr<const TensorFile> open_torch(ZipFile zip) {
  return std::make_shared<TorchFile>(std::move(zip));
}

}  // namespace attnscope
