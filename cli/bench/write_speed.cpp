#include "cli/bench/write_speed.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>

#include "cli/bench/best_seconds.h"
#include "core/base/error.h"

namespace attnscope {

double write_speed(const std::string& folder, WriteWay way) {
  constexpr int64_t kPiece = 13 << 20;
  constexpr int64_t kPieces = 24;
  const std::string path = folder + "/attnscope-bench.tmp";
  // Pieces for O_DIRECT start at a page.
  const std::unique_ptr<char, decltype(&std::free)> piece(
      static_cast<char*>(std::aligned_alloc(4096, kPiece)), &std::free);
  if (piece == nullptr) throw std::bad_alloc();
  std::fill_n(piece.get(), kPiece, 1);
  const int direct = way == WriteWay::direct ? O_DIRECT : 0;
  bool possible = true;
  const double seconds = best_seconds(3, [&] {
    const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | direct, 0600);
    if (fd < 0 && direct != 0 && errno == EINVAL) {
      possible = false;
      return;
    }
    if (fd < 0) throw file_error(path, "", "cannot be created: " + errno_text(errno));
    bool good = ftruncate(fd, kPiece * kPieces) == 0;
    for (int64_t i = 0; good && i < kPieces; ++i) {
      const ssize_t written = pwrite(fd, piece.get(), kPiece, i * kPiece);
      good = written == kPiece;
      // A full disk takes a part and sets no error.
      if (written >= 0 && !good) errno = ENOSPC;
    }
    if (way != WriteWay::buffered) good = good && fsync(fd) == 0;
    const int error_number = errno;
    close(fd);
    // Some file systems open the file and refuse the write.
    if (!good && direct != 0 && error_number == EINVAL) {
      possible = false;
      return;
    }
    if (!good) throw file_error(path, "", "cannot be written: " + errno_text(error_number));
  });
  std::filesystem::remove(path);
  return possible ? static_cast<double>(kPiece * kPieces) / seconds : 0;
}

}  // namespace attnscope
