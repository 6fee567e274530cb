#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// By which names and below which path the page is served. The defaults are those of a server that
/// this machine alone reaches.
struct WebRules {
  /// As parse_allowed_host() gives them: hosts of an address beside this machine's names for
  /// itself.
  std::vector<std::string> hosts;
  /// As parse_base_path() gives it. Addresses without it are answered as well: a proxy may have
  /// taken it away.
  std::string base = "/";
};

/// True of "HOST" and "HOST:PORT" where HOST is this machine's name for itself (localhost,
/// 127.0.0.1, [::1]). False of somebody's own name that leads here (DNS rebinding).
bool is_loopback_host(std::string_view host);

/// True of a host of is_loopback_host() and of one that the rules allow: a NAME with any port or
/// none, a NAME:PORT as it is. Letters count as lower case.
bool is_accepted_host(std::string_view host, const WebRules& rules);

/// True where a page of this origin may ask for what `host`, which is accepted, serves: the page of
/// that host itself, by http or, of a host that the rules allow, by https; and, as a proxy may have
/// written its own name in the host's place, any page of a host that the rules allow.
bool is_accepted_origin(std::string_view origin, std::string_view host, const WebRules& rules);

/// NAME or NAME:PORT in lower case; NAME is a host's name, an IPv4 address or one of IPv6 in
/// brackets. Throws Error(usage) "--allow-host …".
std::string parse_allowed_host(const std::string& text);

/// A path with / at both ends. Throws Error(usage) "--base-path …" for what no browser asks for as
/// it stands: empty parts, "." and "..", letters that an address has to escape.
std::string parse_base_path(const std::string& text);

}  // namespace attnscope
