#include <algorithm>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"
#include "viewer/session/recent_files.h"

using namespace attnscope;
using namespace attnscope::test;
using std::filesystem::path;

namespace {

/// The names alone.
std::vector<path> names(const path& list) {
  std::vector<path> names;
  for (const RecentFile& each : recent_files(list)) names.push_back(each.file);
  return names;
}

}  // namespace

TEST_CASE("the list stands where the desktop's rules put it") {
  CHECK(recent_files_path("/state", "/home/me") == path("/state/attnscope/recent"));
  CHECK(recent_files_path(nullptr, "/home/me") == path("/home/me/.local/state/attnscope/recent"));
  // The rules say that what is relative is ignored.
  CHECK(recent_files_path("state", "/home/me") == path("/home/me/.local/state/attnscope/recent"));
  CHECK(recent_files_path("", "/home/me") == path("/home/me/.local/state/attnscope/recent"));
  CHECK_FALSE(recent_files_path(nullptr, nullptr));
  CHECK_FALSE(recent_files_path("", "me"));
}

TEST_CASE("the last twelve captures are kept, the latest first and each once") {
  const TemporaryFolder folder;
  const path list = folder.path() / "new" / "folders" / "recent";
  CHECK(names(list).empty());
  for (int i = 0; i < 15; ++i) CHECK(remember_file(list, "/captures/" + std::to_string(i)));
  CHECK(remember_file(list, "/captures/./sub/../8"));
  const auto files = names(list);
  REQUIRE(files.size() == kRecentFiles);
  CHECK(files[0] == path("/captures/8"));
  CHECK(files[1] == path("/captures/14"));
  CHECK(files[11] == path("/captures/3"));
  CHECK(std::count(files.begin(), files.end(), path("/captures/8")) == 1);
  CHECK(remember_file(list, "here"));
  CHECK(names(list)[0] == std::filesystem::current_path() / "here");
}

TEST_CASE("damage is survived") {
  const TemporaryFolder folder;
  const path list = folder.path() / "recent";
  const std::string zero(1, '\0');
  write_bytes(list, zero + "\xff\xfe junk\nrelative/path\n\n/good\n/good\n/no" + zero + "pe\n/end");
  const auto files = names(list);
  CHECK(files == std::vector<path>{"/good", "/end"});
  CHECK(remember_file(list, "/new"));
  CHECK(names(list) == std::vector<path>{"/new", "/good", "/end"});
  CHECK_FALSE(remember_file(list, "/with\nnewline"));
  // A folder in its place, a file where its folder should be.
  CHECK(names(folder.path()).empty());
  CHECK_FALSE(remember_file(folder.path(), "/x"));
  CHECK_FALSE(remember_file(list / "recent", "/x"));
  write_bytes(list, std::string(1 << 20, 'x'));
  CHECK(names(list).empty());
  CHECK(remember_file(list, "/new"));
  CHECK(names(list) == std::vector<path>{"/new"});
}

TEST_CASE("what a capture was stands below its name, and those that are gone are found") {
  const TemporaryFolder folder;
  const path list = folder.path() / "recent", there = folder.path() / "there";
  write_bytes(there, "x");
  CHECK(remember_file(list, "/gone/capture", "Wan \u00b7 4 layers"));
  CHECK(remember_file(list, there, "a line\nbroken"));
  CHECK(remember_file(list, "ssh://server/dump"));
  std::vector<RecentFile> files = recent_files(list);
  find_gone(files);
  CHECK(files == std::vector<RecentFile>{{"ssh://server/dump", "", false},
                                         {there, one_line("a line\nbroken"), false},
                                         {"/gone/capture", "Wan \u00b7 4 layers", true}});
  // Facts are of the line above them alone.
  write_bytes(list, "\tnobody's\n/a\n\tfirst\n\tsecond\nrelative\n\tnobody's\n/b\n");
  CHECK(recent_files(list) == std::vector<RecentFile>{{"/a", "first"}, {"/b", ""}});
}
