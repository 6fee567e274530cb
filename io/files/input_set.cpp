#include "io/files/input_set.h"

#include <utility>

namespace attnscope {

InputSet::InputSet(const std::optional<std::filesystem::path>& folder, Links links)
    : links_(links) {
  if (folder) folder_ = std::make_shared<const InputFolder>(*folder);
}

std::shared_ptr<const InputFile> InputSet::open_file(const std::filesystem::path& path,
                                                     Links links) const {
  const auto inner = folder_ ? folder_->inner_name(path) : std::nullopt;
  if (!inner) return std::make_shared<const InputFile>(path);
  return std::make_shared<const InputFile>(path, folder_, *inner, links);
}

std::shared_ptr<const InputFile> InputSet::open(const std::filesystem::path& path) {
  const std::lock_guard lock(mutex_);
  const auto known = files_.find(path);
  if (known != files_.end()) return known->second;
  return files_.emplace(path, open_file(path, links_)).first->second;
}

std::shared_ptr<const InputFile> InputSet::open_unlinked(const std::filesystem::path& path) const {
  return open_file(path, Links::refuse);
}

/// The files are looked at outside the lock, so that one may be opened meanwhile.
template <typename Wanted>
void InputSet::check(const Wanted& wanted) const {
  std::vector<std::shared_ptr<const InputFile>> files;
  std::vector<std::shared_ptr<const InputSet>> included;
  {
    const std::lock_guard lock(mutex_);
    included = included_;
    for (const auto& [path, file] : files_) {
      if (wanted(*file)) files.push_back(file);
    }
  }
  for (const auto& file : files) file->require_unchanged();
  for (const auto& others : included) others->check(wanted);
}

void InputSet::include(std::shared_ptr<const InputSet> others) {
  const std::lock_guard lock(mutex_);
  included_.push_back(std::move(others));
}

std::map<std::filesystem::path, FileState> InputSet::states() const {
  const std::lock_guard lock(mutex_);
  std::map<std::filesystem::path, FileState> states;
  for (const auto& [path, file] : files_) states.emplace(path, file->state());
  return states;
}

void InputSet::begin_use() {
  check([](const InputFile&) { return true; });
  const std::lock_guard lock(mutex_);
  for (const auto& [path, file] : files_) file->forget_reads();
}

void InputSet::require_unchanged() const {
  check([](const InputFile& file) { return file.was_read(); });
}

void InputSet::require_reads_unchanged() const {
  check([](const InputFile& file) { return file.was_read_unchecked(); });
}

}  // namespace attnscope
