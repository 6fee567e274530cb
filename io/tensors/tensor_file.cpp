#include "io/tensors/tensor_file.h"

#include "core/base/nearest_word.h"

namespace attnscope {

Error missing_tensor(const TensorFile& file, const std::string& key) {
  constexpr size_t kMostNamed = 20;
  const std::vector<std::string> keys = file.keys();
  std::string text = "there is no such tensor";
  const std::string nearest = nearest_word(key, keys);
  if (!nearest.empty()) text += ", did you mean " + nearest + "?";
  text += keys.empty() ? " (the file has none)" : " (it has ";
  for (size_t i = 0; i < keys.size() && i < kMostNamed; ++i) text += (i == 0 ? "" : ", ") + keys[i];
  if (keys.size() > kMostNamed)
    text += " and " + std::to_string(keys.size() - kMostNamed) + " more";
  if (!keys.empty()) text += ")";
  return file_error(file.path().string(), "tensor " + key, text);
}

Error unknown_type(const TensorFile& file, const std::string& key, const std::string& type) {
  return file_error(file.path().string(), key.empty() ? "" : "tensor " + key,
                    "unknown dtype (got " + type + ")");
}

}  // namespace attnscope
