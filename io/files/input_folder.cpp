#include "io/files/input_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "io/files/beneath.h"

namespace attnscope {

InputFolder::InputFolder(std::filesystem::path path) : path_(std::move(path)) {
  const char* const name = path_.empty() ? "." : path_.c_str();
  folder_ = Descriptor(::open(name, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder_.is_open()) return;
  throw file_error(name, "", "cannot be opened: " + errno_text(errno));
}

std::optional<std::filesystem::path> InputFolder::inner_name(
    const std::filesystem::path& file) const {
  // "dump/" has an empty last part, which "dump/x" does not.
  const std::filesystem::path own = path_.has_filename() ? path_ : path_.parent_path();
  auto [end, rest] = std::mismatch(own.begin(), own.end(), file.begin(), file.end());
  if (end != own.end() || rest == file.end()) return std::nullopt;
  if (own.empty() && file.is_absolute()) return std::nullopt;
  std::filesystem::path inner;
  for (; rest != file.end(); ++rest) {
    if (*rest == "..") return std::nullopt;
    inner /= *rest;
  }
  return inner;
}

Descriptor InputFolder::open(const std::filesystem::path& inner, int flags, Links links) const {
  if (links == Links::refuse) return open_beneath(folder_, inner, flags);
  return Descriptor(::openat(folder_.number(), inner.c_str(), flags | O_CLOEXEC));
}

}  // namespace attnscope
