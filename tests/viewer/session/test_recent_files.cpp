#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"
#include "viewer/session/recent_files.h"

using namespace attnscope;
using namespace attnscope::test;
using std::filesystem::path;

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
  CHECK(recent_files(list).empty());
  for (int i = 0; i < 15; ++i) CHECK(remember_file(list, "/captures/" + std::to_string(i)));
  CHECK(remember_file(list, "/captures/./sub/../8"));
  const auto files = recent_files(list);
  REQUIRE(files.size() == kRecentFiles);
  CHECK(files[0] == path("/captures/8"));
  CHECK(files[1] == path("/captures/14"));
  CHECK(files[11] == path("/captures/3"));
  CHECK(std::count(files.begin(), files.end(), path("/captures/8")) == 1);
  CHECK(remember_file(list, "here"));
  CHECK(recent_files(list)[0] == std::filesystem::current_path() / "here");
}

TEST_CASE("damage is survived") {
  const TemporaryFolder folder;
  const path list = folder.path() / "recent";
  const std::string zero(1, '\0');
  write_bytes(list, zero + "\xff\xfe junk\nrelative/path\n\n/good\n/good\n/no" + zero + "pe\n/end");
  const auto files = recent_files(list);
  CHECK(files == std::vector<path>{"/good", "/end"});
  CHECK(remember_file(list, "/new"));
  CHECK(recent_files(list) == std::vector<path>{"/new", "/good", "/end"});
  CHECK_FALSE(remember_file(list, "/with\nnewline"));
  // A folder in its place, a file where its folder should be.
  CHECK(recent_files(folder.path()).empty());
  CHECK_FALSE(remember_file(folder.path(), "/x"));
  CHECK_FALSE(remember_file(list / "recent", "/x"));
  write_bytes(list, std::string(1 << 20, 'x'));
  CHECK(recent_files(list).empty());
  CHECK(remember_file(list, "/new"));
  CHECK(recent_files(list) == std::vector<path>{"/new"});
}
