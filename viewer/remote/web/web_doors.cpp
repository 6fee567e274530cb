#include "viewer/remote/web/web_doors.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// How many wait to be taken in: as many as the system lets.
constexpr int kQueue = SOMAXCONN;
/// A port that is free of IPv4 may be taken of IPv6.
constexpr int kTries = 20;
/// Another server's look at a socket takes less by far.
constexpr std::chrono::seconds kOthersLook{5};

/// A descriptor until somebody takes it.
class NewSocket {
 public:
  explicit NewSocket(int family)
      : descriptor_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}
  ~NewSocket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  NewSocket(const NewSocket&) = delete;
  NewSocket& operator=(const NewSocket&) = delete;
  int get() const { return descriptor_; }
  int take() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

template <class Address>
int bind_to(int descriptor, const Address& address) {
  return ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

[[noreturn]] void fail_port(const std::string& address, int port, int error) {
  const std::string at = port == 0 ? "serve: no port of " + address
                                   : fmt::format("serve: port {} of {}", port, address);
  if (error == EADDRINUSE) {
    throw Error(ErrorCode::resource, at + " is in use: name another with --port, or none");
  }
  if (error == EADDRNOTAVAIL) {
    throw Error(ErrorCode::resource,
                fmt::format("serve: --bind {}: this machine has no such address", address));
  }
  throw Error(ErrorCode::resource, at + " can be had: " + errno_text(error));
}

/// Listens at an address of IPv4, and says the port.
int open_ipv4(const std::string& at, int& port) {
  NewSocket made(AF_INET);
  if (made.get() < 0) fail_port(at, port, errno);
  const int one = 1;
  // Connections of an earlier server that are not closed yet do not keep the port occupied.
  ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, at.c_str(), &address.sin_addr);
  socklen_t size = sizeof address;
  if (bind_to(made.get(), address) != 0 || ::listen(made.get(), kQueue) != 0 ||
      ::getsockname(made.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail_port(at, port, errno);
  }
  port = ntohs(address.sin_port);
  return made.take();
}

/// Listens at an address of IPv6, and says the port; below 0: that cannot be, by this errno.
int open_ipv6(const std::string& at, int& port, bool also_ipv4) {
  NewSocket made(AF_INET6);
  if (made.get() < 0) return -errno;
  const int one = 1, alone = also_ipv4 ? 0 : 1;
  ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  ::setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &alone, sizeof alone);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET6, at.c_str(), &address.sin6_addr);
  socklen_t size = sizeof address;
  if (bind_to(made.get(), address) != 0 || ::listen(made.get(), kQueue) != 0 ||
      ::getsockname(made.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return -errno;
  }
  port = ntohs(address.sin6_port);
  return made.take();
}

sockaddr_un socket_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path ||
      path.find('\0') != std::string::npos) {
    throw usage_error(fmt::format("--socket {}: the path of a socket has 1 to {} bytes, got {}",
                                  one_line(path), sizeof address.sun_path - 1, path.size()));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// One server at a time looks whether a socket of this folder is left over, and takes its place:
/// two of them would else take each other's away. Held by the folder itself, so that nothing is
/// left of it, whoever is killed.
class SocketPlace {
 public:
  explicit SocketPlace(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_ < 0) return;  // making the socket says why
    const auto until = std::chrono::steady_clock::now() + kOthersLook;
    while (::flock(folder_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      if (std::chrono::steady_clock::now() > until) {
        ::close(folder_);
        throw file_error(one_line(path), "", "another program has the folder locked (flock)");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  ~SocketPlace() {
    if (folder_ >= 0) ::close(folder_);
  }
  SocketPlace(const SocketPlace&) = delete;
  SocketPlace& operator=(const SocketPlace&) = delete;

 private:
  int folder_ = -1;
};

/// Takes away what a server left that was killed.
void remove_left_over(const std::string& path, const sockaddr_un& address) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0) return;
  if (!S_ISSOCK(there.st_mode)) {
    throw file_error(one_line(path), "", "something that is no socket lies there");
  }
  const NewSocket knock(AF_UNIX);
  if (knock.get() < 0) return;
  // A server whose queue is full (EAGAIN) is one, too.
  const bool refused =
      ::connect(knock.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno == ECONNREFUSED;
  if (!refused) throw file_error(one_line(path), "", "a server listens there already");
  ::unlink(path.c_str());
}

}  // namespace

WebDoors WebDoors::on_loopback(int port) {
  for (int i = 0; i < kTries; ++i) {
    WebDoors doors;
    doors.port_ = port;
    doors.descriptors_.push_back(open_ipv4("127.0.0.1", doors.port_));
    const int second = open_ipv6("::1", doors.port_, false);
    const bool taken = second == -EADDRINUSE;
    if (second >= 0) doors.descriptors_.push_back(second);
    if (!taken) return doors;
    if (port != 0) {
      throw Error(
          ErrorCode::resource,
          fmt::format("serve: port {} of ::1 is in use: name another with --port, or none", port));
    }
  }
  throw Error(ErrorCode::resource, "serve: no port is free at both 127.0.0.1 and ::1");
}

WebDoors WebDoors::on_address(const std::string& text, int port) {
  const BindAddress address = BindAddress::parse(text);
  WebDoors doors;
  doors.port_ = port;
  const int made = address.ipv6 ? open_ipv6(address.text, doors.port_, address.everywhere)
                                : open_ipv4(address.text, doors.port_);
  if (made < 0) fail_port(address.text, port, -made);
  doors.descriptors_.push_back(made);
  return doors;
}

BindAddress BindAddress::parse(const std::string& text) {
  const bool brackets = text.size() > 2 && text.front() == '[' && text.back() == ']';
  std::string inner = brackets ? text.substr(1, text.size() - 2) : text;
  in_addr four{};
  in6_addr six{};
  const bool ipv4 = !brackets && ::inet_pton(AF_INET, inner.c_str(), &four) == 1;
  if (!ipv4 && ::inet_pton(AF_INET6, inner.c_str(), &six) != 1) {
    throw usage_error("--bind " + one_line(text) +
                      ": expected an address of this machine, such as 0.0.0.0 (all), 10.0.0.5 or "
                      "fd00::5");
  }
  std::array<char, INET6_ADDRSTRLEN> written{};
  const void* const bits = ipv4 ? static_cast<const void*>(&four) : static_cast<const void*>(&six);
  ::inet_ntop(ipv4 ? AF_INET : AF_INET6, bits, written.data(), written.size());
  BindAddress address;
  address.text = written.data();
  address.ipv6 = !ipv4;
  address.everywhere = address.text == "0.0.0.0" || address.text == "::";
  address.loopback = address.text.starts_with("127.") || address.text == "::1";
  return address;
}

WebDoors WebDoors::on_socket(const std::string& path) {
  const sockaddr_un address = socket_address(path);
  const SocketPlace place(path);  // until it listens
  remove_left_over(path, address);
  NewSocket made(AF_UNIX);
  // The socket's file has these rights from its first moment on.
  if (made.get() < 0 || ::fchmod(made.get(), S_IRUSR | S_IWUSR) != 0 ||
      bind_to(made.get(), address) != 0) {
    throw file_error(one_line(path), "", "no socket can be made: " + errno_text(errno));
  }
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0 || (file.st_mode & 0777) != (S_IRUSR | S_IWUSR) ||
      ::listen(made.get(), kQueue) != 0) {
    ::unlink(path.c_str());
    throw file_error(one_line(path), "", "no socket can be made that is yours alone");
  }
  WebDoors doors;
  doors.descriptors_.push_back(made.take());
  doors.path_ = path;
  doors.file_ = file.st_ino;
  return doors;
}

WebDoors::WebDoors(WebDoors&& other) noexcept
    : descriptors_(std::exchange(other.descriptors_, {})),
      port_(other.port_),
      path_(std::exchange(other.path_, {})),
      file_(other.file_) {}

WebDoors::~WebDoors() {
  struct stat file {};
  // Not the one of another server that has come in its place.
  if (!path_.empty() && ::lstat(path_.c_str(), &file) == 0 && file.st_ino == file_) {
    ::unlink(path_.c_str());
  }
  for (const int descriptor : descriptors_) ::close(descriptor);
}

}  // namespace attnscope
