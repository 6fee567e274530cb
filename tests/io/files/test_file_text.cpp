#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "io/files/file_text.h"
#include "io/files/json_text.h"
#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// The name of a socket that nobody answers at.
void make_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(socket);
}

}  // namespace

TEST_CASE("a regular file is read, and nothing else is waited for") {
  const TemporaryFolder folder;
  write_bytes(folder / "text", "one\ntwo");
  CHECK(read_file_text(folder / "text") == "one\ntwo");
  CHECK(beginning_of_file(folder / "text", 3) == "one");
  CHECK(beginning_of_file(folder / "text", 100) == "one\ntwo");
  CHECK(thrown_text(ErrorCode::file, [&] { read_file_text(folder / "text", "a note", 6); }) ==
        (folder / "text") + ": is too long for a note (got 7 bytes, limit 6)");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  make_socket(folder / "socket");
  for (const std::string& path :
       {folder / "pipe", folder / "socket", folder.path().string(), std::string("/dev/zero")}) {
    INFO(path);
    const std::string text = thrown_text(ErrorCode::file, [&] { read_file_text(path); });
    INFO(text);
    CHECK(text.starts_with(path + ": "));
    CHECK(beginning_of_file(path, 8) == "");
  }
  CHECK(thrown_text(ErrorCode::file, [&] { read_file_text(folder / "pipe"); }) ==
        (folder / "pipe") + ": is no regular file");
  CHECK(beginning_of_file(folder / "nothing", 8) == "");
}

TEST_CASE("JSON is written as a text that every terminal shows") {
  const OrderedJson json{{"model", "x\u009b31m\u202e\x1b\ufeff é \xff"}};
  const std::string text = json_text(json);
  CHECK(text == "{\"model\":\"x\\u009b31m\\u202e\\u001b\\ufeff é \ufffd\"}");
  CHECK(OrderedJson::parse(text)["model"] == "x\u009b31m\u202e\x1b\ufeff é \ufffd");
  CHECK(json_text(OrderedJson{{"a", 1}}, 2) == "{\n  \"a\": 1\n}");
}
