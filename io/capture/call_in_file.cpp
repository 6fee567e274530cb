#include "io/capture/call_in_file.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/capture/call/call_tensors.h"
#include "io/tensors/recorded_values.h"

namespace attnscope {
namespace {

class CallInFile : public TensorFile {
 public:
  explicit CallInFile(std::shared_ptr<const TensorFile> file)
      : TensorFile(file->path()), file_(std::move(file)) {}

  /// A tensor that the file calls `key`; a single number that has a fact's name becomes that.
  void add_tensor(const std::string& name, const std::string& key) {
    if (!fact_of_key(name).empty() && take_fact(name, key)) return;
    if (keys_.emplace(name, key).second) names_.push_back(name);
  }

  /// What the file says of the call, as TensorFile::metadata() holds it.
  void add_value(const std::string& name, const std::string& text) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (record_value(metadata_, name, json.is_discarded() ? nlohmann::json(text) : json)) return;
    metadata_.emplace(fact_of_key(name).empty() ? name : name + " = " + text, text);
  }

  /// What it says of all of its calls: where the call says it too, that holds.
  void add_shared_value(const std::string& name, const std::string& text) {
    metadata_.emplace(name, text);
  }

  std::vector<std::string> keys() const override { return names_; }
  std::shared_ptr<const TensorSource> tensor(const std::string& name) const override {
    const auto found = keys_.find(name);
    if (found == keys_.end()) throw missing_tensor(*this, name);
    return file_->tensor(found->second);
  }
  const std::map<std::string, std::string>& metadata() const override { return metadata_; }

 private:
  bool take_fact(const std::string& name, const std::string& key) {
    std::shared_ptr<const TensorSource> tensor;
    try {
      tensor = file_->tensor(key);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::file) throw;
      return false;  // whoever asks for it is told
    }
    const auto value = single_value(*tensor);
    return value && record_value(metadata_, name, *value);
  }

  std::shared_ptr<const TensorFile> file_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> keys_;  ///< what the file calls each
  std::map<std::string, std::string> metadata_;
};

/// Which call a key belongs to, and its name there.
class Frames {
 public:
  explicit Frames(const std::vector<KeyFrame>& frames) {
    for (size_t i = 0; i < frames.size(); ++i) {
      numbers_.emplace(frames[i], i);
      sizes_.emplace(frames[i].before.size(), frames[i].after.size());
    }
  }

  /// Of the frames that fit the one with the most letters.
  std::optional<std::pair<size_t, std::string>> find(const std::string& key) const {
    std::optional<std::pair<size_t, std::string>> found;
    for (const auto& [before, after] : sizes_) {
      if (before + after >= key.size()) continue;
      const size_t inner = key.size() - before - after;
      if (found && inner >= found->second.size()) continue;
      const auto number = numbers_.find({key.substr(0, before), key.substr(before + inner)});
      if (number != numbers_.end()) found = {number->second, key.substr(before, inner)};
    }
    return found;
  }

 private:
  std::map<KeyFrame, size_t> numbers_;
  std::set<std::pair<size_t, size_t>> sizes_;
};

bool has_any(const std::vector<std::string>& keys, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::find(keys.begin(), keys.end(), name) != keys.end();
  });
}

/// What a tensor beside all calls may be to each of them; empty: nothing.
std::string shared_role(const std::string& key) {
  for (const char* role : {"mask", "cu_seqlens_q", "cu_seqlens_k"}) {
    if (has_any({key}, usual_names(role))) return role;
  }
  return "";
}

}  // namespace

CallsInFile calls_in_file(const std::shared_ptr<const TensorFile>& file,
                          const std::vector<KeyFrame>& frames) {
  const Frames known(frames);
  std::vector<std::shared_ptr<CallInFile>> calls;
  for (size_t i = 0; i < frames.size(); ++i) calls.push_back(std::make_shared<CallInFile>(file));
  CallsInFile result;
  std::vector<std::string> shared;
  for (const std::string& key : file->keys()) {
    if (const auto place = known.find(key)) {
      calls[place->first]->add_tensor(place->second, key);
    } else {
      (shared_role(key).empty() ? result.left_out : shared).push_back(key);
    }
  }
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [key, text] : file->metadata()) {
    if (const auto place = known.find(key)) {
      calls[place->first]->add_value(place->second, text);
    } else {
      values.emplace_back(key, text);
    }
  }
  for (const auto& call : calls) {
    const std::vector<std::string> own = call->keys();
    for (const std::string& key : shared) {
      // A call's own goes before it.
      if (!has_any(own, usual_names(shared_role(key)))) call->add_tensor(key, key);
    }
    for (const auto& [name, text] : values) call->add_shared_value(name, text);
    result.calls.push_back(call);
  }
  return result;
}

}  // namespace attnscope
