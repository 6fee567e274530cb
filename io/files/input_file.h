#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "io/files/byte_source.h"
#include "io/files/input_folder.h"
#include "io/files/lazy_descriptor.h"
#include "io/files/posix_file.h"

namespace attnscope {

/// The facts that change when a file is written to, or another one takes its name.
struct FileState {
  FileIdentity identity;
  int64_t size = 0;
  int64_t modified_ns = 0;  ///< since 1970
  friend bool operator==(const FileState&, const FileState&) = default;
};

/// A regular file that is read. Between reads it may be closed (LazyDescriptor); what it then finds
/// under its name has to be the file as it was. Thread-safe. Shared by the tensors that stand in
/// it.
class InputFile : public ByteSource {
 public:
  /// Throws Error(file) when it cannot be opened or is no regular file. Links are followed.
  explicit InputFile(std::filesystem::path path);
  /// The file `path`, which is `inner` within `folder`. Where links are refused: Error(file) for
  /// what is one, or stands behind one.
  InputFile(std::filesystem::path path, std::shared_ptr<const InputFolder> folder,
            std::filesystem::path inner, Links links);

  const std::filesystem::path& path() const { return path_; }
  /// As it was when it was opened.
  const FileState& state() const { return state_; }
  /// Bytes it had when it was opened.
  int64_t size() const override { return state_.size; }
  /// Fills `destination` from `offset`; throws Error(file) where the file ends before that, or is
  /// not as it was when it was opened.
  void read_at(int64_t offset, std::span<std::byte> destination) const override;

  /// Throws Error(file) that tells what changed where the file, or what has its name, is not as it
  /// was when it was opened: written to, cut, replaced, gone.
  void require_unchanged() const;
  /// True after a read since forget_reads(), and since the last require_unchanged() that passed.
  bool was_read() const { return read_; }
  bool was_read_unchecked() const { return unchecked_; }
  void forget_reads() const { read_ = unchecked_ = false; }

 private:
  Descriptor open(int flags) const;
  Descriptor open_again() const;
  void require_same(const FileState& now) const;

  const std::filesystem::path path_;
  const std::shared_ptr<const InputFolder> folder_;  ///< null: found by path_
  const std::filesystem::path inner_;
  const Links links_;
  FileState state_;
  std::unique_ptr<const LazyDescriptor> descriptor_;
  mutable std::atomic<bool> read_{false}, unchecked_{false};
};

}  // namespace attnscope
