// Whoever else is on the machine, or on a page that a browser shows, and wants what is served.
#include <sys/resource.h>
#include <zlib.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/raw_client.h"
#include "tests/support/waiting.h"
#include "tests/viewer/remote/remote_pair.h"
#include "tests/viewer/remote/web/front_server.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// A server of one small capture, and requests that have every right to come to it.
class Target {
 public:
  explicit Target(const FrontSetting& setting, const WebLimits& limits = {})
      : setting_(setting),
        oracle_(video_case()),
        harness_(oracle_.problem()),
        server_(harness_.service(), hello_of(oracle_.problem(), harness_.service()), limits,
                setting) {}
  FrontServer& server() { return server_; }
  int port() const { return server_.port(); }
  std::string host() const {
    return setting_.host.empty() ? "127.0.0.1:" + std::to_string(port()) : setting_.host;
  }
  std::string origin() const {
    return setting_.origin.empty() ? "http://" + host() : setting_.origin;
  }
  /// "GET /window.js", below the prefix.
  std::string request(const std::string& method_and_path,
                      const std::vector<std::string>& fields = {}) const {
    const size_t space = method_and_path.find(' ');
    std::string text = method_and_path.substr(0, space + 1) + setting_.prefix +
                       method_and_path.substr(space + 1) + " HTTP/1.1\r\nHost: " + host() + "\r\n";
    for (const std::string& field : fields) text += field + "\r\n";
    return text + "\r\n";
  }
  std::string knocking(const std::string& host, const std::string& origin) const {
    std::string text = websocket_request(host, origin);
    return text.insert(text.find('/'), setting_.prefix);
  }
  std::string knocking() const { return knocking(host(), origin()); }

  /// It still serves: the page to whoever asks, and messages to whoever has the token.
  void require_well() {
    RawClient reader(port());
    reader.send(request("GET /"));
    REQUIRE(reader.receive_answer().ends_with("\r\n\r\nthe page"));
    const auto window = look();
    window->send(websocket_frame(kBinary, to_frame({MessageType::greeted, to_wire(kProtocol)})));
    auto [opcode, bytes] = window->receive_frame();
    REQUIRE(opcode == kBinary);
    const auto hello = take_frame(bytes, kMostFromServer);
    REQUIRE(hello);
    REQUIRE(hello->type == MessageType::hello);
  }
  /// A WebSocket that is open, and has not brought a token.
  std::unique_ptr<RawClient> knock() {
    auto client = std::make_unique<RawClient>(port());
    client->send(knocking());
    REQUIRE(status_of(client->receive_answer()) == 101);
    return client;
  }
  /// A WebSocket of a window.
  std::unique_ptr<RawClient> look() {
    auto client = knock();
    client->send(websocket_frame(kText, server_.token()));
    REQUIRE(client->receive_frame().second.starts_with("attnscope tiles "));
    return client;
  }

 private:
  const FrontSetting setting_;
  Oracle oracle_;
  ServiceHarness harness_;
  FrontServer server_;
};

/// Each of the settings in turn.
const FrontSetting& any_setting() {
  return front_settings()[GENERATE(range(size_t{0}, front_settings().size()))];
}

WebLimits hasty() {
  WebLimits limits;
  limits.request_seconds = limits.token_seconds = 0.4;
  return limits;
}

/// A deflated frame, of a WebSocket that agreed on it: so many equal letters.
std::string deflated_frame(int opcode, size_t letters) {
  z_stream stream{};
  REQUIRE(::deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  const std::string plain(letters, 'a');
  std::string packed(letters / 100 + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(::deflate(&stream, Z_SYNC_FLUSH) == Z_OK);
  REQUIRE(stream.avail_in == 0);
  // Without the four bytes that a flush ends with.
  packed.resize(stream.total_out - 4);
  ::deflateEnd(&stream);
  std::string frame = websocket_frame(opcode, packed);
  frame[0] = static_cast<char>(frame[0] | 0x40);
  return frame;
}

std::string one_frame(const std::string& bytes) { return websocket_frame(kBinary, bytes); }

/// Resident bytes of this process.
int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

}  // namespace

TEST_CASE("a page of another place, or a name that leads here, cannot open a WebSocket") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  Target target(setting);
  const std::string own = target.host(), local = "127.0.0.1:" + std::to_string(target.port());
  const std::vector<std::pair<std::string, std::string>> all = {
      {own, "http://evil.example"},
      {own, "null"},
      {own, ""},
      {local, "https://" + local},
      {own, "http://" + own + "/"},
      {own, "http://" + own + ".evil.example"},
      {own, "http://evil.example/" + own},
      {own, "ws://" + own},
      {own, "https://hub.example.org.evil.example"},
      {own, "https://evil.hub.example.org"},
      {own, "https://hub.example.org:8443@evil.example"},
      {own, "https://hub.example.org:1x"},
      {"evil.example", "http://evil.example"},
      {"evil.example", target.origin()},
      {"evil.hub.example.org", target.origin()},
      {"hub.example.org.evil.example", target.origin()},
      {"hub.example.org.", target.origin()},
      {"10.0.0.50", target.origin()},
      {"", ""}};
  for (const auto& [host, origin] : all) {
    CAPTURE(host, origin);
    RawClient client(target.port());
    client.send(target.knocking(host, origin));
    const std::string answer = client.receive_all(10);
    CHECK(client.ended());
    CHECK(status_of(answer) == 403);
    CHECK(answer.find(target.server().token()) == std::string::npos);
  }
  target.require_well();
}

TEST_CASE("what a proxy says of others opens nothing, and keeps nobody out") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  Target target(setting);
  const auto status = [&](const std::string& host, const std::string& forwarded) {
    RawClient client(target.port());
    std::string request =
        target.request("GET /", {"X-Forwarded-Host: " + forwarded, "X-Forwarded-For: 127.0.0.1",
                                 "X-Forwarded-Proto: https", "X-Forwarded-Prefix: /elsewhere",
                                 "Forwarded: host=" + forwarded});
    const std::string own = "Host: " + target.host();
    request.replace(request.find(own), own.size(), "Host: " + host);
    client.send(request);
    return status_of(client.receive_answer());
  };
  CHECK(status("evil.example", target.host()) == 403);
  CHECK(status("evil.example", "127.0.0.1") == 403);
  CHECK(status(target.host(), "evil.example") == 200);
}

TEST_CASE("without the token nothing is said but that it is wrong") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  Target target(setting, hasty());
  const std::string token = target.server().token();
  std::string near = token;
  near.back() = near.back() == '0' ? '1' : '0';
  std::string upper = token;
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  if (upper == token) upper.back() = '-';
  const std::vector<std::string> frames = {
      websocket_frame(kText, near),
      websocket_frame(kText, upper),
      websocket_frame(kText, ""),
      websocket_frame(kText, token.substr(1)),
      websocket_frame(kText, token + "\n"),
      websocket_frame(kBinary, token),
      websocket_frame(kText, token.substr(0, 16)),
      websocket_frame(kText, std::string(200, 'a')),
      one_frame(to_frame({MessageType::greeted, to_wire(kProtocol)}))};
  for (size_t i = 0; i < frames.size(); ++i) {
    CAPTURE(i);
    const auto client = target.knock();
    client->send(frames[i]);
    CHECK(client->receive_frame() ==
          std::pair<int, std::string>{kClose, "\x11\x31this is not the token"});
  }
  // Longer than any token: the protocol's own code.
  const auto client = target.knock();
  client->send(websocket_frame(kText, std::string(5000, 'a')));
  CHECK(client->receive_close().first == 1009);
  CHECK(target.server().farewells().empty());
  target.require_well();
}

TEST_CASE("a token that comes too late, or drop by drop, is none") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  Target target(setting, hasty());
  const auto silent = target.knock();
  CHECK(silent->receive_close() == std::pair<int, std::string>{4401, "no token came"});
  const auto slow = target.knock();
  const std::string frame = websocket_frame(kText, target.server().token());
  const auto begin = std::chrono::steady_clock::now();
  for (const char byte : frame) {
    if (!slow->send(std::string(1, byte))) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  CHECK(slow->receive_close().first == 4401);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  CHECK(target.server().farewells().empty());
  target.require_well();
}

TEST_CASE("a token within parts of a message, and pings before it, are the protocol's own") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  Target target(setting);
  const std::string token = target.server().token();
  const auto client = target.knock();
  client->send(websocket_frame(kText, token.substr(0, 10), false));
  client->send(websocket_frame(kPing, "?"));
  client->send(websocket_frame(kContinuation, token.substr(10)));
  CHECK(client->receive_frame().first == 10);  // pong
  CHECK(client->receive_frame().second.starts_with("attnscope tiles "));
}

TEST_CASE("what is no message ends its window, with why, and no other") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  Target target(setting);
  const std::string greeted = to_frame({MessageType::greeted, to_wire(kProtocol)});
  std::string two = greeted + greeted;
  std::string cut = greeted.substr(0, greeted.size() - 1);
  std::string unknown = greeted;
  unknown[4] = 99;
  // It says that it inflates to four thousand million bytes.
  std::string bomb = to_frame({MessageType::wanted, std::string(100000, 'a')});
  for (size_t i = 6; i < 10; ++i) bomb[i] = static_cast<char>(0xff);
  const std::vector<std::pair<std::string, std::string>> all = {
      {websocket_frame(kText, greeted), "a message is binary"},
      {one_frame(""), "a frame that is not one message"},
      {one_frame(two), "a frame that is not one message"},
      {one_frame(cut), "a frame that is not one message"},
      {one_frame(unknown), "a type that there is none of"},
      {one_frame(bomb), "too long"},
      {one_frame(to_frame({MessageType::ping, "?"})), "no greeting"},
      {one_frame(to_frame({MessageType::greeted, to_wire(kProtocol + 1)})), "another protocol"},
      {one_frame(greeted) + one_frame(to_frame({MessageType::hello, ""})), "only a server says"}};
  for (const auto& [bytes, expected] : all) {
    CAPTURE(expected);
    const auto client = target.look();
    client->send(bytes);
    const auto [code, reason] = client->receive_close();
    CHECK(code == 4400);
    CHECK(reason.find(expected) != std::string::npos);
  }
  target.require_well();
}

TEST_CASE("frames that no WebSocket has end the connection, and nothing is kept of them") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  Target target(setting);
  std::string unmasked = websocket_frame(kText, "x");
  unmasked = std::string("\x81\x01x", 3);
  // A frame of 2^62 bytes, one that is longer than a message, and a length with its first bit set.
  const std::string endless("\x82\xff\x40\x00\x00\x00\x00\x00\x00\x00mask", 14);
  const std::string long_one("\x82\xff\x00\x00\x00\x00\x01\x00\x00\x00mask", 14);
  const std::string negative("\x82\xff\x80\x00\x00\x00\x00\x00\x00\x00mask", 14);
  const std::string reserved("\xf2\x80mask", 6);
  const std::string unknown("\x83\x80mask", 6);
  const std::string long_ping = websocket_frame(kPing, std::string(126, 'p'));
  const std::string bad_utf8 = websocket_frame(kText, "\xff\xfe");
  const std::string orphan = websocket_frame(kContinuation, "x");
  for (const std::string& bytes :
       {unmasked, endless, long_one, negative, reserved, unknown, long_ping, bad_utf8, orphan}) {
    for (const bool looks : {false, true}) {
      CAPTURE(bytes, looks);
      const auto client = looks ? target.look() : target.knock();
      client->send(bytes);
      const int code = client->receive_close().first;
      CHECK((code == 1002 || code == 1009 || code == 1007));
    }
  }
  target.require_well();
}

TEST_CASE("a message may be as long as one may be, and not longer, however it is cut") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  Target target(setting);
  const auto client = target.look();
  client->send(one_frame(to_frame({MessageType::greeted, to_wire(kProtocol)})));
  // As long as it may be: no wishes, but read as such.
  std::string body(kMostFromClient, 'x');
  client->send(one_frame(to_frame({MessageType::wanted, body}, FramePacking::plain)));
  CHECK(client->receive_close().first == 4400);
  const auto cut = target.look();
  const std::string piece(size_t{1} << 20, 'x');
  cut->send(websocket_frame(kBinary, piece, false));
  for (int i = 0; i < 5; ++i) {
    if (!cut->send(websocket_frame(kContinuation, piece, false))) break;
  }
  CHECK(cut->receive_close().first == 1009);
  target.require_well();
}

TEST_CASE("what inflates to more than a message may be is not inflated") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  Target target(setting);
  std::string request = target.knocking();
  request.insert(request.size() - 2, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
  const size_t letters = size_t{200} << 20;
  const std::string before_token = deflated_frame(kText, letters);
  const std::string bomb = deflated_frame(kBinary, letters);
  REQUIRE(bomb.size() < size_t{1} << 20);
  const int64_t before = resident_bytes();
  for (const bool looks : {false, true}) {
    CAPTURE(looks);
    RawClient client(target.port());
    client.send(request);
    const std::string answer = client.receive_answer();
    REQUIRE(field_of(answer, "Sec-WebSocket-Extensions").starts_with("permessage-deflate"));
    if (looks) client.send(websocket_frame(kText, target.server().token()));
    client.send(looks ? bomb : before_token);
    // Bytes that the server had not read when it closed may take its close frame with them.
    const int code = client.receive_close().first;
    CHECK((code == 1009 || code == -1));
  }
  REQUIRE(becomes([&] { return target.server().farewells().size() == 1; }));
  CHECK(target.server().farewells()[0] ==
        "The WebSocket message exceeded the locally configured limit");
  CHECK(resident_bytes() - before < int64_t{32} << 20);
  target.require_well();
}

TEST_CASE("requests that are none, too long, or with something in them are refused") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  Target target(setting);
  const std::vector<std::pair<std::string, int>> all = {
      {"nonsense\r\n\r\n", 400},
      {std::string("\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 11), 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/3.0\r\n\r\n", 400},
      {target.request("GET /../../../../etc/passwd"), 404},
      {target.request("GET /%2e%2e/%2e%2e/etc/passwd"), 404},
      {target.request("GET /./window.js"), 404},
      {target.request("GET //window.js"), 404},
      {target.request("GET /..%2f..%2fetc/passwd"), 404},
      {target.request("GET /p/../window.js"), 404},
      {target.request("GET /user/me/../../../etc/passwd"), 404},
      {"GET http://evil.example/ HTTP/1.1\r\nHost: " + target.host() + "\r\n\r\n", 404},
      {target.request("POST /", {"Content-Length: 0"}), 405},
      {"CONNECT evil.example:80 HTTP/1.1\r\nHost: " + target.host() + "\r\n\r\n", 405},
      {target.request("POST /", {"Content-Length: 100000000"}) + "x", 413},
      {target.request("GET /", {"Transfer-Encoding: chunked"}) + "1\r\nx\r\n0\r\n\r\n", 413},
      {target.request("GET /", {"Long: " + std::string(100000, 'x')}), 431},
      {"GET /" + std::string(100000, 'x'), 431},
      {target.request("GET /tiles"), 426}};
  for (const auto& [bytes, status] : all) {
    CAPTURE(bytes.substr(0, 60));
    RawClient client(target.port());
    client.send(bytes);
    const std::string answer = client.receive_answer();
    CHECK(status_of(answer) == status);
    CHECK(field_of(answer, "X-Content-Type-Options") == "nosniff");
    CHECK(answer.find("root:") == std::string::npos);
  }
  target.require_well();
}

TEST_CASE("something that comes before the WebSocket is open is refused") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  Target target(setting);
  RawClient client(target.port());
  client.send(target.knocking() + websocket_frame(kText, target.server().token()));
  // It may come in one piece or in two: never is it taken for more than a token in its turn.
  const int status = status_of(client.receive_answer());
  CHECK((status == 400 || status == 101));
  target.require_well();
}

TEST_CASE("who asks drop by drop is not waited for") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  Target target(setting, hasty());
  RawClient slow(target.port());
  const auto begin = std::chrono::steady_clock::now();
  slow.send("GET / HTTP/1.1\r\n");
  int drops = 0;
  while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
    if (!slow.send("X: y\r\n")) break;
    ++drops;
    if (slow.receive_all(0.05).size() > 0 || slow.ended()) break;
  }
  CHECK(slow.ended());
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  CHECK(becomes([&] { return target.server().connections() == 0; }));
}

TEST_CASE("who does not read the answer is not waited for, and costs no copy of it") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  WebLimits limits = hasty();
  limits.answer_seconds = 0.5;
  Target target(setting, limits);
  std::vector<std::unique_ptr<RawClient>> deaf;
  for (int i = 0; i < 100; ++i) {
    deaf.push_back(std::make_unique<RawClient>(target.port()));
    for (int k = 0; k < 3; ++k) {
      deaf.back()->send(target.request("GET /window.wasm"));
    }
  }
  CHECK(becomes([&] { return target.server().connections() == 0; }));
  target.require_well();
}

TEST_CASE("a thousand connections take little, and keep nobody out") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  ::setrlimit(RLIMIT_NOFILE, &files);
  Target target(setting);
  const auto window = target.look();
  window->send(one_frame(to_frame({MessageType::greeted, to_wire(kProtocol)})));
  CHECK(window->receive_frame().first == kBinary);
  const int64_t before = resident_bytes();
  std::vector<std::unique_ptr<RawClient>> all;
  for (int i = 0; i < 1000; ++i) {
    all.push_back(std::make_unique<RawClient>(target.port()));
    // Some say nothing, some begin a request, some open a WebSocket, some more than a header holds.
    if (i % 4 == 1) all.back()->send("GET / HTTP/1.1\r\nX: " + std::string(8000, 'x'));
    if (i % 4 == 2) all.back()->send(target.knocking());
    if (i % 4 == 3) all.back()->send(std::string(20000, '\x01'));
  }
  CHECK(target.server().most_connections() <= WebLimits{}.strangers + 1);
  CHECK(resident_bytes() - before < int64_t{64} << 20);
  // Whoever has the token still looks, and the page is there for a browser that comes now.
  RawClient reader(target.port());
  reader.send(target.request("GET /"));
  CHECK(reader.receive_answer().ends_with("\r\n\r\nthe page"));
  window->send(one_frame(to_frame({MessageType::ping, "there?"})));
  bool answered = false;
  for (int i = 0; i < 100 && !answered; ++i) {
    const auto [opcode, payload] = window->receive_frame();
    REQUIRE(opcode == kBinary);
    answered = payload.ends_with("there?");
  }
  CHECK(answered);
  CHECK(target.server().farewells().empty());
}

TEST_CASE("more WebSockets without a token than may be open: the oldest gives way") {
  const FrontSetting& setting = any_setting();
  CAPTURE(setting.name);
  Target target(setting);
  std::vector<std::unique_ptr<RawClient>> all;
  for (size_t i = 0; i < WebLimits{}.sockets + 1; ++i) all.push_back(target.knock());
  CHECK(all.front()->receive_close().first == -1);
  all.back()->send(websocket_frame(kText, target.server().token()));
  CHECK(all.back()->receive_frame().second.starts_with("attnscope tiles "));
  all[1]->send(websocket_frame(kText, target.server().token()));
  CHECK(all[1]->receive_frame().second.starts_with("attnscope tiles "));
}
