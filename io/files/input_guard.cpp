#include "io/files/input_guard.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "io/files/posix_file.h"

namespace attnscope {
namespace {

using std::filesystem::path;

struct Found {
  FileIdentity identity;
  bool is_folder = false;
};

/// The file or folder that a name leads to, through links; nothing where there is none.
std::optional<Found> found_at(const path& name) {
  struct stat info {};
  if (::stat(name.c_str(), &info) != 0) return std::nullopt;
  return Found{{info.st_dev, info.st_ino}, S_ISDIR(info.st_mode)};
}

/// The folders that `name` stands in, from the next one up to the root: no link is among them.
std::vector<path> folders_above(const path& name) {
  std::error_code error;
  path folder = std::filesystem::weakly_canonical(folder_of(name), error);
  if (error) folder = std::filesystem::absolute(folder_of(name), error).lexically_normal();
  std::vector<path> folders{folder};
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    folders.push_back(folder);
  }
  return folders;
}

bool stands_in(const path& name, const FileIdentity& wanted) {
  const std::vector<path> folders = folders_above(name);
  return std::any_of(folders.begin(), folders.end(), [&](const path& folder) {
    const auto found = found_at(folder);
    return found && found->identity == wanted;
  });
}

[[noreturn]] void refuse(const path& name) {
  throw file_error(name.string(), "", "is an input of this run, and would be destroyed");
}

}  // namespace

void refuse_input(const path& file, std::span<const path> inputs) {
  const auto target = found_at(file);
  if (!target) return;
  for (const path& input : inputs) {
    const auto found = found_at(input);
    if (found && found->identity == target->identity) refuse(file);
  }
}

void refuse_within_input(const path& out, std::span<const path> inputs) {
  for (const path& input : inputs) {
    const auto found = found_at(input);
    if (!found || !found->is_folder || !stands_in(out, found->identity)) continue;
    throw file_error(out.string(), "",
                     "would stand in " + one_line(input.string()) +
                         ", which is read: nothing is written into a capture (give the output "
                         "another folder)");
  }
}

void refuse_folder_of_input(const path& folder, std::span<const path> inputs) {
  const auto target = found_at(folder);
  if (!target || !target->is_folder) return;
  // Of many files of one folder, the folders above them are looked at once.
  std::set<path> seen;
  for (const path& input : inputs) {
    const auto found = found_at(input);
    if (found && found->identity == target->identity) refuse(input);
    if (seen.insert(folder_of(input)).second && stands_in(input, target->identity)) refuse(input);
  }
}

}  // namespace attnscope
