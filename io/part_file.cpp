#include "io/part_file.h"

namespace attnscope {

PartFile::PartFile(std::filesystem::path path) : path_(std::move(path)), part_(path_) {
  part_ += ".part";
  if (path_.filename().empty()) throw file_error(path_.string(), "", "is not a file name");
  require_writable_folder(path_);
  if (std::filesystem::is_directory(path_)) throw file_error(path_.string(), "", "is a folder");
  if (std::filesystem::exists(std::filesystem::symlink_status(part_))) {
    throw file_error(part_.string(), "",
                     "exists: another run is writing it or was interrupted (remove it to go on)");
  }
}

PartFile::~PartFile() {
  if (committed_) return;
  std::error_code ignored;
  std::filesystem::remove(part_, ignored);
}

void PartFile::append(std::span<const std::byte> bytes) {
  if (!file_.is_open()) file_ = PosixFile(part_, PosixFile::Mode::create);
  file_.write_at(bytes, size_);
  size_ += static_cast<int64_t>(bytes.size());
}

void PartFile::commit() {
  if (!file_.is_open()) file_ = PosixFile(part_, PosixFile::Mode::existing);
  file_.sync();
  file_.close();
  rename_file(part_, path_, true);
  committed_ = true;
  sync_folder_of(path_);
}

}  // namespace attnscope
