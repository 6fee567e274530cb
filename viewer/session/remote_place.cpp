#include "viewer/session/remote_place.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr std::string_view kScheme = "ssh://";

/// True of a user's or host's name of letters, digits, '-', '_' and '.': names have no other signs,
/// and some others would mean something to ssh or to a shell, as would a '-' in front.
bool is_name(const std::string& text) {
  return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}
bool is_address(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' ||
           c == '.';
  });
}

}  // namespace

std::string RemotePlace::login() const { return user.empty() ? host : user + "@" + host; }

bool is_remote_name(const std::string& name) { return name.rfind(kScheme, 0) == 0; }

RemotePlace parse_remote_place(const std::string& name) {
  const auto fail = [&](const std::string& what) {
    return usage_error(one_line(name) + ": " + what +
                       " (expected ssh://[user@]host[:port]/path, or /~/path from the home there)");
  };
  if (!is_remote_name(name)) throw fail("is no place on another machine");
  const size_t slash = name.find('/', kScheme.size());
  if (slash == std::string::npos || slash + 1 == name.size()) throw fail("names no path there");
  RemotePlace place;
  place.path = name.substr(slash);
  if (place.path.rfind("/~/", 0) == 0) place.path.erase(0, 3);
  if (place.path.empty()) throw fail("names no path there");
  if (place.path.find('\0') != std::string::npos || place.path.find('\n') != std::string::npos) {
    throw fail("the path holds a character that no shell hands on");
  }
  std::string machine = name.substr(kScheme.size(), slash - kScheme.size());
  if (const size_t at = machine.rfind('@'); at != std::string::npos) {
    place.user = machine.substr(0, at);
    machine.erase(0, at + 1);
    if (!is_name(place.user)) throw fail("no user is called " + one_line(place.user));
  }
  std::string port;
  if (!machine.empty() && machine.front() == '[') {
    const size_t end = machine.find(']');
    if (end == std::string::npos) throw fail("an address without its second bracket");
    place.host = machine.substr(1, end - 1);
    if (!is_address(place.host)) throw fail("no host has the address " + one_line(place.host));
    port = machine.substr(end + 1);
  } else {
    const size_t colon = std::min(machine.find(':'), machine.size());
    place.host = machine.substr(0, colon);
    if (!is_name(place.host)) throw fail("no host is called " + one_line(place.host));
    port = machine.substr(colon);
  }
  if (port.empty()) return place;
  const auto [end, error] = std::from_chars(port.data() + 1, port.data() + port.size(), place.port);
  if (port.front() != ':' || error != std::errc() || end != port.data() + port.size() ||
      place.port < 1 || place.port > 65535) {
    throw fail("no port " + one_line(port));
  }
  return place;
}

}  // namespace attnscope
