#include <fcntl.h>
#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "cli/common/capture_options.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/interrupt.h"
#include "cli/common/run_backend.h"
#include "cli/common/system_memory.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/reduce/reduction_stream.h"
#include "core/stream/streaming_engine.h"
#include "core/tensor/memory_tensor.h"
#include "io/export/write/hdf5_export.h"
#include "io/export/write/make_export.h"
#include "kernels/cpu/cpu_ceilings.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct BenchOptions {
  RunOptions run;
  std::string folder;
  std::vector<std::string> heads;  ///< "SxD"; empty: kHeads
  std::vector<std::string> cases;  ///< empty: kUsualCases
  int repeats = 5;
  bool json = false;
  bool quiet = false;
};

const std::vector<std::string> kHeads{"17776x64", "32760x128"};
const std::vector<std::string> kUsualCases{"lse", "weights", "export", "masks"};
const std::vector<std::string> kCases{"lse", "weights", "pyramid", "tile", "export", "masks"};
constexpr int64_t kTileSide = 2048;
constexpr int64_t kPyramidBlock = 16;

/// Tokens and channels of a head.
struct HeadSize {
  int64_t tokens = 0;
  int64_t head_dim = 0;
};

HeadSize parse_head(const std::string& text) {
  HeadSize size;
  const char* const end = text.data() + text.size();
  const auto tokens = std::from_chars(text.data(), end, size.tokens);
  if (tokens.ec == std::errc() && tokens.ptr != end && *tokens.ptr == 'x') {
    const auto dim = std::from_chars(tokens.ptr + 1, end, size.head_dim);
    const bool good = dim.ec == std::errc() && dim.ptr == end && size.tokens > 0 &&
                      size.tokens <= 1 << 20 && size.head_dim > 0 && size.head_dim <= 4096;
    if (good) return size;
  }
  throw usage_error("--head " + text +
                    ": expected tokens (up to 1048576) and channels (up to 4096): 17776x64");
}

/// One line of the table.
struct BenchResult {
  std::string name;
  double seconds = 0;
  double flops = 0;
  double entries = 0;
  double bytes = 0;
  double floor_seconds = 0;  ///< 0: not known
  int64_t memory_bytes = 0;
};

/// This machine's limits, measured in the same run.
struct Ceilings {
  CpuCeilings cpu;
  double write_bytes_per_second = 0;    ///< into the page cache
  double durable_bytes_per_second = 0;  ///< until fsync has returned
  double direct_bytes_per_second = 0;   ///< past the page cache; 0 where that is not possible
};

/// How the disk is written to for a ceiling.
enum class WriteWay : uint8_t { buffered, durable, direct };

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

std::shared_ptr<const AttentionProblem> make_problem(int64_t tokens, int64_t d, const Mask& mask) {
  AttentionProblem::Parts parts;
  parts.q = HeadTensor(random_tensor("q", tokens, d, 1), Layout::bhsd);
  parts.k = HeadTensor(random_tensor("k", tokens, d, 2), Layout::bhsd);
  parts.mask = mask;
  parts.id.branches = {"all"};
  parts.name = fmt::format("S={} d={}", tokens, d);
  return std::make_shared<AttentionProblem>(AttentionProblem::make(std::move(parts)));
}

/// A block mask that keeps `percent` of the 128×128 blocks, the diagonal included.
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

/// Takes tiles and drops them: what computing alone costs.
class NullSink : public TileSink {
 public:
  explicit NullSink(TileRequest request) : request_(request) {}
  TileRequest request() const override { return request_; }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile&) override {}
  void end() override {}

 private:
  TileRequest request_;
};

class NullReductionSink : public ReductionSink {
 public:
  void head(int64_t, const HeadTotals&) override {}
};

/// Best of several: the machine's own noise only ever adds time.
template <typename Run>
double best_seconds(int repeats, const Run& run) {
  double best = INFINITY;
  for (int i = 0; i < repeats; ++i) {
    const auto start = Clock::now();
    run();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

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

/// The processor's own name where the system tells it, else its architecture.
std::string processor_name(const std::string& machine) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return machine;
}

class Bench {
 public:
  Bench(const BenchOptions& o, const Console& console, std::stop_token stop)
      : options_(o),
        console_(console),
        stop_(stop),
        backend_(make_run_backend(o.run, console)),
        budget_(memory_limit(o.run)),
        scratch_(o.folder.empty() ? std::filesystem::temp_directory_path().string() : o.folder),
        folder_(scratch_.path()) {}

  void run() {
    std::vector<HeadSize> sizes;
    for (const std::string& text : options_.heads.empty() ? kHeads : options_.heads) {
      sizes.push_back(parse_head(text));
    }
    if (!on_device()) measure_ceilings();
    TileRequest weights;
    weights.encoding = Encoding::f16_scaled;
    for (const HeadSize& size : sizes) {
      const auto problem = make_problem(size.tokens, size.head_dim, {});
      TileRequest norms;
      norms.entries = false;
      if (wants("lse")) compute("lse", *problem, norms);
      if (wants("weights")) compute("weights", *problem, weights);
      if (wants("pyramid")) reduce_to_blocks(*problem);
      if (wants("tile")) emit_tile(*problem);
      if (!wants("export")) continue;
      export_weights(problem, false);
      export_weights(problem, true);
    }
    for (int percent : {10, 90}) {
      if (!wants("masks")) continue;
      const HeadSize& size = sizes.front();
      const auto problem =
          make_problem(size.tokens, size.head_dim, random_block_mask(size.tokens, percent));
      compute(fmt::format("weights mask {}%", percent), *problem, weights);
    }
  }

  void print() const { options_.json ? print_json() : print_table(); }

 private:
  bool wants(const std::string& name) const {
    const auto& cases = options_.cases.empty() ? kUsualCases : options_.cases;
    return std::find(cases.begin(), cases.end(), name) != cases.end();
  }
  /// Then the processor's ceilings say nothing: bench/cuda_figures.py measures a device's.
  bool on_device() const { return backend_->name().rfind("cuda", 0) == 0; }

  void measure_ceilings() {
    console_.say("measuring this machine's ceilings");
    ceilings_.cpu = measure_cpu_ceilings(backend_->workers());
    ceilings_.write_bytes_per_second = measure_write(WriteWay::buffered);
    ceilings_.durable_bytes_per_second = measure_write(WriteWay::durable);
    ceilings_.direct_bytes_per_second = measure_write(WriteWay::direct);
  }

  /// Bytes a second of pwrite into a preallocated file, in pieces as large as an export's; 0 where
  /// the file system cannot write past the page cache.
  double measure_write(WriteWay way) const {
    constexpr int64_t kPiece = 13 << 20;
    constexpr int64_t kPieces = 48;
    const std::string path = folder_ + "/attnscope-bench.tmp";
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

  double compute_floor(const TilePlan& plan, double entries) const {
    if (on_device()) return 0;
    // One product is the floor, whatever the plan needed.
    const double products = plan.one_product ? 1 : 2;
    const CpuCeilings& cpu = ceilings_.cpu;
    const double flops = plan.flops / products * 1e-9;
    if (backend_->name() == "cpu-amx") {
      // The tile unit works beside the vector units.
      return std::max(flops / cpu.tile_gflops, entries * 1e-9 / cpu.table_exp_gigaelements);
    }
    // Q and K are bf16: the peak is that of the better instructions for those.
    const double peak = std::max(cpu.bf16_gflops, cpu.fma_gflops);
    return flops / peak + entries * 1e-9 / cpu.exp_gigaelements;
  }

  void compute(const std::string& name, const AttentionProblem& problem,
               const TileRequest& request) {
    const HeadTask task{&problem, 0, 0, {0, problem.num_queries()}, {}, {0, problem.num_keys()}};
    const std::span<const HeadTask> tasks(&task, 1);
    const TilePlan plan =
        plan_tiles(tasks, request, *backend_, budget_.limit(), options_.run.threads);
    console_.say(fmt::format("{} {}", problem.name(), name));
    StreamingEngine engine(*backend_, budget_);
    StreamControl control;
    control.stop = stop_;
    const double seconds = best_seconds(options_.repeats, [&] {
      NullSink sink(request);
      if (!engine.run(tasks, plan, sink, control)) {
        throw Error(ErrorCode::interrupted, "interrupted");
      }
    });
    const auto entries = static_cast<double>(plan.entries);
    results_.push_back({problem.name() + " " + name, seconds, plan.flops, entries, 0,
                        compute_floor(plan, entries), plan.bytes_total});
  }

  /// One reduction to blocks, as the window's first levels and pooled exports are made.
  void reduce_to_blocks(const AttentionProblem& problem) {
    ReductionJob job{{&problem, 0, 0, {0, problem.num_queries()}, {}, {0, problem.num_keys()}}, {}};
    job.request.block = kPyramidBlock;
    const std::span<const ReductionJob> jobs(&job, 1);
    const ReductionPlan plan =
        plan_reductions(jobs, *backend_, budget_.limit(), options_.run.threads);
    console_.say(fmt::format("{} pyramid", problem.name()));
    ReductionStream stream(*backend_, budget_);
    StreamControl control;
    control.stop = stop_;
    const double seconds = best_seconds(options_.repeats, [&] {
      NullReductionSink sink;
      if (!stream.run(jobs, plan, sink, control)) {
        throw Error(ErrorCode::interrupted, "interrupted");
      }
    });
    results_.push_back(
        {fmt::format("{} pyramid of {}x{} blocks", problem.name(), kPyramidBlock, kPyramidBlock),
         seconds, plan.flops, plan.entries, 0, 0, plan.bytes_total});
  }

  /// One tile whose rows' norms are known already, in one call.
  void emit_tile(const AttentionProblem& problem) {
    const int64_t side = std::min({kTileSide, problem.num_queries(), problem.num_keys()});
    console_.say(fmt::format("{} tile", problem.name()));
    std::vector<std::byte> rows(static_cast<size_t>(side * problem.q().row_bytes()));
    problem.q().read_rows(0, 0, {0, side}, rows.data());
    std::vector<int64_t> index(static_cast<size_t>(side));
    std::iota(index.begin(), index.end(), 0);
    const QueryBlock queries{rows.data(), index};
    const int64_t bytes = backend_->workspace_bytes(problem, side, side, false);
    const int64_t tile_bytes = side * side * encoding_bytes(Encoding::f16_scaled);
    const MemoryReservation reserved = budget_.reserve(bytes + tile_bytes, "a tile");
    std::vector<std::byte> workspace(static_cast<size_t>(bytes));
    std::vector<std::byte> entries(static_cast<size_t>(tile_bytes));
    std::byte* const block = entries.data();
    const auto head = backend_->bind(problem, 0, 0);
    std::vector<RowNorm> norms(static_cast<size_t>(side));
    head->row_norms(queries, norms, workspace);
    const double seconds = best_seconds(options_.repeats, [&] {
      if (stop_.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
      head->emit(queries, norms, {0, side}, Quantity::weights,
                 {{&block, 1}, side, side, Encoding::f16_scaled}, workspace);
    });
    const auto count = static_cast<double>(side * side);
    results_.push_back({fmt::format("{} tile of {}x{}", problem.name(), side, side), seconds,
                        2 * count * static_cast<double>(problem.head_dim()), count,
                        static_cast<double>(tile_bytes), 0, bytes + tile_bytes});
  }

  void export_weights(const std::shared_ptr<const AttentionProblem>& problem, bool sync) {
    CallEntry call;
    call.problem = problem;
    call.id = problem->id();
    ExportSpec spec;
    spec.calls = {{.selected = {&call, {0}, {0}},
                   .rows = {0, problem->num_queries()},
                   .row_list = {},
                   .keys = {0, problem->num_keys()}}};
    spec.capture_name = "bench";
    spec.options_json = "{}";
    spec.backend = backend_->name_for(*problem);
    const std::string out = folder_ + "/attnscope-bench.h5";
    console_.say(fmt::format("{} export to {}", problem->name(), out));
    StreamingEngine engine(*backend_, budget_);
    TilePlan plan;
    int64_t bytes = 0;
    const double seconds = best_seconds(options_.repeats, [&] {
      std::filesystem::remove(out);
      ExportPlan export_plan = spec;
      const ExportWriteOptions how{.sync = sync};
      const int at_disk = threads_at_disk(export_plan, how);
      const auto sink = make_export(std::move(export_plan), out, how);
      plan = plan_tiles(sink->tasks(), sink->request(), *backend_, budget_.limit(),
                        options_.run.threads, at_disk);
      StreamControl control;
      control.stop = stop_;
      if (!engine.run(sink->tasks(), plan, *sink, control)) {
        throw Error(ErrorCode::interrupted, "interrupted");
      }
      bytes = sink->bytes_written();
    });
    std::filesystem::remove(out);
    const auto entries = static_cast<double>(plan.entries);
    const double rate =
        sync ? std::max(ceilings_.durable_bytes_per_second, ceilings_.direct_bytes_per_second)
             : ceilings_.write_bytes_per_second;
    const double floor =
        on_device() ? 0 : std::max(compute_floor(plan, entries), static_cast<double>(bytes) / rate);
    results_.push_back(
        {problem->name() + " export f16 (" + (sync ? "durable" : "closed file") + ")", seconds,
         plan.flops, entries, static_cast<double>(bytes), floor, plan.bytes_total});
  }

  void print_ceilings() const {
    fmt::print("FMA peak       {:.0f} GFLOP/s (one thread {:.0f})\n", ceilings_.cpu.fma_gflops,
               ceilings_.cpu.fma_gflops_one_thread);
    if (ceilings_.cpu.bf16_gflops > 0) {
      fmt::print("bf16 dot peak  {:.0f} GFLOP/s\n", ceilings_.cpu.bf16_gflops);
    }
    fmt::print("exp2 rate      {:.1f} G/s\n", ceilings_.cpu.exp_gigaelements);
    if (ceilings_.cpu.tile_gflops > 0) {
      fmt::print("AMX peak       {:.0f} GFLOP/s; exp2 by table {:.1f} G/s\n",
                 ceilings_.cpu.tile_gflops, ceilings_.cpu.table_exp_gigaelements);
    }
    fmt::print("disk write     {}B/s; until durable {}B/s",
               format_count(ceilings_.write_bytes_per_second),
               format_count(ceilings_.durable_bytes_per_second));
    if (ceilings_.direct_bytes_per_second > 0) {
      fmt::print(", past the page cache {}B/s", format_count(ceilings_.direct_bytes_per_second));
    }
    fmt::print(" ({})\n", folder_);
  }

  void print_table() const {
    fmt::print("backend        {}\n", backend_->description());
    if (!on_device()) print_ceilings();
    fmt::print("\n{:<44} {:>9} {:>9} {:>10} {:>9} {:>9} {:>6} {:>10}\n", "", "seconds", "GFLOP/s",
               "Gentries/s", "GB/s", "floor s", "ratio", "memory");
    for (const BenchResult& r : results_) {
      const bool floor = r.floor_seconds > 0;
      fmt::print("{:<44} {:>9.4f} {:>9.1f} {:>10.3f} {:>9.2f} {:>9} {:>6} {:>10}\n", r.name,
                 r.seconds, r.flops / r.seconds * 1e-9, r.entries / r.seconds * 1e-9,
                 r.bytes / r.seconds * 1e-9, floor ? fmt::format("{:.4f}", r.floor_seconds) : "-",
                 floor ? fmt::format("{:.2f}", r.seconds / r.floor_seconds) : "-",
                 format_bytes(r.memory_bytes));
    }
  }

  void print_json() const {
    utsname names{};
    uname(&names);
    Json json;
    json["format"] = "attnscope-bench/1";
    json["machine"] = {{"kernel", std::string(names.sysname) + " " + names.release},
                       {"processor", processor_name(names.machine)},
                       {"backend", backend_->description()},
                       {"threads", backend_->workers()}};
    if (!on_device()) {
      json["machine"].update(
          Json{{"fma_gflops", ceilings_.cpu.fma_gflops},
               {"fma_gflops_one_thread", ceilings_.cpu.fma_gflops_one_thread},
               {"bf16_gflops", ceilings_.cpu.bf16_gflops},
               {"exp_gigaelements", ceilings_.cpu.exp_gigaelements},
               {"amx_gflops", ceilings_.cpu.tile_gflops},
               {"table_exp_gigaelements", ceilings_.cpu.table_exp_gigaelements},
               {"write_bytes_per_second", ceilings_.write_bytes_per_second},
               {"durable_write_bytes_per_second", ceilings_.durable_bytes_per_second},
               {"direct_write_bytes_per_second", ceilings_.direct_bytes_per_second}});
    }
    json["results"] = Json::array();
    for (const BenchResult& r : results_) {
      json["results"].push_back({{"name", r.name},
                                 {"seconds", r.seconds},
                                 {"gflops", r.flops / r.seconds * 1e-9},
                                 {"entries_per_second", r.entries / r.seconds},
                                 {"bytes_per_second", r.bytes / r.seconds},
                                 {"memory_bytes", r.memory_bytes}});
      if (r.floor_seconds <= 0) continue;
      json["results"].back()["floor_seconds"] = r.floor_seconds;
      json["results"].back()["ratio_to_floor"] = r.seconds / r.floor_seconds;
    }
    attnscope::print_json(json, true);
  }

  const BenchOptions& options_;
  const Console& console_;
  std::stop_token stop_;
  RunBackend backend_;
  MemoryBudget budget_;
  const ScratchFolder scratch_;
  const std::string folder_;
  Ceilings ceilings_;
  std::vector<BenchResult> results_;
};

int run_bench(const BenchOptions& o) {
  const Console console(o.quiet);
  const InterruptWatch interrupts(console);
  Bench bench(o, console, interrupts.token());
  bench.run();
  bench.print();
  return kExitOk;
}

}  // namespace

Command add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  BenchOptions& o = *options;
  CommandParser command(
      app, "bench", "this machine's speed at one head, beside ceilings measured in the same run");
  add_run_options(command, o.run);
  command
      .add_option("--folder", o.folder,
                  "where the export is written, up to 2.2 GB (default: the temporary folder)")
      .type_name("DIR");
  command
      .add_option("--head", o.heads,
                  "tokens and channels of a head (repeatable; default 17776x64 and 32760x128)")
      .type_name("SxD")
      .delimiter(',')
      .one_value_each();
  command
      .add_option("--case", o.cases,
                  "what to time: lse, weights, pyramid (16 x 16 blocks), tile (2048 x 2048, its\n"
                  "rows known), export, masks (default: lse, weights, export and masks)")
      .type_name("NAME")
      .delimiter(',')
      .one_value_each()
      .one_of(kCases);
  command.add_option("--repeats", o.repeats, "runs of each; the best counts (default 5)")
      .in_range(1, 1000)
      .type_name("N");
  command.add_flag("--json", o.json, "print JSON");
  command.add_flag("--quiet", o.quiet, "no narration");
  command.footer(
      "Examples:\n"
      "  attnscope bench\n"
      "  attnscope bench --backend cuda --profile --head 118800x128 --case lse,pyramid,tile\n"
      "  attnscope bench --threads 1 --json");
  return {command, [options] { return run_bench(*options); }};
}

}  // namespace attnscope
