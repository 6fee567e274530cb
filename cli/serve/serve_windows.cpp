#include "cli/serve/serve_windows.h"

#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <vector>

#include "cli/serve/first_look.h"
#include "core/base/error.h"
#include "viewer/session/view_link.h"

namespace attnscope {
namespace {

/// Of the laptop, where there is none of this machine to be taken; another one will do.
constexpr int kPortThere = 8765;
constexpr double kIdleSeconds = 5;

/// How ssh comes here: "me@server".
std::string login_here() {
  std::array<char, 256> host{};
  const bool named = ::gethostname(host.data(), host.size() - 1) == 0 && host[0] != '\0';
  std::array<char, 4096> room{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::geteuid(), &entry, room.data(), room.size(), &found);
  const std::string at = named ? host.data() : "HOST";
  return found == nullptr ? at : std::string(found->pw_name) + "@" + at;
}

/// A path as a part of what ssh takes apart at colons.
std::string forwarded_path(const std::string& path) {
  std::string out;
  for (const char c : std::filesystem::absolute(path).lexically_normal().string()) {
    if (c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// What came while nobody looked is in the hello; what went wrong then is said again.
TileServer server_for_window(Served& served) {
  served.take_added();
  TileServer server(served.tiles(), served.hello(), served.watched());
  if (!served.problem().empty()) server.add({{}, {}, {}, served.problem()});
  return server;
}

void serve_window(Served& served, WebWindow& window, const EventBell& bell, const Console& console,
                  const std::stop_token& stop) {
  console.say("a window is open");
  try {
    TileServer server = server_for_window(served);
    serve_messages(server, window, bell, stop, [&] {
      for (const RemoteAdded& added : served.take_added()) server.add(added);
    });
  } catch (const Error& e) {
    window.refuse(e.what());
  }
  // Nothing is computed for nobody.
  served.tiles().want({});
  if (!window.ended().empty()) console.say("a window has gone: " + one_line(window.ended()));
}

}  // namespace

std::string web_addresses(int port, const std::string& socket, const std::string& token) {
  const int there = port == 0 ? kPortThere : port;
  const std::string here = port == 0 ? forwarded_path(socket) : fmt::format("127.0.0.1:{}", port);
  return fmt::format("http://127.0.0.1:{}/#token={}\nssh -N -L {} {}\n", there, token,
                     shell_quoted(fmt::format("{}:{}", there, here)), shell_quoted(login_here()));
}

void serve_windows(Served& served, WebFront& front, const EventBell& bell, const Console& console,
                   const std::stop_token& stop) {
  FirstLook first(served.tiles(), served.hello());
  while (!stop.stop_requested()) {
    if (const auto window = front.take_window()) {
      first.leave();
      serve_window(served, *window, bell, console, stop);
      continue;
    }
    front.wait(kIdleSeconds, bell.descriptor());
    bell.quiet();
    first.look();
  }
}

}  // namespace attnscope
