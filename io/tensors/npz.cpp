#include "io/tensors/npz.h"

#include "core/base/error.h"
#include "io/tensors/npy.h"
#include "io/tensors/recorded_values.h"
#include "io/tensors/value_names.h"

namespace attnscope {
namespace {

// The format: a zip archive whose members NAME.npy are NumPy arrays, stored (savez) or deflated
// (savez_compressed). https://numpy.org/doc/stable/reference/generated/numpy.savez.html

constexpr std::string_view kEnding = ".npy";
/// Members up to this size are looked at for values: a header and a few numbers, or a prompt.
constexpr int64_t kMaxFactBytes = 64 << 10;

class NpzFile : public TensorFile {
 public:
  explicit NpzFile(ZipFile zip) : TensorFile(zip.path()), zip_(std::move(zip)) {
    for (const ZipMember& member : zip_.members()) {
      const std::string& name = member.name;
      if (name.size() <= kEnding.size() || !name.ends_with(kEnding)) {
        throw file_error(path().string(), "member " + name,
                         "is no array (the members of a .npz file are NAME.npy)");
      }
      const std::string key = name.substr(0, name.size() - kEnding.size());
      if (!take_fact(key, member)) keys_.push_back(key);
    }
  }

  std::vector<std::string> keys() const override { return keys_; }

  std::shared_ptr<const TensorSource> tensor(const std::string& key) const override {
    const ZipMember* member = zip_.find(key + std::string(kEnding));
    if (member == nullptr) throw missing_tensor(*this, key);
    return read_npy(zip_.open(*member), path().string() + ": tensor " + key);
  }

  const std::map<std::string, std::string>& metadata() const override { return metadata_; }

 private:
  /// Arrays of a few numbers, or of one string, that are values by their names.
  bool take_fact(const std::string& key, const ZipMember& member) {
    const bool is_number = names_value(key);
    if (member.bytes > kMaxFactBytes) return false;
    if (!is_number && fact_of_key(last_part(key)).empty()) return false;
    try {
      const auto bytes = zip_.open(member);
      const std::string name = path().string() + ": tensor " + key;
      auto text = npy_text(*bytes, name);
      if (!text && is_number) text = text_of_tensor(*read_npy(bytes, name));
      return text && metadata_.emplace(key, *text).second;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::file) throw;
      return false;  // objects: whoever asks for it is told
    }
  }

  ZipFile zip_;
  std::vector<std::string> keys_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace

std::shared_ptr<const TensorFile> open_npz(ZipFile zip) {
  return std::make_shared<NpzFile>(std::move(zip));
}

}  // namespace attnscope
