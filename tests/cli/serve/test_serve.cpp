// `attnscope serve` for browsers, as a process: what it prints, whom it lets in, how it ends.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cli/serve/tiles_options.h"
#include "io/files/json_types.h"
#include "kernels/backend_factory.h"
#include "tests/cli/serve/served_program.h"
#include "tests/support/catch.h"
#include "tests/support/project_paths.h"
#include "tests/support/raw_client.h"
#include "tests/support/reference_call.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/waiting.h"
#include "tests/support/wishes.h"
#include "viewer/remote/remote_tile_source.h"
#include "viewer/remote/web/assets/web_assets.h"
#include "viewer/remote/web/web_doors.h"
#include "viewer/tiles/capture_tiles.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

/// A browser's side of the window: a WebSocket, and the tile source that it fills.
class ProgramWindow {
 public:
  explicit ProgramWindow(const ServedProgram& program) : line_(program.port()) {
    line_.send(websocket_request(program.port()));
    REQUIRE(status_of(line_.receive_answer()) == 101);
    line_.send(websocket_frame(test::kText, program.token()));
    REQUIRE(line_.receive_frame().second.starts_with("attnscope tiles "));
    send({MessageType::greeted, to_wire(kProtocol)});
  }
  /// Receives the hello, which lists the calls, and makes the tile source of it.
  RemoteHello hello() {
    const Message message = receive();
    REQUIRE(message.type == MessageType::hello);
    RemoteHello hello = read_hello(message.body);
    source_ = std::make_unique<RemoteTileSource>("there", hello, int64_t{256} << 20, [] {});
    return hello;
  }
  RemoteTileSource& source() { return *source_; }
  bool wait(const std::function<bool()>& ready) {
    const Message ping{MessageType::ping, "?"};
    return becomes([&] {
      for (const Message& message : source_->outgoing()) send(message);
      // There is always an answer to be waited for.
      send(ping);
      for (auto message = receive(); message.type != MessageType::pong; message = receive()) {
        source_->take(message);
      }
      return ready();
    });
  }
  RawClient& line() { return line_; }

 private:
  void send(const Message& message) {
    line_.send(websocket_frame(kBinary, to_frame(message, FramePacking::plain)));
  }
  Message receive() {
    auto [opcode, bytes] = line_.receive_frame();
    if (opcode != kBinary) throw std::runtime_error("no message comes: " + bytes);
    const auto message = take_frame(bytes, kMostFromServer);
    if (!message) throw std::runtime_error("a frame that is not one message");
    return *message;
  }

  RawClient line_;
  std::unique_ptr<RemoteTileSource> source_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::string answer_to(int port, const std::string& request) {
  RawClient client(port);
  client.send(request);
  return client.receive_answer();
}

/// Of a growing capture in a folder, the file of one step.
void record_step(const fs::path& dump, int64_t step, Json& listed) {
  const std::string name = "step" + std::to_string(step) + ".safetensors";
  fs::create_directory(dump);
  ReferenceCall({1, 2, 2, 40, 40, 8}, static_cast<uint64_t>(step))
      .fact("kind", "self")
      .fact("step", std::to_string(step))
      .fact("layer", "0")
      .write(dump / name);
  listed.push_back({{"file", name}});
  write_bytes(dump / "catalogue.part",
              Json{{"format", "attnscope-capture/1"}, {"calls", listed}}.dump());
  fs::rename(dump / "catalogue.part", dump / "capture.json");
}

}  // namespace

TEST_CASE("serve shows a capture to a browser with the bits that it has here") {
  ServedProgram program({sample("moving-shapes"), "--cache", "none"});
  REQUIRE(program.wait_for_address());
  const int port = program.port();
  CHECK(program.ssh_line().starts_with("ssh -N -L " + std::to_string(port) +
                                       ":127.0.0.1:" + std::to_string(port) + " "));
  const std::string page = answer_to(port, http_request("GET / HTTP/1.1", port));
  CHECK(status_of(page) == 200);
  CHECK(field_of(page, "Content-Encoding") == "gzip");
  CHECK(page.find("\r\n\r\n\x1f\x8b") != std::string::npos);
  CHECK(page.find(program.token()) == std::string::npos);
  CHECK(status_of(answer_to(port, http_request("GET /capture.json HTTP/1.1", port))) == 404);
  CHECK(status_of(answer_to(port, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")) == 403);

  ProgramWindow window(program);
  const RemoteHello hello = window.hello();
  CHECK(hello.calls.size() == 4);
  const HeadId head{1, 0, 3};
  WishesByKind wishes;
  wishes.tiles = {{head, Quantity::weights, 0, 0, 0, {}}, {head, Quantity::weights, 1, 0, 0, {}}};
  wishes.line = LineRequest{head, Quantity::weights, false, {700}, false};
  wishes.exact = {head};
  window.source().want(wishes);
  REQUIRE(window.wait([&] {
    return std::all_of(wishes.tiles.begin(), wishes.tiles.end(),
                       [&](const TileId& id) {
                         const auto tile = find(window.source(), id);
                         return tile && tile->exact;
                       }) &&
           find(window.source(), *wishes.line);
  }));
  const auto capture = Capture::open(sample("moving-shapes"));
  const auto backend = make_backend(BackendKind::automatic);
  TilesOptions options;
  options.cache = "none";
  CaptureTiles local(capture, *backend, options.of_captures(capture), false, [] {});
  local.want(wishes);
  REQUIRE(becomes([&] { return !local.status().busy; }));
  for (const TileId& id : wishes.tiles) {
    const auto here = find(local, id), there = find(window.source(), id);
    REQUIRE(here);
    CHECK(here->exact);
    CHECK(same_bits(here->max, there->max));
    CHECK(same_bits(here->mean, there->mean));
    CHECK(std::any_of(there->max.begin(), there->max.end(), [](float v) { return v != 0; }));
  }
  CHECK(same_bits(find(local, *wishes.line)->values, find(window.source(), *wishes.line)->values));

  program.signal(SIGINT);
  CHECK(window.line().receive_close() == std::pair<int, std::string>{1001, "the server has ended"});
  const ProgramResult result = program.end();
  CHECK(result.exit_code == 4);
  CHECK(result.err.find("a window is open") != std::string::npos);
}

TEST_CASE("serve ends with any of the signals, at once with a second one") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(number);
    ServedProgram program({sample("moving-shapes"), "--quiet"});
    REQUIRE(program.wait_for_address());
    program.signal(number);
    const ProgramResult result = program.end();
    CHECK(result.exit_code == 4);
    CHECK(result.err.empty());
  }
  ServedProgram program({sample("moving-shapes")});
  REQUIRE(program.wait_for_address());
  // It would wait for this window to take leave.
  ProgramWindow window(program);
  program.signal(SIGTERM);
  REQUIRE(window.line().receive_close().first == 1001);
  program.signal(SIGTERM);
  const int code = program.end().exit_code;
  CHECK((code == 128 + SIGTERM || code == 4));
}

TEST_CASE("serve says which port is taken, and takes the one that is named") {
  ServedProgram first({sample("moving-shapes")});
  REQUIRE(first.wait_for_address());
  const std::string port = std::to_string(first.port());
  ServedProgram second({sample("moving-shapes"), "--port", port});
  CHECK_FALSE(second.wait_for_address());
  const ProgramResult result = second.end();
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("port " + port + " of 127.0.0.1 is in use: name another with --port") !=
        std::string::npos);
  CHECK(result.out.empty());
  first.signal(SIGINT);
  first.end();
  ServedProgram third({sample("moving-shapes"), "--port", port});
  REQUIRE(third.wait_for_address());
  CHECK(std::to_string(third.port()) == port);
}

TEST_CASE("serve listens at a Unix socket that is yours alone") {
  const TemporaryFolder folder;
  const std::string path = folder / "s: ock";
  {
    ServedProgram killed({sample("moving-shapes"), "--socket", path});
    REQUIRE(killed.wait_for_address());
    killed.signal(SIGKILL);
    killed.end();
  }
  CHECK(fs::exists(path));
  ServedProgram program({sample("moving-shapes"), "--socket", path});
  REQUIRE(program.wait_for_address());
  CHECK(program.ssh_line().find("'" + std::to_string(program.port()) + ":" + (folder / "s\\: ock") +
                                "'") != std::string::npos);
  CHECK((fs::status(path).permissions() & fs::perms::all) ==
        (fs::perms::owner_read | fs::perms::owner_write));
  CHECK_THROWS(RawClient(program.port()));
  RawClient client(path);
  client.send(http_request("GET / HTTP/1.1", 8765));
  CHECK(status_of(client.receive_answer()) == 200);
  ServedProgram second({sample("moving-shapes"), "--socket", path});
  CHECK_FALSE(second.wait_for_address());
  const ProgramResult result = second.end();
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("a server listens there already") != std::string::npos);
  program.signal(SIGINT);
  CHECK(program.end().exit_code == 4);
  CHECK_FALSE(fs::exists(path));
  ServedProgram too_long({sample("moving-shapes"), "--socket", folder / std::string(150, 'x')});
  CHECK_FALSE(too_long.wait_for_address());
  CHECK(too_long.end().exit_code == 2);
}

TEST_CASE("serve says what cannot be meant") {
  const auto refused = [](const std::vector<std::string>& words, int code) {
    ServedProgram program(words);
    CHECK_FALSE(program.wait_for_address());
    const ProgramResult result = program.end();
    CHECK(result.exit_code == code);
    return result.err;
  };
  const std::string dump = sample("moving-shapes");
  CHECK(refused({dump, "--port", "0"}, 2).find("--port") != std::string::npos);
  CHECK(refused({dump, "--port", "70000"}, 2).find("--port") != std::string::npos);
  CHECK(refused({dump, "--port", "8000", "--socket", "x"}, 2).find("expected one") !=
        std::string::npos);
  CHECK(refused({dump, "--stdio", "--port", "8000"}, 2).find("needs no --port") !=
        std::string::npos);
  CHECK(refused({"/no/such/dump"}, 1).find("/no/such/dump") != std::string::npos);
  CHECK(refused({dump, dump, "--follow"}, 2).find("follows one CAPTURE") != std::string::npos);
}

TEST_CASE("serve without the page says what the build lacks") {
  // So that a build with the page ends, too.
  const WebDoors taken = WebDoors::on_loopback(0);
  const ProgramResult result =
      run_attnscope({"serve", sample("moving-shapes"), "--port", std::to_string(taken.port())});
  CHECK(result.exit_code == 1);
  const std::string expected =
      web_assets().empty() ? "built without the page for browsers" : "of 127.0.0.1 is in use";
  CHECK(result.err.find(expected) != std::string::npos);
  CHECK(result.out.empty());
}

TEST_CASE("serve --follow lets a window in before there is anything, and shows what comes") {
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump";
  ServedProgram program({dump.string(), "--follow", "--cache", "none"});
  REQUIRE(program.wait_for_address());
  CHECK(status_of(answer_to(program.port(), http_request("GET / HTTP/1.1", program.port()))) ==
        200);
  ProgramWindow early(program);
  // The first file is written while it is looked at.
  Json listed = Json::array();
  record_step(folder.path() / "elsewhere", 0, listed);
  const std::string bytes = read_file(folder / "elsewhere/step0.safetensors");
  fs::create_directory(dump);
  write_bytes(dump / "step0.safetensors", bytes.substr(0, bytes.size() / 2));
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  listed.clear();
  record_step(dump, 0, listed);
  CHECK(early.hello().calls.size() == 1);
  record_step(dump, 1, listed);
  size_t added = 0;
  REQUIRE(early.wait([&] {
    for (const RemoteAdded& more : early.source().take_added()) added += more.calls.size();
    return added == 1;
  }));
  // Nobody looks while one more comes: the next window has it from the start.
  early.line().close();
  record_step(dump, 2, listed);
  REQUIRE(becomes([&] {
    ProgramWindow later(program);
    const RemoteHello hello = later.hello();
    return hello.calls.size() == 3 && hello.own_calls == 3;
  }));
  ProgramWindow later(program);
  later.hello();
  const ProbeRequest probe{{2, 0, 0}, 7, 9};
  WishesByKind wishes;
  wishes.probes = {probe};
  later.source().want(wishes);
  REQUIRE(later.wait([&] { return find(later.source(), probe) != nullptr; }));
  const double exact = ReferenceCall({1, 2, 2, 40, 40, 8}, 2).row(0, 0, 7)[9];
  CHECK(find(later.source(), probe)->weight == Approx(exact).epsilon(1e-5));
}

TEST_CASE("serve tells a window of a file that was changed meanwhile") {
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump";
  Json listed = Json::array();
  record_step(dump, 0, listed);
  ServedProgram program({dump.string(), "--cache", "none"});
  REQUIRE(program.wait_for_address());
  ProgramWindow window(program);
  window.hello();
  // Only files that were read must stay unchanged: the probe makes the program read this one.
  WishesByKind wishes;
  wishes.probes = {{{0, 0, 0}, 7, 9}};
  window.source().want(wishes);
  REQUIRE(window.wait([&] { return find(window.source(), wishes.probes[0]) != nullptr; }));
  CHECK_NOTHROW(window.source().require_unchanged());
  ReferenceCall({1, 2, 2, 40, 40, 8}, 77)
      .fact("kind", "self")
      .fact("step", "0")
      .fact("layer", "0")
      .write(dump / "step0.safetensors");
  CHECK(window.wait([&] {
    try {
      window.source().require_unchanged();
      return false;
    } catch (const Error&) {
      return true;
    }
  }));
}

TEST_CASE("a thousand connections cost serve little memory, and keep no window from its maps") {
  // As many files as usual, and fewer than there are connections that it would keep.
  const int64_t files = GENERATE(1024, 100);
  // Before UBSan calls an object's type wrong it looks whether its memory can be read, by a pipe:
  // without two files to be had, every object that it has not met before is wrong.
  if (sanitized() && files < 1024) return;
  CAPTURE(files);
  ProgramSettings settings;
  settings.soft_files = files;
  ServedProgram program({sample("moving-shapes"), "--cache", "none"}, settings);
  REQUIRE(program.wait_for_address());
  ProgramWindow window(program);
  window.hello();
  const int64_t before = program.peak_bytes();
  std::vector<std::unique_ptr<RawClient>> all;
  for (int i = 0; i < 1000; ++i) {
    // This process may open as few files as any: of those that the server has closed, half go.
    if (all.size() == 500) all.erase(all.begin(), all.begin() + 250);
    all.push_back(std::make_unique<RawClient>(program.port()));
    all.back()->send(i % 2 == 0 ? "GET / HTTP/1.1\r\nX: " + std::string(8000, 'x')
                                : websocket_request(program.port()));
  }
  const int64_t grown = program.peak_bytes() - before;
  INFO("peak RSS grew by " << grown / 1024 << " KiB, from " << before / 1024);
  CHECK(grown < int64_t{48} << 20);
  CHECK(window.wait([] { return true; }));
  all.clear();
  const int port = program.port();
  CHECK(becomes(
      [&] { return status_of(answer_to(port, http_request("GET / HTTP/1.1", port))) == 200; }));
}

TEST_CASE("serve stands at ::1 as well, and does without where a machine has no IPv6") {
  const bool without = GENERATE(false, true);
  CAPTURE(without);
  ProgramSettings settings;
  if (without) {
    settings.environment = {"LD_PRELOAD=" + fault_libraries(), "ATTNSCOPE_FAULT=no-ipv6"};
  }
  ServedProgram program({sample("moving-shapes")}, settings);
  REQUIRE(program.wait_for_address());
  const int client = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<uint16_t>(program.port()));
  address.sin6_addr = in6addr_loopback;
  const bool there = client >= 0 && ::connect(client, reinterpret_cast<const sockaddr*>(&address),
                                              sizeof address) == 0;
  if (client >= 0) ::close(client);
  const std::string addresses =
      fs::exists("/proc/net/if_inet6") ? read_file("/proc/net/if_inet6") : "";
  const bool machine_has = addresses.find("00000000000000000000000000000001") != std::string::npos;
  CHECK(there == (machine_has && !without));
  const int port = program.port();
  CHECK(status_of(answer_to(port, http_request("GET / HTTP/1.1", port))) == 200);
}
