#include "io/capture/named_folder.h"

#include <set>

namespace attnscope {

NamedFolder summary_of(const NamedFiles& files, bool pattern_given) {
  NamedFolder folder;
  folder.pattern = files.pattern;
  folder.pattern_given = pattern_given;
  folder.left_out = files.left_out;
  std::set<int64_t> steps, layers, heads;
  for (const NamedCall& call : files.calls) {
    if (call.fields.step) steps.insert(*call.fields.step);
    if (call.fields.layer) layers.insert(*call.fields.layer);
    folder.of_tensors = call.file != nullptr;
    for (const auto& [role, parts] : call.parts) {
      folder.files += static_cast<int64_t>(parts.size());
      for (const NamedPart& part : parts) {
        if (part.head) heads.insert(*part.head);
      }
    }
  }
  folder.steps.assign(steps.begin(), steps.end());
  folder.layers.assign(layers.begin(), layers.end());
  folder.heads.assign(heads.begin(), heads.end());
  return folder;
}

std::string first_names(const std::vector<std::string>& names, const std::string& what) {
  constexpr size_t kMostNamed = 5;
  std::string text = std::to_string(names.size()) + " " + what + (names.size() == 1 ? ": " : "s: ");
  for (size_t i = 0; i < names.size() && i < kMostNamed; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kMostNamed) text += " …";
  return text;
}

}  // namespace attnscope
