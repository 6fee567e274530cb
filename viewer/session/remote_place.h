#pragma once

#include <optional>
#include <string>
#include <vector>

namespace attnscope {

/// Maps on another machine: "ssh://[user@]host[:port]/path". A value.
struct RemotePlace {
  std::string user;  ///< empty: whom ssh takes
  std::string host;  ///< as ssh knows it; of an address of IPv6 without its brackets
  int port = 0;      ///< 0: what ssh takes
  std::string path;  ///< there; relative to the user's home where it was given as /~/path

  /// "user@host", as ssh takes it.
  std::string login() const;
  bool same_machine(const RemotePlace& other) const {
    return user == other.user && host == other.host && port == other.port;
  }
  friend bool operator==(const RemotePlace&, const RemotePlace&) = default;
};

/// True of a name that means a place on another machine, be it well-formed or not.
bool is_remote_name(const std::string& name);
/// Throws Error(usage) where it is none: of another form, with a user or host that ssh would take
/// for an option, without a path.
RemotePlace parse_remote_place(const std::string& name);

}  // namespace attnscope
