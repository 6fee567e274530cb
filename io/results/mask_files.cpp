#include "io/results/mask_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "io/files/json_text.h"
#include "io/files/json_types.h"
#include "io/files/staged_file.h"
#include "io/results/csv_field.h"

namespace attnscope {

std::string mask_csv(const OrderedJson& masks) {
  const OrderedJson& heads = masks.at("heads");
  std::vector<std::string> names;
  for (const auto& head : heads) {
    for (const auto& [name, value] : head.items()) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      // Where the heads' own places stand in those that have them: behind the head's number.
      const bool is_place = name == "block" || name == "slot" || name == "chunk" ||
                            name == "forward" || name == "of_step" || name == "call";
      const auto mask = std::find(names.begin(), names.end(), "mask");
      names.insert(is_place ? mask : names.end(), name);
    }
  }
  std::string text = names.empty() ? "" : fmt::format("{}\n", fmt::join(names, ","));
  for (const auto& head : heads) {
    std::vector<std::string> cells;
    for (const std::string& name : names) {
      cells.push_back(head.contains(name) ? csv_value(head[name]) : "");
    }
    text += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return text;
}

std::string mask_file_text(const OrderedJson& masks, const std::filesystem::path& name) {
  if (name.extension() == ".csv") return mask_csv(masks);
  return json_text(masks, 1) + "\n";
}

void write_mask_file(const OrderedJson& masks, const std::filesystem::path& path, bool force) {
  StagedFile file(path, force);
  const std::string text = mask_file_text(masks, path);
  file.append(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace attnscope
