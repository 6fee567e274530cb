#include "tests/viewer/remote/web/socket_bytes.h"

// The kernel's own header has more of it than the C library's, and does not stand beside that.
#include <linux/tcp.h>
#include <sys/socket.h>

namespace attnscope::test {

size_t received_bytes_of(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  constexpr int kTcp = 6;
  return ::getsockopt(socket, kTcp, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received : 0;
}

}  // namespace attnscope::test
