#include "viewer/remote/web/web_token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr size_t kTokenDigits = 32;

Error token_file_error(const std::string& path, const std::string& what) {
  return file_error("--token-file " + one_line(path), "", what);
}

/// A file that is closed again.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Makes the file as a whole, by another name first: who comes at the same time finds all of it or
/// nothing. False: somebody else was faster.
bool make_token_file(const std::string& path) {
  std::string part = path + ".XXXXXX";
  // Its owner's alone (0600), whatever the umask.
  const OpenFile made(::mkostemp(part.data(), O_CLOEXEC));
  if (made.get() < 0) throw token_file_error(path, "cannot be made: " + errno_text(errno));
  const std::string line = new_web_token() + "\n";
  const ssize_t put = ::write(made.get(), line.data(), line.size());
  int error = put == static_cast<ssize_t>(line.size()) ? 0 : put < 0 ? errno : ENOSPC;
  if (error == 0 && ::fsync(made.get()) != 0) error = errno;
  if (error == 0 && ::link(part.c_str(), path.c_str()) != 0) error = errno;
  ::unlink(part.c_str());
  if (error == 0) return true;
  if (error == EEXIST) return false;
  throw token_file_error(path, "cannot be made: " + errno_text(error));
}

/// What is wrong with who may open it; empty: nothing.
std::string problem_of(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) return "expected a regular file";
  if (file.st_uid != ::geteuid()) return "it belongs to somebody else";
  if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fmt::format("others may open it (mode {:04o}): chmod 600 makes it yours alone",
                       file.st_mode & 07777U);
  }
  return "";
}

}  // namespace

std::string token_of_file(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  int descriptor = ::open(path.c_str(), kFlags);
  if (descriptor < 0 && errno == ENOENT) {
    make_token_file(path);
    descriptor = ::open(path.c_str(), kFlags);
  }
  const OpenFile file(descriptor);
  if (file.get() < 0) {
    throw token_file_error(path, errno == ELOOP ? "it is a symbolic link, which is not followed"
                                                : "cannot be opened: " + errno_text(errno));
  }
  struct stat state {};
  if (::fstat(file.get(), &state) != 0) {
    throw token_file_error(path, "cannot be read: " + errno_text(errno));
  }
  const std::string problem = problem_of(state);
  if (!problem.empty()) throw token_file_error(path, problem);
  // One byte more than the longest that there is.
  std::array<char, kTokenDigits + 2> bytes{};
  const ssize_t got = ::read(file.get(), bytes.data(), bytes.size());
  if (got < 0) throw token_file_error(path, "cannot be read: " + errno_text(errno));
  std::string token(bytes.data(), static_cast<size_t>(got));
  if (token.ends_with('\n')) token.pop_back();
  const bool digits = std::all_of(token.begin(), token.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (token.size() != kTokenDigits || !digits) {
    throw token_file_error(path,
                           "expected 32 hexadecimal digits in lower case and nothing else (without "
                           "the file a new one is made)");
  }
  return token;
}

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
