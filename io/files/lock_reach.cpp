#include "io/files/lock_reach.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace attnscope {
namespace {

/// A kind of file system whose locks stay on the host with one of these options, or with any.
struct LocalLocks {
  std::string_view kind;  ///< the beginning of its name: nfs4 is nfs
  std::string_view option;
  std::string_view text;  ///< empty: the option is told
};

constexpr LocalLocks kLocalLocks[] = {
    {"nfs", "nolock", ""},           {"nfs", "local_lock=all", ""},
    {"nfs", "local_lock=posix", ""}, {"lustre", "localflock", ""},
    {"cifs", "nobrl", ""},           {"smb3", "nobrl", ""},
    {"fuse.sshfs", "", ""},          {"beegfs", "", "unless tuneUseGlobalFileLocks is on"},
};

bool has_option(std::string_view options, std::string_view wanted) {
  while (!options.empty()) {
    const size_t end = options.find(',');
    if (options.substr(0, end) == wanted) return true;
    if (end == std::string_view::npos) break;
    options.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

std::string locks_of_one_host(std::string_view mounts, uint64_t number) {
  std::istringstream lines{std::string(mounts)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    uint64_t own = 0;
    if (!(fields >> own) || own != number) continue;
    // The fields before the dash vary in number.
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) return "";
    std::istringstream rest(line.substr(dash + 3));
    std::string kind, source, options;
    rest >> kind >> source >> options;
    for (const LocalLocks& local : kLocalLocks) {
      if (!kind.starts_with(local.kind)) continue;
      if (!local.option.empty() && !has_option(options, local.option)) continue;
      const std::string_view why = local.text.empty() ? local.option : local.text;
      return why.empty() ? kind : kind + ", " + std::string(why);
    }
    return "";
  }
  return "";
}

std::string locks_of_one_host(const std::filesystem::path& file) {
  struct statx info {};
  if (::statx(AT_FDCWD, file.c_str(), 0, STATX_MNT_ID, &info) != 0) return "";
  // Systems before Linux 5.8 do not say.
  if ((info.stx_mask & STATX_MNT_ID) == 0) return "";
  std::ifstream mounts("/proc/self/mountinfo");
  const std::string text{std::istreambuf_iterator<char>(mounts), {}};
  return locks_of_one_host(text, info.stx_mnt_id);
}

}  // namespace attnscope
