#pragma once

#include <span>
#include <string>
#include <vector>

namespace attnscope {

/// Where browsers come in: sockets of this machine that listen. Owns them.
class WebDoors {
 public:
  /// Of 127.0.0.1, and of ::1 where the machine has it, so that nobody else stands there. `port` 0:
  /// a free one. Throws Error(resource) where the port is taken or may not be had.
  static WebDoors on_loopback(int port);
  /// Of an address of this machine, "10.0.0.5", "::1", "0.0.0.0" (all of IPv4) or "::" (all, also
  /// of IPv4 where the system lets), which other machines may reach. Throws Error(usage) for what
  /// is no address, Error(resource) as on_loopback(), and where this machine does not have it.
  static WebDoors on_address(const std::string& address, int port);
  /// A Unix socket that its owner alone may open (0600), in place of one that a server which has
  /// ended left behind. It goes with its owner. Throws Error(usage) where the path is too long for
  /// one; Error(file) where it cannot be made, where a server listens there already, and where
  /// something else lies there.
  static WebDoors on_socket(const std::string& path);

  ~WebDoors();
  WebDoors(WebDoors&& other) noexcept;
  WebDoors& operator=(WebDoors&&) = delete;

  /// They do not block.
  std::span<const int> descriptors() const { return descriptors_; }
  /// 0: a Unix socket.
  int port() const { return port_; }

 private:
  WebDoors() = default;

  std::vector<int> descriptors_;
  int port_ = 0;
  std::string path_;             ///< of a Unix socket
  unsigned long long file_ = 0;  ///< its inode
};

/// An address of --bind. Throws Error(usage) "--bind …" for what is none.
struct BindAddress {
  static BindAddress parse(const std::string& text);

  std::string text;  ///< without brackets, lower case
  bool ipv6 = false;
  bool everywhere = false;  ///< of no interface, but of all: 0.0.0.0 and ::
  bool loopback = false;    ///< 127.x.x.x and ::1: no other machine reaches it
  /// As an address for browsers has it: of IPv6 in brackets.
  std::string host() const { return ipv6 ? "[" + text + "]" : text; }
};

}  // namespace attnscope
