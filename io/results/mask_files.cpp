#include "io/results/mask_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "io/files/json_text.h"
#include "io/files/json_types.h"
#include "io/files/staged_file.h"
#include "io/results/csv_line.h"
#include "io/results/head_columns.h"

namespace attnscope {

std::string mask_csv(const OrderedJson& masks) {
  const OrderedJson& heads = masks.at("heads");
  if (heads.empty()) return "";
  HeadColumns columns;
  std::vector<std::string> numbers;
  for (const OrderedJson& head : heads) {
    for (const auto& [name, value] : head.items()) {
      if (names_head(name)) {
        columns.add(name);
      } else if (std::find(numbers.begin(), numbers.end(), name) == numbers.end()) {
        numbers.push_back(name);
      }
    }
  }
  std::vector<std::string> names = columns.titles();
  names.insert(names.end(), numbers.begin(), numbers.end());
  std::string text = csv_line(names);
  for (const OrderedJson& head : heads) {
    std::vector<std::string> fields;
    for (const std::string& name : names) {
      fields.push_back(head.contains(name) ? csv_value(head[name]) : "");
    }
    text += csv_line(fields);
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
