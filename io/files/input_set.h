#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "io/files/input_file.h"

namespace attnscope {

/// The files that something is read from: whether they are what they were when they were opened,
/// and none of them a link that leads elsewhere. Thread-safe.
class InputSet {
 public:
  /// Files of `folder` are found in it or below it. Whoever laid them there is not trusted: with
  /// Links::refuse links are refused. Names elsewhere are the user's own, and followed, as all are
  /// where there is no folder.
  explicit InputSet(const std::optional<std::filesystem::path>& folder = std::nullopt,
                    Links links = Links::refuse);

  /// The file of this name, which is opened once. Throws as InputFile's constructors.
  std::shared_ptr<const InputFile> open(const std::filesystem::path& path);
  /// A file of `folder`, through no link, whatever the set allows. It is none of the set's.
  std::shared_ptr<const InputFile> open_unlinked(const std::filesystem::path& path) const;

  /// Checks are also those of `others` from here on: of what was opened later.
  void include(std::shared_ptr<const InputSet> others);
  /// The files, as they were when they were opened.
  std::map<std::filesystem::path, FileState> states() const;
  /// InputFile::require_unchanged() of all of them; what was read is forgotten then: from here on
  /// they are in use by being read.
  void begin_use();
  /// Of those in use. Throws Error(file).
  void require_unchanged() const;
  /// Of those that were read since the last check alone: enough for what was made of what was read
  /// until now, and fast, however many there are.
  void require_reads_unchanged() const;

 private:
  std::shared_ptr<const InputFile> open_file(const std::filesystem::path& path, Links links) const;
  template <typename Wanted>
  void check(const Wanted& wanted) const;

  std::shared_ptr<const InputFolder> folder_;
  const Links links_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const InputSet>> included_;
  std::map<std::filesystem::path, std::shared_ptr<const InputFile>> files_;
};

}  // namespace attnscope
