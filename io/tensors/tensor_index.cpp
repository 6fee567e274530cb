#include "io/tensors/tensor_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "io/files/inner_path.h"
#include "io/files/input_set.h"
#include "io/files/json_types.h"
#include "io/files/strict_json.h"
#include "io/tensors/safetensors.h"

namespace attnscope {
namespace {

constexpr int64_t kMaxIndexBytes = 64 << 20;
/// Every file stays open; models come in fewer than two hundred.
constexpr size_t kMaxIndexedFiles = 512;

class IndexedTensors : public TensorFile {
 public:
  IndexedTensors(const InputFile& file, const ReadControl& control) : TensorFile(file.path()) {
    const Json root = read_index(file, control);
    for (const auto& [key, value] : root["weight_map"].items()) {
      if (!value.is_string()) fail("weight_map: " + key, "expected the name of a file");
      const std::string name = value.get<std::string>();
      if (files_.find(name) == files_.end()) {
        if (files_.size() == kMaxIndexedFiles) {
          fail("weight_map",
               "names too many files (limit " + std::to_string(kMaxIndexedFiles) + ")");
        }
        files_[name] = open_indexed(name, control);
      }
      keys_.push_back(key);
      places_[key] = name;
    }
    join_metadata();
  }

  std::vector<std::string> keys() const override { return keys_; }
  std::shared_ptr<const TensorSource> tensor(const std::string& key) const override {
    const auto place = places_.find(key);
    if (place == places_.end()) throw missing_tensor(*this, key);
    const Indexed& indexed = files_.at(place->second);
    if (!indexed.file) throw *indexed.fault;
    return indexed.file->tensor(key);
  }
  const std::map<std::string, std::string>& metadata() const override { return metadata_; }
  std::vector<std::filesystem::path> files() const override {
    std::vector<std::filesystem::path> all{path()};
    for (const auto& [name, indexed] : files_) all.push_back(path().parent_path() / name);
    return all;
  }

 private:
  struct Indexed {
    std::shared_ptr<const TensorFile> file;
    std::optional<Error> fault;  ///< where there is none
  };

  /// A key that the files agree on stays as it is. Where they differ, each value gets the name of
  /// its file before the key: none of them is true of the tensors of another file.
  void join_metadata() {
    std::map<std::string, std::map<std::string, std::string>> values;  // key, file's name
    for (const auto& [name, indexed] : files_) {
      if (!indexed.file) continue;
      for (const auto& [key, text] : indexed.file->metadata()) values[key][name] = text;
    }
    for (const auto& [key, of_files] : values) {
      const std::string& first = of_files.begin()->second;
      const bool alike = std::all_of(of_files.begin(), of_files.end(),
                                     [&](const auto& each) { return each.second == first; });
      if (alike) metadata_[key] = first;
      for (const auto& [name, text] : of_files) {
        if (!alike) metadata_[name + "/" + key] = text;
      }
    }
  }

  [[noreturn]] void fail(const std::string& where, const std::string& what) const {
    throw file_error(path().string(), where, what);
  }

  Json read_index(const InputFile& file, const ReadControl& control) const {
    if (file.size() > kMaxIndexBytes) {
      fail("", "is too large for an index of safetensors files (got " +
                   std::to_string(file.size()) + " bytes, limit " + std::to_string(kMaxIndexBytes) +
                   ")");
    }
    std::string text(static_cast<size_t>(file.size()), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(text)));
    Json root = parse_strict_json(text, path().string(), "", {.memory = control.memory});
    if (!root.is_object() || !root.contains("weight_map") || !root["weight_map"].is_object()) {
      fail("", "is JSON, but no index of safetensors files, which has a weight_map");
    }
    return root;
  }

  Indexed open_indexed(const std::string& name, const ReadControl& control) const {
    const auto place = inner_path(path().parent_path(), name);
    if (!place) {
      fail("weight_map",
           "a file's name must be relative and inside the folder (got \"" + name + "\")");
    }
    try {
      const auto opened =
          control.files ? control.files->open(*place) : std::make_shared<const InputFile>(*place);
      return {read_safetensors(opened, *place, {.memory = control.memory}), std::nullopt};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::file) throw;
      return {nullptr, error};
    }
  }

  std::map<std::string, Indexed> files_;
  std::map<std::string, std::string> places_;  ///< of each tensor
  std::vector<std::string> keys_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace

std::shared_ptr<const TensorFile> open_tensor_index(const InputFile& file,
                                                    const ReadControl& control) {
  return std::make_shared<IndexedTensors>(file, control);
}

}  // namespace attnscope
