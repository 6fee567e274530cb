// Loaded before the program (LD_PRELOAD) to make the n-th call of a kind fail, as disks and memory
// do. ATTNSCOPE_FAULT is KIND:N with KIND one of pwrite, fsync, fdatasync, fallocate, rename, new;
// or read: before the n-th read the last byte of the file ATTNSCOPE_FAULT_CHANGE becomes another.
// "unsupported" is a file system without locks and fallocate. ATTNSCOPE_FAULT_COUNT names a file
// that gets the number of calls at the end. ATTNSCOPE_FAULT_FORK names a file that appears with the
// first fork: the child is given no processor, so to speak, until FILE.go is there too.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<long> calls{0};

struct Fault {
  char kind[16] = "";
  long number = 0;
  Fault() {
    const char* text = getenv("ATTNSCOPE_FAULT");
    const char* colon = text == nullptr ? nullptr : strchr(text, ':');
    if (colon == nullptr || colon - text >= 16) return;
    memcpy(kind, text, static_cast<size_t>(colon - text));
    number = atol(colon + 1);
  }
  ~Fault() {
    const char* path = getenv("ATTNSCOPE_FAULT_COUNT");
    if (path == nullptr) return;
    char line[32];
    const int length = snprintf(line, sizeof line, "%ld", calls.load());
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return;
    if (write(fd, line, static_cast<size_t>(length)) < 0) abort();
    close(fd);
  }
};

/// Whether the program has taken the lock of its output. Before that there is nothing to lose, and
/// the JSON library, which reads the capture's facts, allocates where it must not throw.
std::atomic<bool> begun{false};

bool is_due(const char* kind) {
  static const Fault fault;
  if (strcmp(kind, fault.kind) != 0) return false;
  return ++calls == fault.number;
}

bool fails(const char* kind) { return begun && is_due(kind); }

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

/// One that is still a number, and near the one before.
void change_input() {
  const int fd = open(getenv("ATTNSCOPE_FAULT_CHANGE"), O_RDWR | O_CLOEXEC);
  char last = 0;
  if (fd < 0 || lseek(fd, -1, SEEK_END) < 0 || read(fd, &last, 1) != 1) abort();
  last ^= 1;
  if (lseek(fd, -1, SEEK_END) < 0 || write(fd, &last, 1) != 1) abort();
  close(fd);
}

bool without_locks() {
  const char* fault = getenv("ATTNSCOPE_FAULT");
  return fault != nullptr && strcmp(fault, "unsupported") == 0;
}

/// In the child, before fork() returns: says who waits, until FILE.go is there or FILE is gone.
void wait_in_child() {
  const char* path = getenv("ATTNSCOPE_FAULT_FORK");
  char go[4096];
  snprintf(go, sizeof go, "%s.go", path);
  char begun_path[4096];
  snprintf(begun_path, sizeof begun_path, "%s.tmp", path);
  const int fd = open(begun_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  char line[32];
  const int length = snprintf(line, sizeof line, "%ld", static_cast<long>(getpid()));
  if (fd < 0 || write(fd, line, static_cast<size_t>(length)) != length) abort();
  close(fd);
  // Under its name it is whole.
  if (renameat(AT_FDCWD, begun_path, AT_FDCWD, path) != 0) abort();
  while (access(go, F_OK) != 0 && access(path, F_OK) == 0) usleep(1000);
}

[[gnu::constructor]] void watch_forks() {
  if (getenv("ATTNSCOPE_FAULT_FORK") != nullptr) pthread_atfork(nullptr, nullptr, wait_in_child);
}

/// fcntl in both its forms. Its third argument is a number or an address; all fit in a pointer.
int control(const char* name, int fd, int command, void* argument) {
  const bool locks = command == F_SETLK || command == F_GETLK;
  if (locks && without_locks()) {
    errno = ENOLCK;
    return -1;
  }
  if (command == F_SETLK) begun = true;
  return next<int (*)(int, int, ...)>(name)(fd, command, argument);
}

}  // namespace

extern "C" {

// There is a struct of that name.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
int flock(int fd, int operation) noexcept {
  if (without_locks()) {
    errno = ENOLCK;
    return -1;
  }
  static const auto real = next<int (*)(int, int)>("flock");
  return real(fd, operation);
}
#pragma GCC diagnostic pop

int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return control("fcntl", fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return control("fcntl64", fd, command, argument);
}

ssize_t pread(int fd, void* data, size_t bytes, off_t offset) {
  if (is_due("read")) change_input();
  static const auto real = next<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  return real(fd, data, bytes, offset);
}

ssize_t pread64(int fd, void* data, size_t bytes, off64_t offset) {
  if (is_due("read")) change_input();
  static const auto real = next<ssize_t (*)(int, void*, size_t, off64_t)>("pread64");
  return real(fd, data, bytes, offset);
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  if (fails("pwrite")) {
    errno = EIO;
    return -1;
  }
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return real(fd, data, bytes, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t offset) {
  if (fails("pwrite")) {
    errno = ENOSPC;
    return -1;
  }
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return real(fd, data, bytes, offset);
}

int fsync(int fd) {
  if (fails("fsync")) {
    errno = EIO;
    return -1;
  }
  static const auto real = next<int (*)(int)>("fsync");
  return real(fd);
}

int fdatasync(int fd) {
  if (fails("fdatasync")) {
    errno = EIO;
    return -1;
  }
  static const auto real = next<int (*)(int)>("fdatasync");
  return real(fd);
}

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  if (without_locks()) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if (fails("fallocate")) {
    errno = ENOSPC;
    return -1;
  }
  static const auto real = next<int (*)(int, int, off_t, off_t)>("fallocate");
  return real(fd, mode, offset, bytes);
}

int rename(const char* from, const char* to) noexcept {
  if (fails("rename")) {
    errno = EIO;
    return -1;
  }
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  return real(from, to);
}

}  // extern "C"

void* operator new(size_t bytes) {
  if (fails("new")) throw std::bad_alloc();
  void* memory = malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void* operator new[](size_t bytes) { return operator new(bytes); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
