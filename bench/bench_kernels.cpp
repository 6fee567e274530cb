// Speed of the CPU kernels on one head, beside the peak of the same run:
//   bench_kernels [THREADS [ROUNDS [TOKENS HEAD_DIM [BACKEND …]]]]
//   bench_kernels scores …     the same arguments: LSE pass of capped logits and sinks, beside that
//   without, in turn
// Without BACKENDs, all of the processor's: float32 products, and vdpbf16ps and AMX where they are.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/problem/attention_problem.h"
#include "core/tensor/memory_tensor.h"
#include "kernels/backend_factory.h"
#include "kernels/cpu/cpu_ceilings.h"

namespace attnscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kPanelRows = 384;
constexpr int64_t kChunkCols = 512;

HeadTensor random_tensor(const char* name, int64_t tokens, int64_t width, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes(static_cast<size_t>(tokens * width * 2));
  for (int64_t i = 0; i < tokens * width; ++i) {
    const bf16 value = to_bf16(normal(random));
    std::memcpy(bytes.data() + 2 * i, &value, 2);
  }
  return HeadTensor(std::make_shared<MemoryTensor>(
                        name, DType::bf16, std::vector<int64_t>{tokens, width}, std::move(bytes)),
                    Layout::sd);
}

/// The buffers of one worker: query rows, tile, row norms, kernel workspace.
struct Worker {
  std::vector<std::byte> queries, tile, workspace;
  std::vector<std::byte*> chunks;
  std::vector<RowNorm> norms;
  std::vector<int64_t> index;
};

struct Run {
  const AttentionProblem& problem;
  const TileBackend& backend;
  std::unique_ptr<BoundHead> head;
  std::vector<Worker> workers;

  Run(const AttentionProblem& p, const TileBackend& b) : problem(p), backend(b) {
    const int64_t keys = p.num_keys();
    const int64_t chunks = (keys + kChunkCols - 1) / kChunkCols;
    const int64_t bytes = std::max(b.workspace_bytes(p, kPanelRows, keys, true),
                                   b.workspace_bytes(p, kPanelRows, keys, false));
    for (int i = 0; i < b.workers(); ++i) {
      Worker& w = workers.emplace_back();
      w.queries.resize(static_cast<size_t>(kPanelRows * p.q().row_bytes()));
      w.tile.resize(static_cast<size_t>(chunks * kPanelRows * kChunkCols * 2));
      w.workspace.resize(static_cast<size_t>(bytes));
      w.norms.resize(kPanelRows);
      for (int64_t c = 0; c < chunks; ++c) {
        w.chunks.push_back(w.tile.data() + c * kPanelRows * kChunkCols * 2);
      }
    }
  }

  /// Seconds for all panels; `work(worker, block, target)` does one.
  template <typename Work>
  double all_panels(Work work) {
    std::atomic<int64_t> next{0};
    const auto start = Clock::now();
    std::vector<std::jthread> threads;
    for (Worker& worker : workers) {
      threads.emplace_back([&] {
        for (int64_t row = next.fetch_add(kPanelRows); row < problem.num_queries();
             row = next.fetch_add(kPanelRows)) {
          const IndexRange rows{row, std::min(row + kPanelRows, problem.num_queries())};
          problem.q().read_rows(0, 0, rows, worker.queries.data());
          worker.index.clear();
          for (int64_t i = rows.begin; i < rows.end; ++i) worker.index.push_back(i);
          const EmitTarget target{worker.chunks, kChunkCols, kChunkCols, Encoding::f16_scaled};
          work(worker, QueryBlock{worker.queries.data(), worker.index}, target);
        }
      });
    }
    threads.clear();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
};

void report(const char* what, double seconds, const AttentionProblem& p, const CpuCeilings& peak) {
  const double entries = static_cast<double>(p.num_queries()) * static_cast<double>(p.num_keys());
  const double gflops = 2e-9 * entries * static_cast<double>(p.head_dim()) / seconds;
  std::printf("  %-28s %7.3f s  %7.1f GFLOP/s (%4.2f of the fp32 peak)  %6.2f Gentries/s\n", what,
              seconds, gflops, gflops / peak.fma_gflops, 1e-9 * entries / seconds);
}

void bench(int64_t tokens, int64_t width, int rounds, const TileBackend& backend) {
  AttentionProblem::Parts parts;
  parts.q = random_tensor("q", tokens, width, 1);
  parts.k = random_tensor("k", tokens, width, 2);
  parts.name = "bench";
  const AttentionProblem problem = AttentionProblem::make(std::move(parts));
  std::printf("S = %lld, d = %lld, bf16, %s\n", static_cast<long long>(tokens),
              static_cast<long long>(width), backend.description().c_str());
  Run run(problem, backend);
  double best[4] = {1e9, 1e9, 1e9, 1e9};
  CpuCeilings peak;
  const IndexRange keys{0, tokens};
  for (int round = 0; round < rounds; ++round) {
    const CpuCeilings now = measure_cpu_ceilings(backend.workers(), 0.2);
    if (now.fma_gflops > peak.fma_gflops) peak = now;
    const auto start = Clock::now();
    run.head = backend.bind(problem, 0, 0);
    best[0] = std::min(best[0], std::chrono::duration<double>(Clock::now() - start).count());
    best[1] = std::min(best[1], run.all_panels([&](Worker& w, const QueryBlock& q, auto&) {
      run.head->row_norms(q, std::span(w.norms).first(q.index.size()), w.workspace);
    }));
    best[2] = std::min(best[2], run.all_panels([&](Worker& w, const QueryBlock& q, auto& target) {
      run.head->emit_panel(q, std::span(w.norms).first(q.index.size()), keys, target, w.workspace);
    }));
    best[3] = std::min(best[3], run.all_panels([&](Worker& w, const QueryBlock& q, auto& target) {
      run.head->emit(q, std::span(w.norms).first(q.index.size()), keys, Quantity::weights, target,
                     w.workspace);
    }));
  }
  std::printf(
      "  peak: fp32 FMA %.1f (1 thread) %.1f (%d) GFLOP/s, exp2 %.2f / %.2f Gelem/s, bf16 "
      "%.1f / %.1f GFLOP/s\n",
      peak.fma_gflops_one_thread, peak.fma_gflops, peak.threads, peak.exp_gigaelements_one_thread,
      peak.exp_gigaelements, peak.bf16_gflops_one_thread, peak.bf16_gflops);
  if (peak.tile_gflops > 0) {
    std::printf("  AMX %.1f / %.1f GFLOP/s, exp2 by table %.2f Gelem/s\n",
                peak.tile_gflops_one_thread, peak.tile_gflops, peak.table_exp_gigaelements);
  }
  std::printf("  %-28s %7.4f s\n", "pack K", best[0]);
  report("norms only", best[1], problem, peak);
  report("norms + f16, one product", best[2], problem, peak);
  report("f16 rectangle, norms known", best[3], problem, peak);
}

/// What the process has computed so far, in seconds: others on the processor count less than in
/// time.
double user_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
}

void bench_scores(int64_t tokens, int64_t width, int rounds, const TileBackend& backend) {
  struct Variant {
    std::string name;
    AttentionProblem problem;
    double best = 1e9;
    std::vector<double> ratios;  // to plain softmax, a round each
  };
  std::vector<Variant> variants;
  const auto add = [&](const std::string& name, ScoreFunction score, Sinks sinks) {
    AttentionProblem::Parts parts;
    parts.q = random_tensor("q", tokens, width, 1);
    parts.k = random_tensor("k", tokens, width, 2);
    parts.score = score;
    parts.sinks = std::move(sinks);
    parts.name = name;
    variants.push_back({name, AttentionProblem::make(std::move(parts)), 1e9, {}});
  };
  add("softmax", ScoreFunction::softmax, {});
  add("softcap:50", ScoreFunction::softcap(50), {});
  add("softcap:2", ScoreFunction::softcap(2), {});
  add("sinks", ScoreFunction::softmax, Sinks({1, 1, 1}, {0.5f}));
  for (int round = 0; round < rounds; ++round) {
    double plain = 0;
    for (Variant& variant : variants) {
      Run run(variant.problem, backend);
      run.head = backend.bind(variant.problem, 0, 0);
      const double before = user_seconds();
      run.all_panels([&](Worker& w, const QueryBlock& q, auto&) {
        run.head->row_norms(q, std::span(w.norms).first(q.index.size()), w.workspace);
      });
      const double seconds = user_seconds() - before;
      if (&variant == &variants.front()) plain = seconds;
      variant.best = std::min(variant.best, seconds);
      variant.ratios.push_back(seconds / plain);
    }
  }
  std::printf("S = %lld, d = %lld, bf16, %s: LSE pass\n", static_cast<long long>(tokens),
              static_cast<long long>(width), backend.description().c_str());
  for (Variant& variant : variants) {
    const auto middle = variant.ratios.begin() + std::ssize(variant.ratios) / 2;
    std::nth_element(variant.ratios.begin(), middle, variant.ratios.end());
    std::printf("  %-12s %7.3f user s, %5.3f of softmax, by round %5.3f (median)\n",
                variant.name.c_str(), variant.best, variant.best / variants.front().best, *middle);
  }
}

}  // namespace
}  // namespace attnscope

int main(int argc, char** argv) {
  using attnscope::BackendKind;
  const bool scores = argc > 1 && std::string(argv[1]) == "scores";
  if (scores) --argc, ++argv;
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  std::vector<std::unique_ptr<attnscope::TileBackend>> backends;
  for (int i = 5; i < argc; ++i) {
    backends.push_back(
        attnscope::make_backend(attnscope::parse_backend(argv[i]), {.threads = threads}));
  }
  if (backends.empty()) {
    for (const BackendKind kind :
         {BackendKind::cpu_fma, BackendKind::cpu_bf16, BackendKind::cpu_amx}) {
      try {
        backends.push_back(attnscope::make_backend(kind, {.threads = threads}));
      } catch (const attnscope::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
    }
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const auto& backend : backends) {
    if (scores) {
      attnscope::bench_scores(argc > 4 ? std::atoll(argv[3]) : 17776,
                              argc > 4 ? std::atoll(argv[4]) : 128, rounds, *backend);
      continue;
    }
    if (argc > 4) {
      attnscope::bench(std::atoll(argv[3]), std::atoll(argv[4]), rounds, *backend);
      continue;
    }
    attnscope::bench(17776, 64, rounds, *backend);
    attnscope::bench(32760, 128, rounds, *backend);
  }
}
