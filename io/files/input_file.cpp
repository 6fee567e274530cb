#include "io/files/input_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <ctime>
#include <string>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr int64_t kNanoseconds = 1'000'000'000;

FileState state_of(const struct stat& info) {
  return {{info.st_dev, info.st_ino},
          info.st_size,
          int64_t{info.st_mtim.tv_sec} * kNanoseconds + info.st_mtim.tv_nsec};
}

/// "2026-11-22 21:04:05.123456789 UTC".
std::string time_text(int64_t ns) {
  const time_t seconds = ns / kNanoseconds - (ns % kNanoseconds < 0 ? 1 : 0);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{}-{:02}-{:02} {:02}:{:02}:{:02}.{:09} UTC", 1900 + parts.tm_year,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     ns - int64_t{seconds} * kNanoseconds);
}

std::string change_text(const FileState& before, const FileState& now) {
  if (now.identity != before.identity) return "another file has its name now";
  if (now.size != before.size) {
    return fmt::format("it has {} bytes now, and had {}", now.size, before.size);
  }
  return fmt::format("it was written to (modified {}, before {})", time_text(now.modified_ns),
                     time_text(before.modified_ns));
}

}  // namespace

InputFile::InputFile(std::filesystem::path path)
    : InputFile(std::move(path), nullptr, {}, Links::follow) {}

InputFile::InputFile(std::filesystem::path path, std::shared_ptr<const InputFolder> folder,
                     std::filesystem::path inner, Links links)
    : path_(std::move(path)), folder_(std::move(folder)), inner_(std::move(inner)), links_(links) {
  // Opening a pipe must not wait for its other end.
  Descriptor first = open(O_RDONLY | O_NONBLOCK);
  if (!first.is_open() && errno == ELOOP && links_ == Links::refuse) {
    throw file_error(path_.string(), "",
                     "is a symbolic link or stands behind one, and links in a capture are not "
                     "followed (--links follow: to tensors)");
  }
  if (!first.is_open()) {
    throw file_error(path_.string(), "", "cannot be opened: " + errno_text(errno));
  }
  struct stat info {};
  if (fstat(first.number(), &info) != 0 || !S_ISREG(info.st_mode)) {
    throw file_error(path_.string(), "", "is no regular file");
  }
  state_ = state_of(info);
  descriptor_ =
      std::make_unique<const LazyDescriptor>(std::move(first), [this] { return open_again(); });
}

/// Opens the file that has the name now; the result is not open, with errno, where that fails.
Descriptor InputFile::open(int flags) const {
  if (folder_) return folder_->open(inner_, flags, links_);
  return Descriptor(::open(path_.c_str(), flags | O_CLOEXEC));
}

Descriptor InputFile::open_again() const {
  Descriptor again = open(O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!again.is_open() || fstat(again.number(), &info) != 0) {
    throw file_error(path_.string(), "",
                     "cannot be opened any more, while it is read: " + errno_text(errno));
  }
  require_same(state_of(info));
  return again;
}

void InputFile::require_same(const FileState& now) const {
  if (now == state_) return;
  throw file_error(path_.string(), "",
                   "was changed while it was read: " + change_text(state_, now));
}

void InputFile::require_unchanged() const {
  // Reads that end after this are none of those that it vouches for.
  const bool unchecked = unchecked_.exchange(false);
  try {
    struct stat info {};
    if (const auto descriptor = descriptor_->get_if_open()) {
      if (fstat(descriptor->number(), &info) != 0) {
        throw errno_error(path_, "cannot be examined", errno);
      }
      require_same(state_of(info));
    }
    const Descriptor named = open(O_PATH);
    if (!named.is_open() || fstat(named.number(), &info) != 0) {
      throw file_error(path_.string(), "",
                       "cannot be found any more, while it is read: " + errno_text(errno));
    }
    require_same(state_of(info));
  } catch (...) {
    if (unchecked) unchecked_ = true;
    throw;
  }
}

void InputFile::read_at(int64_t offset, std::span<std::byte> destination) const {
  const std::shared_ptr<const Descriptor> descriptor = descriptor_->get();
  while (!destination.empty()) {
    const ssize_t got = pread(descriptor->number(), destination.data(), destination.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw file_error(path_.string(), "byte " + std::to_string(offset),
                       "cannot be read: " + errno_text(errno));
    }
    if (got == 0) {
      throw file_error(path_.string(), "byte " + std::to_string(offset),
                       "the file ends here (it had " + std::to_string(size()) +
                           " bytes when it was opened; was it cut short meanwhile?)");
    }
    destination = destination.subspan(static_cast<size_t>(got));
    offset += got;
  }
  // When the reading is done: a check meanwhile has not seen all of it.
  if (!read_.load(std::memory_order_relaxed)) read_ = true;
  if (!unchecked_.load(std::memory_order_relaxed)) unchecked_ = true;
}

}  // namespace attnscope
