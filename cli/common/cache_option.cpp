#include "cli/common/cache_option.h"

#include <cstdlib>
#include <optional>

#include "io/files/posix_file.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// An absolute folder that an environment variable names; others are to be ignored.
std::optional<fs::path> folder_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || value[0] != '/') return std::nullopt;
  return value;
}

}  // namespace

void add_cache_option(CommandParser& command, std::string& cache) {
  command
      .add_option(
          "--cache", cache,
          "where row sums and the numbers of --where are kept for the next run: a folder\n"
          "or none (default: .attnscope in the capture's folder, or the user's cache folder\n"
          "where that one cannot be written)")
      .words(std::vector<std::string>{"none"})
      .type_name("DIR|none")
      .group("Computation");
}

std::vector<fs::path> cache_folders(const std::string& cache, const Capture& capture) {
  if (cache == "none") return {};
  std::error_code none;
  if (!cache.empty()) {
    // Who names a link means what it leads to; links that merely stand in a capture are not
    // followed.
    const fs::path folder = fs::weakly_canonical(cache, none);
    return {none ? fs::path(cache) : folder};
  }
  const bool folder = fs::is_directory(capture.path(), none);
  const fs::path home = folder ? capture.path() : folder_of(capture.files().front());
  std::vector<fs::path> folders{home / ".attnscope"};
  if (const auto user = folder_variable("XDG_CACHE_HOME")) {
    folders.push_back(*user / "attnscope");
  } else if (const auto own = folder_variable("HOME")) {
    folders.push_back(*own / ".cache" / "attnscope");
  }
  return folders;
}

}  // namespace attnscope
