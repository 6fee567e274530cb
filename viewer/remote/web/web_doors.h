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

}  // namespace attnscope
