#include "io/files/inner_path.h"

#include <algorithm>

namespace attnscope {

std::optional<std::filesystem::path> inner_path(const std::filesystem::path& folder,
                                                const std::string& name) {
  const std::filesystem::path path(name);
  const bool climbs = std::find(path.begin(), path.end(), "..") != path.end();
  const bool is_plain = !name.empty() && !path.is_absolute() && !climbs;
  if (!is_plain || name.find('\0') != std::string::npos) return std::nullopt;
  return folder / path;
}

}  // namespace attnscope
