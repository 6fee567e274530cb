#include "viewer/remote/web/web_token.h"

#include <sys/random.h>

#include <array>
#include <cerrno>

#include "core/base/error.h"

namespace attnscope {

std::string new_web_token() {
  std::array<unsigned char, 16> bytes{};
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t more = ::getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) throw Error(ErrorCode::resource, "random numbers: " + errno_text(errno));
    got += static_cast<size_t>(more);
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4];
    token += kDigits[byte & 15];
  }
  return token;
}

bool is_web_token(std::string_view came, std::string_view token) {
  // How long it is, is no secret.
  if (token.empty() || came.size() != token.size()) return false;
  // Volatile: a compiler may not stop at the first difference.
  volatile unsigned char differs = 0;
  for (size_t i = 0; i < token.size(); ++i) {
    differs = static_cast<unsigned char>(differs | (came[i] ^ token[i]));
  }
  return differs == 0;
}

}  // namespace attnscope
