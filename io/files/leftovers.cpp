#include "io/files/leftovers.h"

#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "core/base/error.h"
#include "io/files/file_text.h"
#include "io/files/hdf5_magic.h"
#include "io/files/posix_file.h"
#include "io/files/rank_files.h"

namespace attnscope {
namespace {

using std::filesystem::path;

/// How a list of records begins, as RecordJournal writes it for each of several processes.
constexpr std::string_view kRecords = R"({"format":"attnscope-)";

/// True where a file begins with `magic`, or is cut off within it.
bool begins_as(const std::string& start, std::string_view magic) {
  const std::string_view there = std::string_view(start).substr(0, magic.size());
  return magic.starts_with(there);
}

}  // namespace

bool is_own_leftover(const path& file) {
  const std::string start = beginning_of_file(file, kRecords.size());
  std::error_code error;
  // Of what cannot be read nobody knows whose it is.
  if (start.empty()) return std::filesystem::file_size(file, error) == 0;
  // show_folder() writes a few numbers to OUT.sums.0.
  const bool words =
      file.extension() == ".0" && start.find_first_not_of("0123456789 ") == std::string::npos;
  return words || begins_as(start, kJournalMagic) || begins_as(start, kSumsMagic) ||
         begins_as(start, kRecords);
}

path with_suffix(const path& file, const char* suffix) {
  path result = file;
  return result += suffix;
}

bool entry_exists(const path& file) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(file, error));
}

bool is_replaceable(const path& file) {
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0) {
    if (errno == ENOENT) return false;
    throw errno_error(file, "cannot be examined", errno);
  }
  if (S_ISREG(info.st_mode)) return true;
  if (S_ISDIR(info.st_mode)) throw file_error(file.string(), "", "is a folder");
  if (S_ISLNK(info.st_mode)) {
    throw file_error(file.string(), "", "is a symbolic link: give the name of the file itself");
  }
  throw file_error(file.string(), "", "is no regular file, and is never replaced");
}

std::vector<path> leftover_names(const path& out) {
  std::vector<path> names = rank_files_beside(out);
  for (const char* suffix : {".part", ".part.new", ".journal", ".journal.tmp"}) {
    names.push_back(with_suffix(out, suffix));
  }
  return names;
}

void refuse_leftovers(const path& out, bool resumable) {
  const path shards = with_suffix(out, ".d.part");
  for (const path& file : {with_suffix(out, ".part"), shards, with_suffix(out, ".part.new")}) {
    struct stat info {};
    if (::lstat(file.c_str(), &info) != 0) continue;
    const bool is_export = file == shards || is_replaceable(with_suffix(out, ".journal"));
    throw file_error(
        file.string(), "",
        resumable
            ? "is left from an interrupted run (--resume goes on with it, --force gives it up)"
        : is_export ? "is left from an interrupted export (its own --resume goes on with it, "
                      "--force gives it up)"
                    : "is left from an interrupted run (--force replaces it)");
  }
}

void refuse_foreign_leftovers(const path& out) {
  std::vector<path> files = rank_files_beside(out);
  for (const char* suffix : {".journal", ".journal.tmp"}) {
    files.push_back(with_suffix(out, suffix));
  }
  // A table or an export that is built at once: there is a list or a journal of it, or it is HDF5.
  const path built = with_suffix(out, ".part.new");
  const bool is_built = is_replaceable(with_suffix(out, ".part")) ||
                        is_replaceable(with_suffix(out, ".journal")) ||
                        begins_as(beginning_of_file(built, kHdf5Magic.size()), kHdf5Magic);
  if (!is_built) files.push_back(built);
  for (const path& file : files) {
    if (!is_replaceable(file) || is_own_leftover(file)) continue;
    throw file_error(file.string(), "",
                     "has the name of what an interrupted run leaves, and is none of this "
                     "program's (--force removes it)");
  }
}

}  // namespace attnscope
