#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cli/bench/bench_options.h"
#include "cli/bench/bench_report.h"
#include "cli/bench/bench_runs.h"
#include "cli/bench/best_seconds.h"
#include "cli/common/command.h"
#include "cli/common/interrupt.h"
#include "cli/common/system_memory.h"
#include "cli/run/run_backend.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/problem/attention_problem.h"
#include "core/tensor/memory_tensor.h"

namespace attnscope {
namespace {

/// A folder of our own within another one, removed with what it holds.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& parent) : path_(parent + "/attnscope-bench-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) {
      throw file_error(parent, "", "cannot be written: " + errno_text(errno));
    }
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A bf16 tensor [1, 1, tokens, d] of normally distributed values.
std::shared_ptr<const TensorSource> random_tensor(const std::string& name, int64_t tokens,
                                                  int64_t d, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes(static_cast<size_t>(tokens * d) * sizeof(bf16));
  auto* values = reinterpret_cast<bf16*>(bytes.data());
  for (int64_t i = 0; i < tokens * d; ++i) values[i] = to_bf16(normal(generator));
  return std::make_shared<MemoryTensor>(name, DType::bf16, std::vector<int64_t>{1, 1, tokens, d},
                                        std::move(bytes));
}

TokenGrid frames_of(int64_t tokens) {
  int64_t frames = 32;
  while (tokens % frames != 0) --frames;
  return TokenGrid::video(tokens, {frames, 1, tokens / frames}, 0, TextPlace::none);
}

/// One head of bf16 numbers that are normally distributed, the same ones each time. Its tokens are
/// those of up to 32 latent frames, as many as divide them.
std::shared_ptr<const AttentionProblem> random_problem(int64_t tokens, int64_t d,
                                                       const Mask& mask) {
  AttentionProblem::Parts parts;
  parts.q = HeadTensor(random_tensor("q", tokens, d, 1), Layout::bhsd);
  parts.k = HeadTensor(random_tensor("k", tokens, d, 2), Layout::bhsd);
  parts.mask = mask;
  parts.query_tokens = parts.key_tokens = frames_of(tokens);
  parts.id.branches = {"all"};
  parts.name = fmt::format("S={} d={}", tokens, d);
  return std::make_shared<AttentionProblem>(AttentionProblem::make(std::move(parts)));
}

/// A mask that keeps `percent` of the 128 x 128 blocks, in one run a row.
Mask random_block_mask(int64_t tokens, int percent) {
  BlockMask mask;
  mask.block_queries = mask.block_keys = 128;
  mask.query_blocks = mask.key_blocks = ceil_div(tokens, 128);
  std::mt19937 generator(3);
  mask.bits.resize(static_cast<size_t>(mask.query_blocks * mask.key_blocks));
  for (int64_t i = 0; i < mask.query_blocks; ++i) {
    // Kept blocks come in one run a row, as sparse kernels have them: whole chunks then fall away.
    const int64_t kept = std::max<int64_t>(1, mask.key_blocks * percent / 100);
    const auto start = static_cast<int64_t>(generator() % static_cast<uint32_t>(mask.key_blocks));
    for (int64_t n = 0; n < kept; ++n) {
      mask.bits[static_cast<size_t>(i * mask.key_blocks + (start + n) % mask.key_blocks)] = 1;
    }
  }
  return Mask::blocks(mask);
}

/// How the disk is written to.
enum class WriteWay : uint8_t {
  buffered,  ///< into the page cache
  durable,   ///< until fsync has returned
  direct,    ///< past the page cache, and durable
};

/// Bytes a second of pwrite into a file in `folder`, in pieces as large as an export's, the best of
/// three; 0 where the file system cannot write so. Throws Error(file).
double write_speed(const std::string& folder, WriteWay way) {
  constexpr int64_t kPiece = 13 << 20;
  constexpr int64_t kPieces = 24;
  const std::string path = folder + "/attnscope-bench.tmp";
  // Pieces for O_DIRECT start at a page.
  const std::unique_ptr<char, decltype(&std::free)> piece(
      static_cast<char*>(std::aligned_alloc(4096, kPiece)), &std::free);
  if (piece == nullptr) throw std::bad_alloc();
  std::fill_n(piece.get(), kPiece, 1);
  const int direct = way == WriteWay::direct ? O_DIRECT : 0;
  bool possible = true;
  const double seconds = best_seconds(3, [&] {
    const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | direct, 0600);
    if (fd < 0 && direct != 0 && errno == EINVAL) {
      possible = false;
      return;
    }
    if (fd < 0) throw file_error(path, "", "cannot be created: " + errno_text(errno));
    bool good = ftruncate(fd, kPiece * kPieces) == 0;
    for (int64_t i = 0; good && i < kPieces; ++i) {
      const ssize_t written = pwrite(fd, piece.get(), kPiece, i * kPiece);
      good = written == kPiece;
      // A full disk takes a part and sets no error.
      if (written >= 0 && !good) errno = ENOSPC;
    }
    if (way != WriteWay::buffered) good = good && fsync(fd) == 0;
    const int error_number = errno;
    close(fd);
    // Some file systems open the file and refuse the write.
    if (!good && direct != 0 && error_number == EINVAL) {
      possible = false;
      return;
    }
    if (!good) throw file_error(path, "", "cannot be written: " + errno_text(error_number));
  });
  std::filesystem::remove(path);
  return possible ? static_cast<double>(kPiece * kPieces) / seconds : 0;
}

Ceilings measure_ceilings(const BenchOptions& o, const Console& console, int threads,
                          const std::string& folder) {
  console.say("measuring this machine's ceilings");
  Ceilings ceilings{.cpu = measure_cpu_ceilings(threads), .disk = {}};
  if (o.wants("export")) {
    ceilings.disk = DiskCeilings{.folder = folder,
                                 .buffered = write_speed(folder, WriteWay::buffered),
                                 .durable = write_speed(folder, WriteWay::durable),
                                 .direct = write_speed(folder, WriteWay::direct)};
  }
  return ceilings;
}

void measure_heads(const BenchOptions& o, const std::vector<HeadSize>& sizes, BenchRuns& runs,
                   int threads, std::vector<BenchResult>& results) {
  for (const HeadSize& size : sizes) {
    const auto problem = random_problem(size.tokens, size.head_dim, {});
    if (o.wants("lse")) results.push_back(runs.norms("lse", *problem));
    if (o.wants("weights")) results.push_back(runs.weights("weights", *problem));
    if (o.wants("metrics")) results.push_back(runs.metrics(*problem));
    if (o.wants("pyramid")) results.push_back(runs.pyramid(*problem));
    if (o.wants("row")) results.push_back(runs.row(*problem));
    if (o.wants("tile")) results.push_back(runs.tile(*problem));
    for (int used = 1; o.wants("threads"); used = std::min(2 * used, threads)) {
      const std::string name = fmt::format("lse, {} thread{}", used, used == 1 ? "" : "s");
      results.push_back(runs.norms(name, *problem, used));
      if (used == threads) break;
    }
    if (!o.wants("export")) continue;
    results.push_back(runs.exported(problem, false));
    results.push_back(runs.exported(problem, true));
  }
  for (const int percent : {10, 90}) {
    if (!o.wants("masks")) continue;
    const HeadSize& size = sizes.front();
    const auto problem =
        random_problem(size.tokens, size.head_dim, random_block_mask(size.tokens, percent));
    results.push_back(runs.weights(fmt::format("weights mask {}%", percent), *problem));
  }
}

int run_bench(const BenchOptions& o) {
  const std::vector<HeadSize> sizes = o.head_sizes();
  const Console console(o.quiet);
  const InterruptWatch interrupts(console);
  const RunBackend backend = make_run_backend(o.run, console);
  MemoryBudget budget(memory_limit(o.run));
  const ScratchFolder scratch(o.folder.empty() ? std::filesystem::temp_directory_path().string()
                                               : o.folder);
  // Of a device the processor's ceilings say nothing: bench/cuda_figures.py measures a device's.
  std::optional<Ceilings> ceilings;
  if (backend->name().rfind("cuda", 0) != 0) {
    ceilings = measure_ceilings(o, console, backend->workers(), scratch.path());
  }
  BenchReport report{*backend, ceilings ? &*ceilings : nullptr};
  BenchRuns runs(
      {o, console, *backend, budget, report.ceilings, scratch.path(), interrupts.token()});
  measure_heads(o, sizes, runs, backend->workers(), report.results);
  o.json ? print_bench_json(report) : print_bench_table(report);
  return kExitOk;
}

}  // namespace

Command add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CommandParser command(
      app, "bench", "this machine's speed at one head, beside ceilings measured in the same run");
  add_run_options(command, options->run);
  add_bench_options(command, *options);
  command.footer(
      "Examples:\n"
      "  attnscope bench\n"
      "  attnscope bench --case lse --head 4096x128,16384x128,65536x128,119056x128   growth\n"
      "  attnscope bench --backend cuda --profile --head 118800x128 --case lse,pyramid,tile\n"
      "  attnscope bench --threads 1 --json");
  return {command, [options] { return run_bench(*options); }};
}

}  // namespace attnscope
