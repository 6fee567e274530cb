// Loaded before the program (LD_PRELOAD) to make the n-th call of a kind fail, as disks and memory
// do. ATTNSCOPE_FAULT is KIND:N with KIND one of pwrite, fsync, fdatasync, fallocate, rename, new,
// thread; or read: before the n-th read the last byte of the file ATTNSCOPE_FAULT_CHANGE becomes
// another. "kill" ends the process before its n-th call that changes names or makes something
// durable, "stop" sends it SIGTERM there, or the signal whose
// number ATTNSCOPE_FAULT_SIGNAL is, and goes on when it was taken; "kill-write" and "stop-write"
// do so before its n-th pwrite, "stop-read" before its n-th pread. "unsupported" is a file system
// without locks and fallocate, "no-ipv6" a machine without IPv6. ATTNSCOPE_FAULT_COUNT names a file
// that gets the number of calls at the end. ATTNSCOPE_FAULT_HELPER names a file that appears with
// the first helper process: it is given no processor, so to speak, until FILE.go is there too.
// ATTNSCOPE_FAULT_PAUSE names one that appears before the n-th pwrite of "pause-write", which waits
// likewise.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<long> calls{0};

/// True in a helper process, whose command line has --helper-process.
bool is_helper() {
  char words[4096] = "";
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? 0 : read(fd, words, sizeof words - 1);
  close(fd);
  return got > 0 && memmem(words, static_cast<size_t>(got), "--helper-process", 16) != nullptr;
}

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
    // A helper process may end after the program, and has calls of its own.
    if (path == nullptr || is_helper()) return;
    char line[32];
    const int length = snprintf(line, sizeof line, "%ld", calls.load());
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return;
    if (write(fd, line, static_cast<size_t>(length)) < 0) abort();
    close(fd);
  }
};

/// True once the program has locked its output. Before that there is nothing to lose, and the
/// JSON library, which reads the capture's facts, allocates where it must not throw.
/// (ATTNSCOPE_FAULT_BEGUN makes it true from the start, for a process that takes no lock.)
std::atomic<bool> begun{getenv("ATTNSCOPE_FAULT_BEGUN") != nullptr};

bool is_due(const char* kind) {
  static const Fault fault;
  if (strcmp(kind, fault.kind) != 0) return false;
  return ++calls == fault.number;
}

bool fails(const char* kind) { return begun && is_due(kind); }

/// True while the signal is pending: no thread has taken it yet.
bool is_pending(int signal) {
  sigset_t signals;
  return sigpending(&signals) == 0 && sigismember(&signals, signal) == 1;
}

void send_stop() {
  const char* number = getenv("ATTNSCOPE_FAULT_SIGNAL");
  const int signal = number == nullptr ? SIGTERM : atoi(number);
  kill(getpid(), signal);
  while (is_pending(signal)) usleep(100);
}

void end_before_step() {
  if (fails("kill")) kill(getpid(), SIGKILL);
  if (fails("stop")) send_stop();
}

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

void before_read() {
  if (is_due("read")) change_input();
  if (is_due("stop-read")) send_stop();
}

/// Says who waits, until FILE.go is there or FILE is gone.
void wait_for_go(const char* path) {
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

/// Brings about the faults that are due before a pwrite; true where the pwrite is to fail.
bool before_write() {
  if (fails("kill-write")) kill(getpid(), SIGKILL);
  if (fails("stop-write")) send_stop();
  if (fails("pause-write")) wait_for_go(getenv("ATTNSCOPE_FAULT_PAUSE"));
  return fails("pwrite");
}

bool lacks(const char* what) {
  const char* fault = getenv("ATTNSCOPE_FAULT");
  return fault != nullptr && strcmp(fault, what) == 0;
}

bool without_locks() { return lacks("unsupported"); }

/// In the helper, before main.
[[gnu::constructor]] void wait_in_helper() {
  const char* path = getenv("ATTNSCOPE_FAULT_HELPER");
  if (path != nullptr && is_helper()) wait_for_go(path);
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

int socket(int family, int type, int protocol) noexcept {
  if (family == AF_INET6 && lacks("no-ipv6")) {
    errno = EAFNOSUPPORT;
    return -1;
  }
  static const auto real = next<int (*)(int, int, int)>("socket");
  return real(family, type, protocol);
}

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

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) noexcept {
  if (is_due("thread")) return EAGAIN;
  static const auto real =
      next<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return real(thread, attributes, run, argument);
}

ssize_t pread(int fd, void* data, size_t bytes, off_t offset) {
  before_read();
  static const auto real = next<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  return real(fd, data, bytes, offset);
}

ssize_t pread64(int fd, void* data, size_t bytes, off64_t offset) {
  before_read();
  static const auto real = next<ssize_t (*)(int, void*, size_t, off64_t)>("pread64");
  return real(fd, data, bytes, offset);
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  if (before_write()) {
    errno = EIO;
    return -1;
  }
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return real(fd, data, bytes, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t offset) {
  if (before_write()) {
    errno = ENOSPC;
    return -1;
  }
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return real(fd, data, bytes, offset);
}

int fsync(int fd) {
  end_before_step();
  if (fails("fsync")) {
    errno = EIO;
    return -1;
  }
  static const auto real = next<int (*)(int)>("fsync");
  return real(fd);
}

int fdatasync(int fd) {
  end_before_step();
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
  end_before_step();
  if (fails("rename")) {
    errno = EIO;
    return -1;
  }
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  return real(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  end_before_step();
  static const auto real = next<int (*)(int, const char*, int, const char*, unsigned)>("renameat2");
  return real(from_folder, from, to_folder, to, flags);
}

int unlink(const char* file) noexcept {
  end_before_step();
  static const auto real = next<int (*)(const char*)>("unlink");
  return real(file);
}

int remove(const char* file) noexcept {
  end_before_step();
  static const auto real = next<int (*)(const char*)>("remove");
  return real(file);
}

int mkdir(const char* folder, mode_t mode) noexcept {
  end_before_step();
  static const auto real = next<int (*)(const char*, mode_t)>("mkdir");
  return real(folder, mode);
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
