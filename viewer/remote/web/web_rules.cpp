#include "viewer/remote/web/web_rules.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// The parts of what a browser says of a host.
struct HostText {
  std::string name;                      ///< lower case; of IPv6 with its brackets
  std::optional<std::string_view> port;  ///< digits
};

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 && std::all_of(text.begin(), text.end(), is_digit);
}

/// Nothing: it is in no form of a host.
std::optional<HostText> parse_host(std::string_view host) {
  const size_t end = host.starts_with('[') ? host.find(']') : host.find(':');
  if (host.starts_with('[') && end == std::string_view::npos) return std::nullopt;
  const size_t length = host.starts_with('[') ? end + 1 : std::min(end, host.size());
  const std::string_view rest = host.substr(length);
  HostText parts{in_lower_case(host.substr(0, length)), {}};
  if (rest.empty()) return parts;
  if (rest.front() != ':' || !is_port(rest.substr(1))) return std::nullopt;
  parts.port = rest.substr(1);
  return parts;
}

bool is_loopback_name(const std::string& name) {
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

bool is_allowed(std::string_view host, const WebRules& rules) {
  const auto parts = parse_host(host);
  if (!parts) return false;
  const std::string whole = in_lower_case(host);
  return std::any_of(rules.hosts.begin(), rules.hosts.end(),
                     [&](const std::string& each) { return each == parts->name || each == whole; });
}

/// An address of IPv6 in brackets as browsers write it, whatever zeros were told; nothing: none.
std::optional<std::string> ipv6_host(const std::string& name) {
  const std::string inner = name.substr(1, name.size() - 2);
  std::array<unsigned char, 16> bits{};
  if (::inet_pton(AF_INET6, inner.c_str(), bits.data()) != 1) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> written{};
  ::inet_ntop(AF_INET6, bits.data(), written.data(), written.size());
  return "[" + std::string(written.data()) + "]";
}

/// A name, not of IPv6, that may stand in an address and in a field of HTTP.
bool is_host_name(const std::string& name) {
  const auto fits = [](char c) {
    return is_digit(c) || is_letter(c) || c == '.' || c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= 253 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), fits);
}

}  // namespace

bool is_loopback_host(std::string_view host) {
  const auto parts = parse_host(host);
  return parts && is_loopback_name(parts->name);
}

bool is_accepted_host(std::string_view host, const WebRules& rules) {
  return is_loopback_host(host) || is_allowed(host, rules);
}

bool is_accepted_origin(std::string_view origin, std::string_view host, const WebRules& rules) {
  constexpr std::string_view kPlain = "http://", kSecure = "https://";
  const std::string from = in_lower_case(origin);
  const bool secure = from.starts_with(kSecure);
  if (!secure && !from.starts_with(kPlain)) return false;
  const std::string_view place = std::string_view(from).substr((secure ? kSecure : kPlain).size());
  if (is_allowed(place, rules)) return true;
  // What this machine serves to itself has no https.
  return !secure && place == in_lower_case(host);
}

std::string parse_allowed_host(const std::string& text) {
  auto parts = parse_host(text);
  if (parts && parts->name.starts_with('[')) parts->name = ipv6_host(parts->name).value_or("");
  if (!parts || (!parts->name.starts_with('[') && !is_host_name(parts->name))) {
    throw usage_error("--allow-host " + one_line(text) +
                      ": expected a host as addresses have it, NAME or NAME:PORT, without "
                      "http:// and without wildcards");
  }
  return parts->port ? parts->name + ":" + std::string(*parts->port) : parts->name;
}

std::string parse_base_path(const std::string& text) {
  const auto fail = [&](const std::string& expected) {
    return usage_error("--base-path " + one_line(text) + ": expected " + expected);
  };
  if (!text.starts_with('/')) throw fail("a path that begins with /, such as /proxy/8765/");
  constexpr std::string_view kOthers = "/-._~!$&'()*+,;=:@%";
  const auto fits = [&](char c) {
    return is_digit(c) || is_letter(c) || kOthers.find(c) != std::string_view::npos;
  };
  if (text.size() > 1024 || !std::all_of(text.begin(), text.end(), fits)) {
    throw fail("at most 1024 letters that an address has as they are, others as %XX");
  }
  const std::string path = text.ends_with('/') ? text : text + "/";
  // A proxy that takes the path away would ask for the page and for the tiles by one address.
  if (path == "/tiles/") throw fail("another path: /tiles is the window's own");
  // Browsers take %2e for a dot, and ask for what is left without such parts.
  std::string dotted = in_lower_case(path);
  for (size_t at = dotted.find("%2e"); at != std::string::npos; at = dotted.find("%2e", at)) {
    dotted.replace(at, 3, ".");
  }
  for (const std::string_view part : {"//", "/./", "/../"}) {
    if (dotted.find(part) != std::string::npos) throw fail("no empty part, and none of . and ..");
  }
  return path;
}

}  // namespace attnscope
