// The ways of writing what an export of one head has, 617 MiB, to a new file:
//   bench_writes FOLDER [ROUNDS]
// Two threads take pieces of the file in turn, as the export's workers do. Every way is tried once
// a round, so that what the machine does beside falls on all of them; each line has a way's times.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#if defined(ATTNSCOPE_LIBURING)
#include <liburing.h>
#endif

namespace {

constexpr size_t kTotal = size_t{617} << 20;
constexpr size_t kPage = 4096;
constexpr int kThreads = 2;

[[noreturn]] void fail(const char* what, int error) {
  std::fprintf(stderr, "bench_writes: %s: %s\n", what, std::strerror(error));
  std::exit(1);
}

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};
using Piece = std::unique_ptr<std::byte[], Freed>;

Piece make_piece(size_t bytes) {
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kPage, bytes));
  if (memory == nullptr) fail("memory", ENOMEM);
  std::memset(memory, 1, bytes);
  return Piece(memory);
}

struct Way {
  const char* name;
  size_t piece;
  bool direct = false;   ///< past the page cache
  bool durable = false;  ///< fdatasync at the end
  int depth = 0;         ///< pieces under way at once by io_uring; 0: pwrite
};

/// Hands out the pieces of a file.
class Pieces {
 public:
  explicit Pieces(size_t bytes) : bytes_(bytes) {}
  /// Offset and length of the next one; length 0: no more.
  std::pair<size_t, size_t> next() {
    const size_t at = taken_.fetch_add(bytes_);
    return {at, at < kTotal ? std::min(bytes_, kTotal - at) : 0};
  }

 private:
  const size_t bytes_;
  std::atomic<size_t> taken_{0};
};

void write_pieces(int file, Pieces& pieces, size_t bytes) {
  const Piece piece = make_piece(bytes);
  while (true) {
    const auto [at, length] = pieces.next();
    if (length == 0) return;
    const ssize_t written = ::pwrite(file, piece.get(), length, static_cast<off_t>(at));
    if (written != static_cast<ssize_t>(length)) fail("pwrite", written < 0 ? errno : EIO);
  }
}

#if defined(ATTNSCOPE_LIBURING)
void write_by_ring(int file, Pieces& pieces, const Way& way) {
  io_uring ring;
  const int made = io_uring_queue_init(static_cast<unsigned>(way.depth), &ring, 0);
  if (made < 0) fail("io_uring", -made);
  std::vector<Piece> free;
  for (int i = 0; i < way.depth; ++i) free.push_back(make_piece(way.piece));
  size_t under_way = 0;
  for (bool more = true; more || under_way > 0;) {
    while (more && !free.empty()) {
      const auto [at, length] = pieces.next();
      more = length > 0;
      if (!more) break;
      io_uring_sqe* const entry = io_uring_get_sqe(&ring);
      std::byte* const memory = free.back().release();
      free.pop_back();
      io_uring_prep_write(entry, file, memory, static_cast<unsigned>(length), at);
      io_uring_sqe_set_data(entry, memory);
      ++under_way;
    }
    io_uring_submit_and_wait(&ring, under_way > 0 ? 1 : 0);
    io_uring_cqe* done = nullptr;
    while (under_way > 0 && io_uring_peek_cqe(&ring, &done) == 0) {
      if (done->res <= 0) fail("io_uring's write", -done->res);
      free.emplace_back(static_cast<std::byte*>(io_uring_cqe_get_data(done)));
      io_uring_cqe_seen(&ring, done);
      --under_way;
    }
  }
  io_uring_queue_exit(&ring);
}
#endif

double seconds_of(const Way& way, const std::string& path) {
  ::unlink(path.c_str());
  const auto start = std::chrono::steady_clock::now();
  const int flags = O_CREAT | O_EXCL | O_WRONLY | (way.direct ? O_DIRECT : 0);
  const int file = ::open(path.c_str(), flags, 0600);
  if (file < 0) fail(path.c_str(), errno);
  if (::fallocate(file, 0, 0, kTotal) != 0) fail("fallocate", errno);
  Pieces pieces(way.piece);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
#if defined(ATTNSCOPE_LIBURING)
      if (way.depth > 0) return write_by_ring(file, pieces, way);
#endif
      write_pieces(file, pieces, way.piece);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (way.durable && ::fdatasync(file) != 0) fail("fdatasync", errno);
  ::close(file);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  ::unlink(path.c_str());
  return taken.count();
}

constexpr size_t kKiB = 1024;
constexpr Way kWays[] = {
    {"pwrite, 64 KiB", 64 * kKiB},
    {"pwrite, 512 KiB", 512 * kKiB},
    {"pwrite, 4 MiB", 4096 * kKiB},
    {"pwrite, 13 MiB", 13 * 1024 * kKiB},
    {"io_uring, 512 KiB, 8 under way", 512 * kKiB, false, false, 8},
    {"pwrite, 512 KiB, durable", 512 * kKiB, false, true},
    {"O_DIRECT, 512 KiB, durable", 512 * kKiB, true, true},
    {"O_DIRECT, 4 MiB, durable", 4096 * kKiB, true, true},
    {"io_uring, O_DIRECT, 512 KiB, 4 under way, durable", 512 * kKiB, true, true, 4},
    {"io_uring, O_DIRECT, 512 KiB, 16 under way, durable", 512 * kKiB, true, true, 16},
};

bool can_be(const Way& way) {
#if defined(ATTNSCOPE_LIBURING)
  return way.depth >= 0;
#else
  return way.depth == 0;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "bench_writes FOLDER [ROUNDS]\n");
    return 2;
  }
  const std::string path = std::string(argv[1]) + "/bench_writes.bin";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  std::vector<std::vector<double>> taken(std::size(kWays));
  for (int round = 0; round < rounds; ++round) {
    for (size_t way = 0; way < std::size(kWays); ++way) {
      if (can_be(kWays[way])) taken[way].push_back(seconds_of(kWays[way], path));
    }
  }
  std::printf("%zu MiB to a new file by %d threads, seconds: median, all\n", kTotal >> 20,
              kThreads);
  for (size_t way = 0; way < std::size(kWays); ++way) {
    std::vector<double>& times = taken[way];
    if (times.empty()) {
      std::printf("%-52s built without liburing\n", kWays[way].name);
      continue;
    }
    std::sort(times.begin(), times.end());
    std::printf("%-52s %.3f  ", kWays[way].name, times[times.size() / 2]);
    for (const double time : times) std::printf(" %.3f", time);
    std::printf("\n");
  }
}
