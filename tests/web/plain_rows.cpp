// The row of weights that the CPU backend without fused multiply-adds gives, for comparison with a
// page's: plain_rows Q K DTYPE QUERIES KEYS DIM ROW OUT, of files of packed numbers; writes
// float32. Exits with 77 where this processor's build has no such kernels.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "core/problem/attention_problem.h"
#include "core/tensor/memory_tensor.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/cpu_dispatch.h"

using namespace attnscope;

namespace {

HeadTensor tensor_of(const char* file, DType dtype, int64_t tokens, int64_t width) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  return HeadTensor(
      std::make_shared<MemoryTensor>(file, dtype, std::vector<int64_t>{tokens, width},
                                     std::vector<std::byte>(bytes, bytes + text.size())),
      Layout::sd);
}

std::vector<float> row_of(const AttentionProblem& problem, const CpuKernels& kernels, int64_t row) {
  const auto backend = make_cpu_backend({.threads = 1, .kernels = &kernels});
  const auto head = backend->bind(problem, 0, 0);
  std::vector<std::byte> query(static_cast<size_t>(problem.q().row_bytes()));
  problem.q().read_rows(0, 0, {row, row + 1}, query.data());
  std::vector<std::byte> workspace(
      static_cast<size_t>(backend->workspace_bytes(problem, 1, problem.num_keys(), false)));
  const std::vector<int64_t> index{row};
  const QueryBlock block{query.data(), index};
  std::vector<RowNorm> norms(1);
  head->row_norms(block, norms, workspace);
  std::vector<float> weights(static_cast<size_t>(problem.num_keys()));
  std::byte* const out = reinterpret_cast<std::byte*>(weights.data());
  const EmitTarget target{{&out, 1}, problem.num_keys(), problem.num_keys(), Encoding::f32};
  head->emit(block, norms, {0, problem.num_keys()}, Quantity::weights, target, workspace);
  return weights;
}

int run(char** argv) {
  const CpuKernels* plain = nullptr;
  for (const CpuKernels* each : available_cpu_kernels()) {
    if (!each->fused_multiply_add) plain = each;
  }
  if (plain == nullptr) return 77;
  const DType dtype = parse_dtype(argv[3]).value();
  const auto number = [&](int i) { return static_cast<int64_t>(std::atoll(argv[i])); };
  AttentionProblem::Parts parts;
  parts.q = tensor_of(argv[1], dtype, number(4), number(6));
  parts.k = tensor_of(argv[2], dtype, number(5), number(6));
  const std::vector<float> row =
      row_of(AttentionProblem::make(std::move(parts)), *plain, number(7));
  std::ofstream out(argv[8], std::ios::binary);
  out.write(reinterpret_cast<const char*>(row.data()),
            static_cast<std::streamsize>(row.size() * sizeof(float)));
  return out.good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) return 2;
  try {
    return run(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plain_rows: %s\n", error.what());
    return 1;
  }
}
