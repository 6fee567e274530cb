#include "tests/viewer/gl/real_input.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace attnscope::test {
namespace {

// Requests and events of the X protocol, version 11, and of XTEST, version 2.
constexpr uint8_t kQueryExtension = 98, kGetKeyboardMapping = 101, kGetInputFocus = 43;
constexpr uint8_t kChangeProperty = 18, kFakeInput = 2;
constexpr uint32_t kResourceManager = 23, kString = 31;  ///< atoms
constexpr uint8_t kKeyPress = 2, kKeyRelease = 3, kButtonPress = 4, kButtonRelease = 5, kMotion = 6;

size_t padded(size_t bytes) { return (bytes + 3) / 4 * 4; }

void put16(std::vector<uint8_t>& to, size_t value) {
  to.push_back(static_cast<uint8_t>(value & 0xff));
  to.push_back(static_cast<uint8_t>(value >> 8 & 0xff));
}

void put32(std::vector<uint8_t>& to, uint32_t value) {
  put16(to, value & 0xffff);
  put16(to, value >> 16);
}

void put_text(std::vector<uint8_t>& to, const std::string& text) {
  to.insert(to.end(), text.begin(), text.end());
  to.resize(to.size() + padded(text.size()) - text.size());
}

size_t get16(const uint8_t* from) { return from[0] | static_cast<size_t>(from[1]) << 8; }

uint32_t get32(const uint8_t* from) {
  return static_cast<uint32_t>(get16(from) | get16(from + 2) << 16);
}

/// The cookie of the display that `xvfb-run` has written; empty: there is none.
std::string cookie_of(const std::string& number) {
  const char* const path = std::getenv("XAUTHORITY");
  if (path == nullptr) return "";
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  // Entries: a family, then address, number, name and data, each after its length (high byte
  // first).
  size_t at = 0;
  const auto take = [&] {
    if (at + 2 > all.size()) throw std::runtime_error("XAUTHORITY ends early");
    const size_t size =
        static_cast<size_t>(static_cast<uint8_t>(all[at])) << 8 | static_cast<uint8_t>(all[at + 1]);
    const std::string text = all.substr(at + 2, size);
    at += 2 + size;
    return text;
  };
  while (at + 2 < all.size()) {
    at += 2;
    take();
    const std::string display = take(), name = take(), data = take();
    if (name == "MIT-MAGIC-COOKIE-1" && (display.empty() || display == number)) return data;
  }
  return "";
}

std::string display_number() {
  const char* const display = std::getenv("DISPLAY");
  if (display == nullptr || *display != ':')
    throw std::runtime_error("DISPLAY is no local display");
  std::string number(display + 1);
  return number.substr(0, number.find('.'));
}

}  // namespace

RealInput::RealInput() {
  connect_display();
  try {
    set_up();
    find_extension();
    read_keyboard();
  } catch (...) {
    close(socket_);
    throw;
  }
}

RealInput::~RealInput() { close(socket_); }

void RealInput::connect_display() {
  const std::string path = "/tmp/.X11-unix/X" + display_number();
  // The abstract name first, which has no file.
  for (const bool abstract : {true, false}) {
    socket_ = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + (abstract ? 1 : 0), path.data(), path.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), length) == 0) return;
    close(socket_);
  }
  throw std::runtime_error("cannot reach the display at " + path);
}

void RealInput::set_up() {
  const std::string cookie = cookie_of(display_number());
  const std::string name = cookie.empty() ? "" : "MIT-MAGIC-COOKIE-1";
  std::vector<uint8_t> hello{'l', 0};
  put16(hello, 11);
  put16(hello, 0);
  put16(hello, name.size());
  put16(hello, cookie.size());
  put16(hello, 0);
  put_text(hello, name);
  put_text(hello, cookie);
  send(hello);
  uint8_t head[8];
  receive(head, sizeof head);
  std::vector<uint8_t> rest(4 * get16(head + 6));
  receive(rest.data(), rest.size());
  if (head[0] != 1) throw std::runtime_error("the display refuses a connection");
  first_code_ = rest[26];
  last_code_ = rest[27];
  const size_t vendor = padded(get16(rest.data() + 16)), formats = rest[21];
  root_ = get32(rest.data() + 32 + vendor + 8 * formats);
}

void RealInput::find_extension() {
  const std::string name = "XTEST";
  std::vector<uint8_t> request{kQueryExtension, 0};
  put16(request, 2 + padded(name.size()) / 4);
  put16(request, name.size());
  put16(request, 0);
  put_text(request, name);
  send(request);
  const std::vector<uint8_t> found = reply();
  if (found[8] == 0) throw std::runtime_error("the display has no XTEST");
  extension_ = found[9];
}

void RealInput::read_keyboard() {
  const auto count = static_cast<uint8_t>(last_code_ - first_code_ + 1);
  std::vector<uint8_t> request{kGetKeyboardMapping, 0};
  put16(request, 2);
  request.insert(request.end(), {first_code_, count, 0, 0});
  send(request);
  const std::vector<uint8_t> map = reply();
  symbols_per_code_ = map[1];
  for (size_t at = 32; at + 4 <= map.size(); at += 4) symbols_.push_back(get32(map.data() + at));
}

void RealInput::send(const std::vector<uint8_t>& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = write(socket_, bytes.data() + sent, bytes.size() - sent);
    if (n <= 0) throw std::runtime_error("the display takes nothing any more");
    sent += static_cast<size_t>(n);
  }
}

void RealInput::receive(uint8_t* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = read(socket_, to, bytes);
    if (n <= 0) throw std::runtime_error("the display answers no more");
    to += n;
    bytes -= static_cast<size_t>(n);
  }
}

std::vector<uint8_t> RealInput::reply() {
  while (true) {
    std::vector<uint8_t> answer(32);
    receive(answer.data(), answer.size());
    if (answer[0] == 0) throw std::runtime_error("the display refuses a request");
    if (answer[0] != 1) continue;
    answer.resize(32 + 4 * size_t{get32(answer.data() + 4)});
    receive(answer.data() + 32, answer.size() - 32);
    return answer;
  }
}

void RealInput::synchronise() {
  std::vector<uint8_t> request{kGetInputFocus, 0};
  put16(request, 1);
  send(request);
  reply();
}

void RealInput::fake(uint8_t type, uint8_t detail, int x, int y) {
  std::vector<uint8_t> request{extension_, kFakeInput};
  put16(request, 9);
  request.insert(request.end(), {type, detail, 0, 0});
  put32(request, 0);
  put32(request, type == kMotion ? root_ : 0);
  request.resize(request.size() + 8);
  put16(request, static_cast<size_t>(x));
  put16(request, static_cast<size_t>(y));
  request.resize(request.size() + 8);
  send(request);
  synchronise();
}

void RealInput::move(int x, int y) { fake(kMotion, 0, x, y); }

void RealInput::button(int number, bool down) {
  fake(down ? kButtonPress : kButtonRelease, static_cast<uint8_t>(number), 0, 0);
}

RealInput::KeyPlace RealInput::place_of(uint32_t symbol) const {
  for (size_t i = 0; i < symbols_.size(); ++i) {
    const size_t level = i % symbols_per_code_;
    if (symbols_[i] != symbol || level > 1) continue;
    return {static_cast<uint8_t>(first_code_ + i / symbols_per_code_), level == 1};
  }
  throw std::runtime_error("the keyboard has no key of symbol " + std::to_string(symbol));
}

void RealInput::key(uint32_t symbol, bool down) {
  fake(down ? kKeyPress : kKeyRelease, place_of(symbol).code, 0, 0);
}

void RealInput::tap(uint32_t symbol) {
  const bool shifted = place_of(symbol).shifted;
  if (shifted) key(kShift, true);
  key(symbol, true);
  key(symbol, false);
  if (shifted) key(kShift, false);
  // GLFW takes two presses of a key within a millisecond for one.
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

void RealInput::set_resources(const std::string& text) {
  std::vector<uint8_t> request{kChangeProperty, 0};
  put16(request, 6 + padded(text.size()) / 4);
  put32(request, root_);
  put32(request, kResourceManager);
  put32(request, kString);
  put32(request, 8);  // bits of an item, then three bytes that say nothing
  put32(request, static_cast<uint32_t>(text.size()));
  put_text(request, text);
  send(request);
  synchronise();
}

void RealInput::type(const std::string& text) {
  for (const char letter : text) tap(static_cast<uint8_t>(letter));
}

}  // namespace attnscope::test
