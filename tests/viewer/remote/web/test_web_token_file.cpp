// A token that a file keeps: whose it must be, and what may stand in it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "viewer/remote/web/web_token.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kToken = "0123456789abcdef0123456789abcdef";

void write_token(const std::string& path, const std::string& text, mode_t mode = 0600) {
  std::ofstream(path) << text;
  ::chmod(path.c_str(), mode);
}

auto says(const std::string& text) { return Catch::Matchers::Contains(text); }

}  // namespace

TEST_CASE("a token's file is made once, for its owner alone, and then kept") {
  const TemporaryFolder folder;
  const std::string path = folder / "token";
  const mode_t before = ::umask(0);
  const std::string token = token_of_file(path);
  ::umask(before);
  struct stat file {};
  REQUIRE(::lstat(path.c_str(), &file) == 0);
  CHECK(S_ISREG(file.st_mode));
  CHECK((file.st_mode & 07777) == 0600);
  CHECK(read_bytes(path) == token + "\n");
  CHECK(token.size() == 32);
  CHECK(token_of_file(path) == token);
  // Nothing else is left.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a token's file that others may open is refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "token";
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0666}) {
    CAPTURE(mode);
    write_token(path, kToken, mode);
    CHECK_THROWS_WITH(token_of_file(path), says("others may open it") && says("chmod 600"));
  }
  write_token(path, kToken + "\n", 0400);
  CHECK(token_of_file(path) == kToken);
}

TEST_CASE("a token's file is a regular one of one's own, and no link") {
  const TemporaryFolder folder;
  write_token(folder / "own", kToken);
  std::filesystem::create_symlink(folder / "own", folder / "link");
  CHECK_THROWS_WITH(token_of_file(folder / "link"), says("symbolic link"));
  std::filesystem::create_symlink(folder / "nowhere", folder / "dangling");
  CHECK_THROWS_WITH(token_of_file(folder / "dangling"), says("symbolic link"));
  CHECK_FALSE(std::filesystem::exists(folder / "nowhere"));
  std::filesystem::create_directory(folder / "folder");
  CHECK_THROWS_WITH(token_of_file(folder / "folder"), says("regular file"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(token_of_file(folder / "pipe"), says("regular file"));
  CHECK_THROWS_WITH(token_of_file(folder / "no/such/token"), says("cannot be made"));
  CHECK_THROWS_WITH(token_of_file("/dev/null"), says("regular file"));
  if (::geteuid() == 0) {
    REQUIRE(::chown((folder / "own").c_str(), 12345, 12345) == 0);
    CHECK_THROWS_WITH(token_of_file(folder / "own"), says("belongs to somebody else"));
  }
}

TEST_CASE("what is no token is not served by") {
  const TemporaryFolder folder;
  const std::string path = folder / "token";
  for (const std::string& text :
       {std::string(), std::string("\n"), kToken.substr(1), kToken + "0", kToken + "\n\n",
        kToken + " \n", kToken + "\r\n", "0123456789ABCDEF0123456789ABCDEF" + std::string(),
        std::string("hunter2"), std::string(32, 'g'), std::string(100000, '0'),
        kToken.substr(0, 31) + std::string(1, '\0')}) {
    CAPTURE(text.substr(0, 50));
    write_token(path, text);
    CHECK_THROWS_WITH(token_of_file(path), says("expected 32 hexadecimal digits"));
    CHECK(read_bytes(path) == text);
  }
}

TEST_CASE("servers that begin at once have one token of one file") {
  const TemporaryFolder folder;
  for (int round = 0; round < 20; ++round) {
    const std::string path = folder / ("token" + std::to_string(round));
    std::vector<std::string> tokens(4);
    std::atomic<size_t> here = 0;
    {
      std::vector<std::jthread> servers;
      for (std::string& token : tokens) {
        servers.emplace_back([&] {
          ++here;
          while (here < tokens.size()) std::this_thread::yield();
          token = token_of_file(path);
        });
      }
    }
    CHECK(std::set<std::string>(tokens.begin(), tokens.end()).size() == 1);
  }
}
