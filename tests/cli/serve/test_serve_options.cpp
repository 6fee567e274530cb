// `attnscope serve` where more than this machine's own browser reaches it, as a process.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/serve/served_program.h"
#include "tests/support/catch.h"
#include "tests/support/project_paths.h"
#include "tests/support/raw_client.h"
#include "tests/support/temporary_folder.h"
#include "viewer/remote/web/web_token.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// An address of this machine's network; empty: it has none.
std::string network_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "";
  std::string found;
  for (const ifaddrs* each = all; each != nullptr && found.empty(); each = each->ifa_next) {
    const bool up = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    if (!up || each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* const address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
    found = text.data();
  }
  ::freeifaddrs(all);
  return found;
}

std::string get(const std::string& path, const std::string& host) {
  return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
}

int status_at(const std::string& address, int port, const std::string& request) {
  RawClient client(address, port);
  client.send(request);
  return status_of(client.receive_answer());
}

/// What the server says to whoever opens a WebSocket so and brings this token.
std::string greeting_of(RawClient& client, const std::string& request, const std::string& token) {
  client.send(request);
  if (status_of(client.receive_answer()) != 101) return "no WebSocket";
  client.send(websocket_frame(test::kText, token));
  return client.receive_frame().second;
}

std::string why_refused(const std::vector<std::string>& words, int code) {
  ServedProgram program(words);
  CHECK_FALSE(program.wait_for_address());
  const ProgramResult result = program.end();
  CHECK(result.exit_code == code);
  CHECK(result.out.empty());
  return result.err;
}

auto says(const std::string& text) { return Catch::Matchers::Contains(text); }

}  // namespace

TEST_CASE(
    "serve --bind is reached by the machine's other addresses, as docker -p does, and says so") {
  const std::string address = network_address();
  if (address.empty()) {
    WARN("skipped: this machine has loopback alone");
    return;
  }
  ServedProgram program({sample("moving-shapes"), "--bind", "0.0.0.0", "--quiet"});
  REQUIRE(program.wait_for_address());
  CHECK(program.host() == "127.0.0.1");
  const int port = program.port();
  // As a browser asks that docker forwards: by a name of its own machine.
  CHECK(status_at(address, port, get("/", "localhost:8765")) == 200);
  // The address is no name of this server's unless it is told.
  const std::string host = address + ":" + std::to_string(port);
  CHECK(status_at(address, port, get("/", host)) == 403);
  RawClient window(address, port);
  CHECK(greeting_of(window, websocket_request("localhost:8765", "http://localhost:8765"),
                    program.token())
            .starts_with("attnscope tiles "));
  RawClient stranger(address, port);
  CHECK_THAT(greeting_of(stranger, websocket_request("localhost:8765", "http://localhost:8765"),
                         std::string(32, '0')),
             says("this is not the token"));
  CHECK_THAT(program.err(), says("other machines can reach 0.0.0.0:" + std::to_string(port)) &&
                                says("nothing is encrypted") && says("--allow-host"));
  ServedProgram named({sample("moving-shapes"), "--bind", "0.0.0.0", "--allow-host", address});
  REQUIRE(named.wait_for_address());
  CHECK(status_at(address, named.port(), get("/", address + ":" + std::to_string(named.port()))) ==
        200);
}

TEST_CASE("serve --bind of one address is asked for by it, and is not at 127.0.0.1") {
  const std::string address = network_address();
  if (address.empty()) {
    WARN("skipped: this machine has loopback alone");
    return;
  }
  ServedProgram program({sample("moving-shapes"), "--bind", address, "--base-path", "/p"});
  REQUIRE(program.wait_for_address());
  CHECK(program.host() == address);
  CHECK(program.path() == "/p/");
  const std::string host = address + ":" + std::to_string(program.port());
  CHECK_THAT(program.ssh_line(), says(std::to_string(program.port()) + ":" + host));
  CHECK(status_at(address, program.port(), get("/p/", host)) == 200);
  CHECK(status_at(address, program.port(), get("/p/", "evil.example")) == 403);
  // Another program of this machine at another port is another place.
  RawClient neighbour(address, program.port());
  CHECK(greeting_of(neighbour, websocket_request(host, "http://" + address + ":1"),
                    program.token()) == "no WebSocket");
  RawClient window(address, program.port());
  CHECK(greeting_of(window, websocket_request(host, "http://" + host), program.token())
            .starts_with("attnscope tiles "));
  RawClient stranger(address, program.port());
  CHECK_THAT(greeting_of(stranger, websocket_request(host, "http://" + host), std::string(32, '0')),
             says("this is not the token"));
  CHECK_THROWS(RawClient(program.port()));
  ServedProgram local({sample("moving-shapes"), "--bind", "127.0.0.1"});
  REQUIRE(local.wait_for_address());
  CHECK(local.err().find("other machines") == std::string::npos);
}

TEST_CASE("serve behind a proxy takes the names and the path that were told, and no others") {
  ServedProgram program({sample("moving-shapes"), "--allow-host", "Hub.Example.org", "--allow-host",
                         "lab:8443", "--base-path", "/user/me/"});
  REQUIRE(program.wait_for_address());
  CHECK(program.path() == "/user/me/");
  const int port = program.port();
  const auto status = [&](const std::string& path, const std::string& host) {
    return status_at("127.0.0.1", port, get(path, host));
  };
  CHECK(status("/user/me/", "hub.example.org") == 200);
  CHECK(status("/user/me/window.js", "lab:8443") == 200);
  CHECK(status("/", "localhost:1") == 200);
  CHECK(status("/user/me/", "lab") == 403);
  CHECK(status("/user/me/", "evil.example") == 403);
  CHECK(status("/user/me/capture.json", "hub.example.org") == 404);
  std::string request = websocket_request("hub.example.org", "https://hub.example.org");
  request.insert(request.find('/'), "/user/me");
  RawClient window(port);
  CHECK(greeting_of(window, request, program.token()).starts_with("attnscope tiles "));
  RawClient foreign(port);
  CHECK(greeting_of(foreign, websocket_request("hub.example.org", "https://evil.example"),
                    program.token()) == "no WebSocket");
}

TEST_CASE("serve --token-file has the same token after it was started again") {
  const TemporaryFolder folder;
  const std::string file = folder / "token";
  std::string token;
  int port = 0;
  {
    ServedProgram first({sample("moving-shapes"), "--token-file", file});
    REQUIRE(first.wait_for_address());
    token = first.token();
    port = first.port();
    CHECK(read_bytes(file) == token + "\n");
    struct stat state {};
    REQUIRE(::stat(file.c_str(), &state) == 0);
    CHECK((state.st_mode & 07777) == 0600);
    first.signal(SIGINT);
    first.end();
  }
  ServedProgram second(
      {sample("moving-shapes"), "--token-file", file, "--port", std::to_string(port)});
  REQUIRE(second.wait_for_address());
  CHECK(second.token() == token);
  RawClient window(port);
  CHECK(greeting_of(window, websocket_request(port), token).starts_with("attnscope tiles "));
  ::chmod(file.c_str(), 0644);
  CHECK_THAT(why_refused({sample("moving-shapes"), "--token-file", file}, 1),
             says("--token-file " + file + ": others may open it (mode 0644)"));
  std::ofstream(folder / "words") << "a password\n";
  ::chmod((folder / "words").c_str(), 0600);
  CHECK_THAT(why_refused({sample("moving-shapes"), "--token-file", folder / "words"}, 1),
             says("expected 32 hexadecimal digits"));
}

TEST_CASE("serve says which of these options cannot be meant") {
  const std::string dump = sample("moving-shapes");
  CHECK_THAT(why_refused({dump, "--bind", "everywhere"}, 2),
             says("--bind everywhere: expected an address"));
  CHECK_THAT(why_refused({dump, "--bind", "192.0.2.1"}, 1), says("no such address"));
  CHECK_THAT(why_refused({dump, "--bind", "0.0.0.0", "--socket", "x"}, 2), says("expected one"));
  CHECK_THAT(why_refused({dump, "--allow-host", "*.example.org"}, 2), says("without wildcards"));
  CHECK_THAT(why_refused({dump, "--allow-host", "https://hub"}, 2), says("--allow-host"));
  CHECK_THAT(why_refused({dump, "--base-path", "p"}, 2), says("--base-path p: expected a path"));
  CHECK_THAT(why_refused({dump, "--token-file", ""}, 2), says("--token-file"));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--port", "8000"},
                                                {"--bind", "::1"},
                                                {"--allow-host", "lab"},
                                                {"--base-path", "/p/"},
                                                {"--token-file", "t"}}) {
    std::vector<std::string> all = {dump, "--stdio"};
    all.insert(all.end(), words.begin(), words.end());
    CHECK_THAT(why_refused(all, 2), says("--stdio: needs no " + words[0]));
  }
}

TEST_CASE("a place on another machine is for view, as every command says") {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"info"},
                                                {"stats"},
                                                {"export", "-o", "x.h5"},
                                                {"query", "--query", "0", "-o", "x.h5"},
                                                {"serve"}}) {
    std::vector<std::string> all = {words[0], "ssh://server/data/dump"};
    all.insert(all.end(), words.begin() + 1, words.end());
    CAPTURE(words[0]);
    const ProgramResult result = words[0] == "serve" ? ProgramResult{} : run_attnscope(all);
    const std::string err = words[0] == "serve" ? why_refused({all[1]}, 1) : result.err;
    if (words[0] != "serve") CHECK(result.exit_code == 1);
    CHECK_THAT(err, says("ssh://server/data/dump: there is no such file or folder: ssh:// is for "
                         "`attnscope view`"));
  }
  const ProgramResult scp = run_attnscope({"info", "me@server:/data/dump"});
  CHECK(scp.exit_code == 1);
  CHECK_THAT(scp.err, says("`attnscope view ssh://me@server/PATH`"));
}
