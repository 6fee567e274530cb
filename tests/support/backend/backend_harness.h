#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/stream/tile_backend.h"
#include "tests/support/backend/attention_case.h"

namespace attnscope::test {

/// A backend under test.
struct NamedBackend {
  std::string name;
  std::unique_ptr<TileBackend> backend;
  bool bf16_dots = false;  ///< differs from the others only for bf16 tensors
  bool on_device = false;  ///< a real one
  bool f16_dots = false;   ///< differs from the others only for f16 tensors

  /// True where another backend computes the same for tensors of this type.
  bool is_twin_for(DType dtype) const {
    return (bf16_dots && dtype != DType::bf16) || (f16_dots && dtype != DType::f16);
  }

  /// True where a device leaves the problem to the processor.
  bool leaves(const AttentionProblem& problem) const {
    return backend->name().starts_with("cuda") && !backend->name_for(problem).starts_with("cuda");
  }

  /// Backends of one kind give the same bits.
  std::string kind() const {
    return backend->name() + (bf16_dots ? " emulated" : "") + (on_device ? " on a device" : "");
  }
};

/// How far the backend may be off a row's logits: Oracle::Row::logit_error, and on the tensor cores
/// of a real device at least (2 + d/16)·2⁻²³·M. They add the products of 16 channels to a sum at a
/// time, and what does not fit the sum's bits is cut off: up to 2⁻²³ of the sum each time, always
/// to the same side, so that it does not cancel out over channels or keys as roundings do.
double logit_error_of(const NamedBackend& named, const AttentionCase& description,
                      const Oracle::Row& row);
/// This bound for a row's LSE, in which roundings of terms with random signs cancel out.
double lse_error_of(const NamedBackend& named, const AttentionCase& description,
                    const Oracle::Row& row);

/// The reference, the CPU backend on every instruction set of this machine, and its bf16 dot
/// products and tiles (native where there are any, and emulated), the CUDA backend on emulated
/// devices, and on those of this machine. With ATTNSCOPE_TEST_BACKENDS=devices in the environment,
/// the last alone.
std::vector<NamedBackend> all_backends();
bool only_devices_are_tested();

/// The CUDA backend with each of its kinds of kernels that this machine's devices can run; none
/// where there is no device or no module beside the test, and `reason` says which. A device that
/// cannot be used is an error.
std::vector<NamedBackend> device_backends(std::string& reason);

/// The CUDA backend with and without tensor cores, on emulated devices; none where the build has no
/// emulation.
std::vector<NamedBackend> emulated_cuda_backends();

/// A rectangle of entries between guard bytes, in column blocks with a row stride of their own.
class GuardedTile {
 public:
  GuardedTile(int64_t rows, int64_t cols, int64_t block_cols, Encoding encoding);

  EmitTarget target();
  /// A null block is not wanted.
  void drop_block(int64_t block) { blocks_[static_cast<size_t>(block)] = nullptr; }
  /// True where every byte outside [rows × cols] of the wanted blocks is as it was.
  bool guards_intact() const;
  /// The entry's bytes as a number: f32 as it is, f16 widened (scaled ones divided by 2¹⁴), codes
  /// as integers.
  double value(int64_t row, int64_t col) const;
  /// The bytes of a row, blocks in order.
  std::vector<std::byte> row_bytes(int64_t row) const;

 private:
  const std::byte* at(int64_t row, int64_t col) const;

  int64_t rows_, cols_, block_cols_, stride_;
  Encoding encoding_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::byte*> blocks_;
};

/// One bound head with everything a call needs.
class HeadRun {
 public:
  HeadRun(const Oracle& oracle, const TileBackend& backend, int64_t batch, int64_t head);

  std::vector<RowNorm> norms(const std::vector<int64_t>& rows) const;
  void emit(const std::vector<int64_t>& rows, const std::vector<RowNorm>& norms, IndexRange keys,
            Quantity quantity, GuardedTile& tile) const;
  std::vector<RowNorm> emit_panel(const std::vector<int64_t>& rows, IndexRange keys,
                                  GuardedTile& tile) const;
  /// Outputs of the rows, from the case's V or another.
  std::vector<RowNorm> outputs(const std::vector<int64_t>& rows, const OutputTarget& target) const;
  std::vector<RowNorm> outputs(const std::vector<int64_t>& rows, const OutputTarget& target,
                               const ValuePanels& values) const;

 private:
  /// Query rows at an odd address, as a caller may have them.
  struct Rows {
    std::vector<std::byte> bytes;
    std::vector<int64_t> index;
    QueryBlock block() const { return {bytes.data() + 1, index}; }
  };
  Rows load(const std::vector<int64_t>& rows) const;
  std::vector<std::byte> workspace(int64_t rows, int64_t cols, bool one_product) const;

  const Oracle& oracle_;
  const TileBackend& backend_;
  const int64_t batch_, head_;
  std::unique_ptr<BoundHead> bound_;
};

/// 0, 1, …, count − 1.
std::vector<int64_t> iota(int64_t count);

}  // namespace attnscope::test
