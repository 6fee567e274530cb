// Where browsers come in: ports, Unix sockets, and what stands in their way.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/raw_client.h"
#include "tests/support/temporary_folder.h"
#include "viewer/remote/web/web_doors.h"
#include "viewer/remote/web/web_token.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

/// Leaves the socket's file as a server does that is killed.
void leave_socket(const std::string& path) {
  const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = address_of(path);
  REQUIRE(::bind(left, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(left);
}

/// True where somebody listens at the socket.
bool answers(const std::string& path) {
  const int knock = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = address_of(path);
  const bool connected =
      ::connect(knock, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(knock);
  return connected;
}

}  // namespace

TEST_CASE("a port is a free one, or the one that was named, once") {
  const WebDoors first = WebDoors::on_loopback(0);
  CHECK(first.port() > 0);
  CHECK_NOTHROW(RawClient(first.port()));
  CHECK_THROWS_WITH(WebDoors::on_loopback(first.port()),
                    Catch::Matchers::Contains("port " + std::to_string(first.port()) +
                                              " of 127.0.0.1 is in use"));
  const WebDoors second = WebDoors::on_loopback(0);
  CHECK(second.port() != first.port());
}

TEST_CASE("a port is free again when its server has ended") {
  int port = 0;
  {
    const WebDoors doors = WebDoors::on_loopback(0);
    port = doors.port();
    const RawClient client(port);
  }
  CHECK(WebDoors::on_loopback(port).port() == port);
}

TEST_CASE("an address of this machine is listened at, and no other") {
  const WebDoors all = WebDoors::on_address("0.0.0.0", 0);
  CHECK(all.port() > 0);
  CHECK_NOTHROW(RawClient(all.port()));
  CHECK_THROWS_WITH(WebDoors::on_address("0.0.0.0", all.port()),
                    Catch::Matchers::Contains("of 0.0.0.0 is in use"));
  const WebDoors second = WebDoors::on_address("127.0.0.2", 0);
  CHECK_THROWS(RawClient(second.port()));
  CHECK_NOTHROW(RawClient("127.0.0.2", second.port()));
  // One of TEST-NET-1, which no machine has.
  CHECK_THROWS_WITH(WebDoors::on_address("192.0.2.1", 0),
                    Catch::Matchers::Contains("this machine has no such address"));
}

TEST_CASE("what is no address is refused") {
  for (const char* text :
       {"", "localhost", "hub.example.org", "10.0.0", "10.0.0.256", "10.0.0.5:80", "010.0.0.1", "*",
        "[10.0.0.5]", "::g", "[::1", "fe80::1%eth0", "0"}) {
    CAPTURE(text);
    try {
      WebDoors::on_address(text, 0);
      FAIL("it was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      CHECK_THAT(error.what(), Catch::Matchers::Contains("--bind"));
    }
  }
  CHECK(BindAddress::parse("[FD00:0::5]").host() == "[fd00::5]");
  CHECK(BindAddress::parse("0:0::0").everywhere);
  CHECK(BindAddress::parse("127.8.9.1").loopback);
  CHECK_FALSE(BindAddress::parse("10.0.0.5").loopback);
}

TEST_CASE("a Unix socket is its owner's alone, and goes with its server") {
  const TemporaryFolder folder;
  const std::string path = folder / "s.sock";
  const mode_t before = ::umask(0);
  {
    const WebDoors doors = WebDoors::on_socket(path);
    ::umask(before);
    struct stat file {};
    REQUIRE(::lstat(path.c_str(), &file) == 0);
    CHECK(S_ISSOCK(file.st_mode));
    CHECK((file.st_mode & 0777) == 0600);
    CHECK(doors.port() == 0);
    CHECK_THROWS_WITH(WebDoors::on_socket(path),
                      Catch::Matchers::Contains("a server listens there already"));
    CHECK(std::filesystem::exists(path));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a socket that a killed server left is replaced, and nothing else is") {
  const TemporaryFolder folder;
  const std::string path = folder / "s.sock";
  leave_socket(path);
  REQUIRE(std::filesystem::exists(path));
  { const WebDoors doors = WebDoors::on_socket(path); }
  std::ofstream(path) << "somebody's";
  CHECK_THROWS_WITH(WebDoors::on_socket(path), Catch::Matchers::Contains("no socket lies there"));
  CHECK(read_bytes(path) == "somebody's");
}

TEST_CASE("of servers that come at once one takes the place of a socket that was left") {
  constexpr size_t kServers = 4;
  const TemporaryFolder folder;
  for (int round = 0; round < 40; ++round) {
    const std::string path = folder / ("s" + std::to_string(round));
    leave_socket(path);
    std::vector<std::optional<WebDoors>> doors(kServers);
    std::vector<std::string> problems(kServers);
    std::atomic<size_t> here = 0;
    {
      std::vector<std::jthread> servers;
      for (size_t i = 0; i < kServers; ++i) {
        servers.emplace_back([&, i] {
          ++here;
          while (here < kServers) std::this_thread::yield();
          try {
            doors[i].emplace(WebDoors::on_socket(path));
          } catch (const Error& error) {
            problems[i] = error.what();
          }
        });
      }
    }
    size_t taken = 0;
    for (size_t i = 0; i < kServers; ++i) {
      taken += doors[i] ? 1 : 0;
      if (doors[i]) continue;
      CHECK_THAT(problems[i], Catch::Matchers::Contains("a server listens there already"));
    }
    REQUIRE(taken == 1);
    CHECK(answers(path));
  }
}

TEST_CASE("a Unix socket that another server has put in its place is left to it") {
  const TemporaryFolder folder;
  const std::string path = folder / "s.sock";
  std::optional<WebDoors> first(WebDoors::on_socket(path));
  std::filesystem::rename(path, folder / "aside");
  const WebDoors second = WebDoors::on_socket(path);
  first.reset();
  CHECK(std::filesystem::exists(path));
}

TEST_CASE("a path that no socket can have is said") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(WebDoors::on_socket(folder / std::string(200, 'x')),
                    Catch::Matchers::Contains("1 to 107 bytes"));
  CHECK_THROWS_AS(WebDoors::on_socket(folder / "no/such/folder"), Error);
}

TEST_CASE("tokens are 32 digits that do not come again, and are compared as a whole") {
  std::set<std::string> all;
  for (int i = 0; i < 100; ++i) all.insert(new_web_token());
  CHECK(all.size() == 100);
  const std::string token = *all.begin();
  CHECK(token.size() == 32);
  CHECK(token.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(is_web_token(token, token));
  CHECK_FALSE(is_web_token(token.substr(1), token));
  CHECK_FALSE(is_web_token(token + "0", token));
  CHECK_FALSE(is_web_token("", token));
  CHECK_FALSE(is_web_token("", ""));
  for (size_t i = 0; i < token.size(); ++i) {
    std::string other = token;
    other[i] = other[i] == '0' ? '1' : '0';
    CHECK_FALSE(is_web_token(other, token));
  }
}
