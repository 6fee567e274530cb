#include "io/capture/call_in_file.h"

#include <algorithm>
#include <optional>
#include <set>

#include "io/capture/call/call_tensors.h"
#include "io/tensors/value_names.h"

namespace attnscope {
namespace {

class CallInFile : public TensorFile {
 public:
  explicit CallInFile(std::shared_ptr<const TensorFile> file)
      : TensorFile(file->path()), file_(std::move(file)) {}

  /// A tensor that the file calls `key`.
  void add_tensor(const std::string& name, const std::string& key) {
    if (keys_.emplace(name, key).second) names_.push_back(name);
  }

  /// Adds a value to the call's metadata unless it has one of this name: those of the call alone
  /// come first, then those that the file has for several calls.
  void add_value(const std::string& name, const std::string& text) {
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

bool is_sinks(const std::string& key) { return has_any({key}, usual_names("sinks")); }

constexpr const char* kOfAllCalls = "a tensor beside several calls";

/// The names of a tensor beside all calls that is something to each of them; empty: it is not.
/// Whose a tensor is that shapes maps, and belongs to no call, is not known.
std::vector<std::string> shared_names(const std::string& key) {
  for (const char* role :
       {"mask", "cu_seqlens_q", "cu_seqlens_k", "sinks", "alibi_slopes", "relative_bias"}) {
    if (has_any({key}, usual_names(role))) return usual_names(role);
  }
  return shaping_name(key) == nullptr ? std::vector<std::string>() : std::vector{key};
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
      (shared_names(key).empty() ? result.left_out : shared).push_back(key);
    }
  }
  std::map<std::string, std::string> values;
  for (const auto& [key, text] : file->metadata()) {
    if (const auto place = known.find(key)) {
      calls[place->first]->add_value(place->second, text);
    } else {
      values.emplace(key, text);
    }
  }
  for (size_t i = 0; i < frames.size(); ++i) {
    const auto& call = calls[i];
    const std::vector<std::string> own = call->keys();
    for (const std::string& key : shared) {
      // A call's own goes before it.
      if (has_any(own, shared_names(key))) continue;
      if (is_sinks(key)) {
        // Layers have sinks of their own: these are told as a value that is not understood.
        call->add_value(key, kOfAllCalls);
      } else {
        call->add_tensor(key, key);
      }
    }
    for (const auto& [name, text] : values_beside(values, frames[i].before)) {
      call->add_value(name, text);
    }
    result.calls.push_back(call);
  }
  return result;
}

}  // namespace attnscope
