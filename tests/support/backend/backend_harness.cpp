#include "tests/support/backend/backend_harness.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>

#include "core/base/error.h"
#include "core/stream/value_panels.h"
#include "kernels/backend_factory.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/simd/cpu_dispatch.h"
#include "kernels/cuda_module.h"
#include "tests/support/sanitized.h"

namespace attnscope::test {
namespace {

constexpr std::byte kGuard{0xa5};
constexpr size_t kGuardBytes = 64;

/// The largest error in a row's logits from sums that tensor cores cut off; 0 without tensor cores.
double cut_off(const NamedBackend& named, const AttentionCase& description,
               const Oracle::Row& row) {
  const bool tensor_cores = named.on_device && named.backend->name() != "cuda-cublas" &&
                            description.dtype != DType::f32 && !is_linear(description.score);
  if (!tensor_cores) return 0;
  return 0x1p-23 * row.magnitude * (2 + static_cast<double>(description.shape.head_dim) / 16);
}

}  // namespace

double logit_error_of(const NamedBackend& named, const AttentionCase& description,
                      const Oracle::Row& row) {
  return std::max(row.logit_error, cut_off(named, description, row));
}

double lse_error_of(const NamedBackend& named, const AttentionCase& description,
                    const Oracle::Row& row) {
  return std::max(row.one_sign ? row.logit_error : 0.0, cut_off(named, description, row));
}

bool only_devices_are_tested() {
  const char* const asked = std::getenv("ATTNSCOPE_TEST_BACKENDS");
  return asked != nullptr && std::string(asked) == "devices";
}

std::vector<NamedBackend> device_backends(std::string& reason) {
  std::vector<NamedBackend> backends;
  std::optional<CudaModule> module;
  try {
    module = CudaModule::load(cuda_module_path());
  } catch (const Error& error) {
    reason = error.what();
    return backends;
  }
  if (module->devices(reason) == 0) return backends;
  const std::shared_ptr<const TileBackend> cpu = make_cpu_backend({.threads = 1});
  const auto made = [&](DeviceKernels kernels) {
    // Many are there at once: none may count on all of the memory.
    return module->make_backend({.vram_share = 0.1, .kernels = kernels, .fallback = cpu});
  };
  // Each can do what those after it can.
  const std::pair<DeviceKernels, const char*> ways[] = {{DeviceKernels::wgmma, "cuda-wgmma"},
                                                        {DeviceKernels::mma, "cuda-mma"},
                                                        {DeviceKernels::cublas, "cuda-cublas"}};
  const std::string best = made(DeviceKernels::automatic)->name();
  for (const auto& [kernels, name] : ways) {
    if (backends.empty() && name != best) continue;
    backends.push_back({name + std::string(" on a device"), made(kernels), false, true});
  }
  return backends;
}

std::vector<NamedBackend> all_backends() {
  std::string reason;
  std::vector<NamedBackend> backends = device_backends(reason);
  if (only_devices_are_tested()) return backends;
  backends.push_back({"reference", make_backend(BackendKind::reference, {.threads = 1}), false});
  for (const CpuKernels* kernels : available_cpu_kernels()) {
    const std::string name = "cpu " + std::string(kernels->isa);
    const auto add = [&](const char* how, CpuProducts products, bool bf16_dots,
                         bool f16_dots = false) {
      CpuBackendOptions options{.threads = 1, .kernels = kernels, .products = products};
      backends.push_back({name + how, make_cpu_backend(options), bf16_dots, false, f16_dots});
    };
    add("", CpuProducts::floats, false);
    // Sanitizers watch the other products on the best instruction set alone.
    if (sanitized() && kernels != &best_cpu_kernels()) continue;
    add(" bf16 emulated", CpuProducts::bf16_emulated, true);
    if (kernels->bf16.softmax != nullptr) add(" bf16", CpuProducts::bf16, true);
    if (kernels->tiles_emulated.softmax != nullptr) {
      add(" tiles emulated", CpuProducts::tiles_emulated, false);
    }
    if (kernels->tiles.softmax != nullptr) add(" tiles", CpuProducts::tiles, false);
    if (kernels->f16_tiles_emulated.softmax != nullptr) {
      add(" f16 tiles emulated", CpuProducts::f16_tiles_emulated, false, true);
    }
    if (kernels->f16_tiles.softmax != nullptr) {
      add(" f16 tiles", CpuProducts::f16_tiles, false, true);
    }
  }
  for (NamedBackend& named : emulated_cuda_backends()) backends.push_back(std::move(named));
  return backends;
}

GuardedTile::GuardedTile(int64_t rows, int64_t cols, int64_t block_cols, Encoding encoding)
    : rows_(rows),
      cols_(cols),
      block_cols_(block_cols),
      stride_(block_cols + 3),
      encoding_(encoding) {
  const auto bytes = static_cast<size_t>(rows * stride_ * encoding_bytes(encoding));
  for (int64_t col = 0; col < cols; col += block_cols) {
    memory_.emplace_back(bytes + 2 * kGuardBytes, kGuard);
    blocks_.push_back(memory_.back().data() + kGuardBytes);
  }
}

EmitTarget GuardedTile::target() { return {blocks_, block_cols_, stride_, encoding_}; }

const std::byte* GuardedTile::at(int64_t row, int64_t col) const {
  const auto block = static_cast<size_t>(col / block_cols_);
  return memory_[block].data() + kGuardBytes +
         (row * stride_ + col % block_cols_) * encoding_bytes(encoding_);
}

bool GuardedTile::guards_intact() const {
  for (size_t block = 0; block < memory_.size(); ++block) {
    std::vector<std::byte> expected(memory_[block].size(), kGuard);
    const int64_t begin = static_cast<int64_t>(block) * block_cols_;
    const int64_t count = std::min(block_cols_, cols_ - begin) * encoding_bytes(encoding_);
    for (int64_t row = 0; row < rows_ && blocks_[block] != nullptr; ++row) {
      const std::byte* from = at(row, begin);
      std::copy(from, from + count, expected.data() + (from - memory_[block].data()));
    }
    if (expected != memory_[block]) return false;
  }
  return true;
}

double GuardedTile::value(int64_t row, int64_t col) const {
  const std::byte* from = at(row, col);
  if (encoding_ == Encoding::u8_log2) return std::to_integer<int>(*from);
  if (encoding_ == Encoding::f32) {
    float value = 0;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  f16 value;
  std::memcpy(&value, from, sizeof(value));
  return encoding_ == Encoding::f16 ? to_float(value) : to_float(value) / double{kF16Scale};
}

std::vector<std::byte> GuardedTile::row_bytes(int64_t row) const {
  std::vector<std::byte> bytes;
  for (int64_t col = 0; col < cols_; ++col) {
    const std::byte* from = at(row, col);
    bytes.insert(bytes.end(), from, from + encoding_bytes(encoding_));
  }
  return bytes;
}

HeadRun::HeadRun(const Oracle& oracle, const TileBackend& backend, int64_t batch, int64_t head)
    : oracle_(oracle),
      backend_(backend),
      batch_(batch),
      head_(head),
      bound_(backend.bind(oracle.problem(), batch, head)) {}

HeadRun::Rows HeadRun::load(const std::vector<int64_t>& rows) const {
  Rows loaded{oracle_.query_rows(batch_, head_, rows), rows};
  loaded.bytes.insert(loaded.bytes.begin(), kGuard);
  return loaded;
}

std::vector<std::byte> HeadRun::workspace(int64_t rows, int64_t cols, bool one_product) const {
  // Exactly what was asked for: more would hide an underestimate from the address sanitizer.
  return std::vector<std::byte>(
      static_cast<size_t>(backend_.workspace_bytes(oracle_.problem(), rows, cols, one_product)));
}

std::vector<RowNorm> HeadRun::norms(const std::vector<int64_t>& rows) const {
  const Rows loaded = load(rows);
  std::vector<RowNorm> norms(rows.size());
  auto bytes = workspace(static_cast<int64_t>(rows.size()), 0, false);
  bound_->row_norms(loaded.block(), norms, bytes);
  return norms;
}

void HeadRun::emit(const std::vector<int64_t>& rows, const std::vector<RowNorm>& norms,
                   IndexRange keys, Quantity quantity, GuardedTile& tile) const {
  const Rows loaded = load(rows);
  auto bytes = workspace(static_cast<int64_t>(rows.size()), keys.size(), false);
  bound_->emit(loaded.block(), norms, keys, quantity, tile.target(), bytes);
}

std::vector<RowNorm> HeadRun::emit_panel(const std::vector<int64_t>& rows, IndexRange keys,
                                         GuardedTile& tile) const {
  const Rows loaded = load(rows);
  std::vector<RowNorm> norms(rows.size());
  auto bytes = workspace(static_cast<int64_t>(rows.size()), keys.size(), true);
  bound_->emit_panel(loaded.block(), norms, keys, tile.target(), bytes);
  return norms;
}

std::vector<RowNorm> HeadRun::outputs(const std::vector<int64_t>& rows,
                                      const OutputTarget& target) const {
  const BoundValues values(oracle_.problem(), batch_, head_);
  return outputs(rows, target, values.panels());
}

std::vector<RowNorm> HeadRun::outputs(const std::vector<int64_t>& rows, const OutputTarget& target,
                                      const ValuePanels& values) const {
  const Rows loaded = load(rows);
  const AttentionProblem& problem = oracle_.problem();
  std::vector<RowNorm> norms(is_normalised(problem.score()) ? rows.size() : 0);
  std::vector<std::byte> bytes(static_cast<size_t>(
      backend_.outputs_workspace_bytes(problem, static_cast<int64_t>(rows.size()))));
  bound_->outputs(loaded.block(), norms, values, target, bytes);
  return norms;
}

std::vector<int64_t> iota(int64_t count) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

}  // namespace attnscope::test
