#include <filesystem>
#include <fstream>

#include "cli/common/system_memory.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("the memory that control groups leave") {
  const TemporaryFolder folder;
  const std::string root = folder.path().string();
  std::filesystem::create_directories(folder.path() / "a/b");
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder.path() / name) << text;
  };
  CHECK_FALSE(control_group_memory(root, "/a/b"));
  write("a/b/memory.max", "max\n");
  write("a/b/memory.current", "500\n");
  CHECK_FALSE(control_group_memory(root, "/a/b"));
  // The limit of the group around it counts too, and cached files are no use of memory.
  write("a/memory.max", "1000\n");
  write("a/memory.current", "700\n");
  write("a/memory.stat", "anon 100\nactive_file 50\ninactive_file 250\n");
  CHECK(control_group_memory(root, "/a/b") == 550);
  write("a/b/memory.max", "600\n");
  CHECK(control_group_memory(root, "/a/b") == 100);
  write("a/b/memory.current", "9999\n");
  CHECK(control_group_memory(root, "/a/b") == 0);
  CHECK(control_group_memory(root, "/a") == 550);
  CHECK_FALSE(control_group_memory(root, "/"));
  CHECK(available_memory() > 0);
}
