#include "io/capture/facts/tensor_reference.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "io/tensors/open_tensor_file.h"

namespace attnscope {

std::string reference_file(const std::string& reference) {
  // A file of that very name goes before FILE:KEY.
  std::error_code error;
  const size_t colon = reference.rfind(':');
  if (colon == std::string::npos || colon == 0 || std::filesystem::exists(reference, error)) {
    return reference;
  }
  return reference.substr(0, colon);
}

std::shared_ptr<const TensorSource> open_tensor_reference(
    const std::string& reference, const std::vector<std::string>& usual_names,
    const ReadControl& control) {
  const std::string file = reference_file(reference);
  const std::string key =
      file.size() < reference.size() ? reference.substr(file.size() + 1) : std::string();
  const auto opened = open_tensor_file(file, control);
  if (!key.empty()) return opened->tensor(key);
  const std::vector<std::string> keys = opened->keys();
  if (keys.size() == 1) return opened->tensor(keys.front());
  for (const std::string& name : usual_names) {
    if (std::find(keys.begin(), keys.end(), name) != keys.end()) return opened->tensor(name);
  }
  std::string list;
  for (const std::string& name : keys) list += (list.empty() ? "" : ", ") + name;
  throw usage_error(file + " has several tensors (" + list + "): say which, as " + file + ":KEY");
}

}  // namespace attnscope
