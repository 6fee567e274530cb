#include "io/helper/helper_server.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <new>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "io/files/json_types.h"
#include "io/helper/helper_message.h"

namespace attnscope {
namespace {

constexpr int kSocket = 0;

bool has_socket() {
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(kSocket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

/// Bytes of address space in use.
int64_t address_space() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  return file >> pages ? pages * sysconf(_SC_PAGESIZE) : 0;
}

void limit_itself() {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (kHelperIsSanitized) return;
  const auto bytes = static_cast<rlim_t>(address_space() + kHelperMemoryBytes);
  const rlimit memory{bytes, bytes};
  setrlimit(RLIMIT_AS, &memory);
}

/// Ends the process when nobody waits for its answers, whatever it is busy with.
void watch_parent() {
  std::thread([] {
    while (true) {
      pollfd poller{kSocket, POLLRDHUP, 0};
      const int ready = poll(&poller, 1, -1);
      if (ready > 0 || (ready < 0 && errno != EINTR)) _exit(0);
    }
  }).detach();
}

/// False where nobody waits for it any more.
bool send_message(const HelperMessage& message) {
  const std::string bytes = pack_message(message);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = send(kSocket, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    done += static_cast<size_t>(sent);
  }
  return true;
}

/// Nothing at the end of the parent.
std::optional<HelperMessage> receive_message() {
  std::string bytes;
  char buffer[65536];
  while (true) {
    const ssize_t got = recv(kSocket, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    bytes.append(buffer, static_cast<size_t>(got));
    if (auto message = unpack_message(bytes)) return message;
  }
}

/// Names may be relative to the parent's folder, which may have changed since this process began.
void follow_folder(const std::string& folder, const std::string& file) {
  if (folder.empty() || chdir(folder.c_str()) == 0) return;
  throw file_error(file, folder, "this folder cannot be entered: " + errno_text(errno));
}

HelperMessage answer(std::span<const HelperQuestion* const> questions,
                     const HelperMessage& message) {
  if (message.size() != 4) return {};
  const std::string& name = message[0];
  const std::string& folder = message[1];
  const std::string& file = message[2];
  const std::string& arguments = message[3];
  try {
    follow_folder(folder, file);
    for (const HelperQuestion* question : questions) {
      if (question->name != name) continue;
      const Json result = question->answer(file, Json::parse(arguments));
      return {std::string(kHelperAnswer),
              result.dump(-1, ' ', false, Json::error_handler_t::replace)};
    }
    throw Error(ErrorCode::unavailable, file + ": the helper process does not know " + name);
  } catch (const Error& error) {
    return pack_error(error);
  } catch (const std::bad_alloc&) {
    return pack_error(Error(ErrorCode::resource,
                            file +
                                ": reading what it holds takes more than 1 GiB of memory: the "
                                "file is damaged, or far larger than any of attnscope's inputs"));
  } catch (const std::exception&) {
    return pack_error(file_error(file, "", "what it holds cannot be: the file is damaged"));
  }
}

}  // namespace

int serve_helper(std::span<const HelperQuestion* const> questions) {
  if (!has_socket()) {
    throw usage_error("a helper process is started by attnscope itself, which talks to it");
  }
  // Its file may be called otherwise (/proc/self/exe).
  prctl(PR_SET_NAME, "attnscope-child");
  // Closes the files that the parent's libraries opened for themselves.
  close_range(3, ~0u, 0);
  watch_parent();
  limit_itself();
  if (!send_message(helper_greeting())) return 0;
  while (const auto message = receive_message()) {
    if (!send_message(answer(questions, *message))) break;
  }
  return 0;
}

}  // namespace attnscope
