// Cost of the fused reductions beside the pass for the row normalisers alone, in the same run:
//   bench_reductions [THREADS [ROUNDS [T H W TEXT HEAD_DIM [BACKEND [NAME]]]]]
// NAME: only the reductions whose name begins so.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/problem/sampled_rows.h"
#include "core/reduce/head_metrics.h"
#include "core/reduce/reduction_stream.h"
#include "core/tensor/memory_tensor.h"
#include "kernels/backend_factory.h"

namespace attnscope {
namespace {

constexpr int64_t kBudget = int64_t{4} << 30;

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

class NormSink : public TileSink {
 public:
  TileRequest request() const override { return {.entries = false}; }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile&) override {}
  void end() override {}
};

class NullReductions : public ReductionSink {
 public:
  void head(int64_t, const HeadTotals&) override {}
};

struct Variant {
  std::string name;
  ReductionRequest request;
  double best = 1e9;
};

/// Processor seconds of all threads: other work on the machine disturbs them less than the clock.
double seconds_of(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

void bench(const TokenGrid& tokens, int64_t width, int rounds, const TileBackend& backend,
           const std::string& name) {
  AttentionProblem::Parts parts;
  parts.q = random_tensor("q", tokens.tokens(), width, 1);
  parts.k = random_tensor("k", tokens.tokens(), width, 2);
  parts.query_tokens = parts.key_tokens = tokens;
  parts.id.kind = CallKind::joint;
  parts.name = "bench";
  const AttentionProblem problem = AttentionProblem::make(std::move(parts));
  const HeadTask task{&problem, 0, 0, {0, tokens.tokens()}, {}, {0, tokens.tokens()}};
  const std::vector<int64_t> spread = sampled_rows(tokens.tokens(), 256);

  ReductionRequest pyramid;
  pyramid.block = 16;
  const ReductionRequest stats = metrics_request(problem, spread);
  ReductionRequest all = stats;
  all.block = 16;
  all.max_keys = all.diagonals = true;
  ReductionRequest offsets = stats;
  offsets.offsets = true;
  ReductionRequest rows;
  rows.rows = true;
  ReductionRequest entropy = rows;
  entropy.entropy = true;
  ReductionRequest columns = rows;
  columns.columns = true;
  ReductionRequest places = rows;
  places.places = true;
  places.band = default_band(tokens);
  ReductionRequest diagonals = rows;
  diagonals.diagonals = true;
  ReductionRequest shares = rows;
  shares.share_rows = spread;
  std::vector<Variant> variants{{"rows", rows},
                                {"rows, entropy", entropy},
                                {"rows, columns", columns},
                                {"rows, places", places},
                                {"rows, diagonals", diagonals},
                                {"rows, key shares", shares},
                                {"pyramid, blocks of 16", pyramid},
                                {"stats", stats},
                                {"all but the offsets", all},
                                {"stats and offsets", offsets}};
  std::erase_if(variants, [&](const Variant& v) { return !v.name.starts_with(name); });
  std::printf("S = %lld, d = %lld, bf16, %s\n", static_cast<long long>(tokens.tokens()),
              static_cast<long long>(width), backend.description().c_str());
  double lse = 1e9;
  NormSink norms;
  NullReductions sink;
  for (int round = 0; round < rounds; ++round) {
    lse =
        std::min(lse, seconds_of([&] {
                   MemoryBudget budget(kBudget);
                   const TilePlan plan = plan_tiles({&task, 1}, norms.request(), backend, kBudget);
                   StreamingEngine(backend, budget).run({&task, 1}, plan, norms);
                 }));
    for (Variant& variant : variants) {
      variant.best =
          std::min(variant.best, seconds_of([&] {
                     MemoryBudget budget(kBudget);
                     const ReductionJob job{task, variant.request};
                     const ReductionPlan plan = plan_reductions({&job, 1}, backend, kBudget);
                     ReductionStream(backend, budget).run({&job, 1}, plan, sink);
                   }));
    }
  }
  std::printf("  %-24s %8.3f s of processor time\n", "row normalisers (LSE)", lse);
  for (const Variant& variant : variants) {
    std::printf("  %-24s %8.3f s  %5.2f x\n", variant.name.c_str(), variant.best,
                variant.best / lse);
  }
}

}  // namespace
}  // namespace attnscope

int main(int argc, char** argv) {
  using namespace attnscope;
  const auto number = [&](int i, int64_t otherwise) {
    return argc > i ? std::atoll(argv[i]) : otherwise;
  };
  const auto backend = make_backend(argc > 8 ? parse_backend(argv[8]) : BackendKind::automatic,
                                    {.threads = static_cast<int>(number(1, 0))});
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int64_t t = number(3, 13), h = number(4, 30), w = number(5, 45), text = number(6, 226);
  bench(TokenGrid::video(text + t * h * w, {t, h, w}, text,
                         text == 0 ? TextPlace::none : TextPlace::start),
        number(7, 64), static_cast<int>(number(2, 5)), *backend, argc > 9 ? argv[9] : "");
}
