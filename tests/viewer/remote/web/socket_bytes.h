#pragma once

#include <cstddef>

namespace attnscope::test {

/// How many bytes a TCP socket has brought; 0 where the system does not say.
size_t received_bytes_of(int socket);

}  // namespace attnscope::test
