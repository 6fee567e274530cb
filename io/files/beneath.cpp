#include "io/files/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <iterator>

namespace attnscope {
namespace {

Descriptor none(int error_number) {
  errno = error_number;
  return Descriptor();
}

bool is_link(const Descriptor& file) {
  struct stat info {};
  return fstat(file.number(), &info) == 0 && S_ISLNK(info.st_mode);
}

}  // namespace

Descriptor open_beneath(const Descriptor& folder, const std::filesystem::path& relative, int flags,
                        unsigned mode) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  // Unlike openat, it refuses a mode that nothing needs.
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  long opened = -1;
  do {
    opened = syscall(SYS_openat2, folder.number(), relative.c_str(), &how, sizeof how);
    // EAGAIN: something was renamed meanwhile, and the kernel could not be sure.
  } while (opened < 0 && (errno == EINTR || errno == EAGAIN));
  if (opened >= 0) return Descriptor(static_cast<int>(opened));
  // Sandboxes answer what they do not know with EPERM.
  if (errno != ENOSYS && errno != EPERM) return Descriptor();
  return open_beneath_by_parts(folder, relative, flags, mode);
}

Descriptor open_beneath_by_parts(const Descriptor& folder, const std::filesystem::path& relative,
                                 int flags, unsigned mode) {
  if (relative.empty()) return none(ENOENT);
  if (relative.is_absolute()) return none(EXDEV);
  Descriptor inner;
  for (auto part = relative.begin(); part != relative.end(); ++part) {
    if (*part == "..") return none(EXDEV);
    const int at = inner.is_open() ? inner.number() : folder.number();
    // A name that ends in a slash has an empty last part: the folder itself.
    const char* const name = part->empty() ? "." : part->c_str();
    // A link is opened itself, to be told from what is no folder.
    Descriptor next(::openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (next.is_open() && is_link(next)) return none(ELOOP);
    if (std::next(part) == relative.end()) {
      return Descriptor(::openat(at, name, flags | O_NOFOLLOW | O_CLOEXEC, mode));
    }
    if (!next.is_open()) return Descriptor();
    inner = std::move(next);
  }
  return inner;
}

}  // namespace attnscope
