#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"

namespace attnscope::test {

/// A tensor [B, H, S, d] that exists only as a rule: element (b, h, s, c) is row_value(b, h, s) +
/// c, as f32. It takes no memory, whatever its shape.
class RuleTensor : public TensorSource {
 public:
  RuleTensor(std::string name, std::vector<int64_t> shape)
      : name_(std::move(name)), shape_(std::move(shape)) {}
  static float row_value(int64_t batch, int64_t head, int64_t row) {
    return static_cast<float>(row * 64 + batch * 8 + head);
  }

  DType dtype() const override { return DType::f32; }
  std::span<const int64_t> shape() const override { return shape_; }
  const std::string& name() const override { return name_; }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override;

 private:
  std::string name_;
  std::vector<int64_t> shape_;
};

/// A problem of rule tensors; the mask is the caller's.
AttentionProblem rule_problem(int64_t batch, int64_t heads, int64_t queries, int64_t keys,
                              int64_t head_dim, Mask mask = {},
                              ScoreFunction score = ScoreFunction::softmax);

/// The weight and the logit of a fake head at entry (query, key), and the norm of a row: exact in
/// float and different for neighbours.
float fake_weight(int64_t batch, int64_t head, int64_t query, int64_t key);
float fake_logit(int64_t batch, int64_t head, int64_t query, int64_t key);
RowNorm fake_norm(int64_t batch, int64_t head, int64_t query);

/// Where a run may be made to fail or stop.
enum class FakeCall { bind, row_norms, emit, emit_panel };

/// A backend with costs of any size that computes fake_weight and checks what it is given: the
/// query rows, the norms, its workspace. What it finds wrong it throws as std::logic_error.
class FakeBackend : public TileBackend {
 public:
  BindCost head_cost{1000, 500};
  int64_t bytes_a_row = 24, bytes_an_entry = 2, stash_bytes_an_entry = 4;
  int num_workers = 3;
  /// Called at the beginning of each call, from any thread.
  std::function<void(FakeCall)> on_call;

  std::string name() const override { return "fake"; }
  std::string description() const override { return "fake"; }
  int workers() const override { return num_workers; }
  BindCost bind_cost(const AttentionProblem& problem) const override;
  int64_t workspace_bytes(const AttentionProblem& problem, int64_t rows, int64_t cols,
                          bool one_product) const override;
  int64_t outputs_workspace_bytes(const AttentionProblem& problem, int64_t rows) const override;
  std::unique_ptr<BoundHead> bind(const AttentionProblem& problem, int64_t batch,
                                  int64_t head) const override;

  int64_t live_heads() const { return live_heads_.load(); }
  int64_t most_live_heads() const { return most_live_heads_.load(); }
  int64_t calls(FakeCall call) const { return calls_[static_cast<size_t>(call)].load(); }
  /// Entries that were written.
  int64_t entries() const { return entries_.load(); }

 private:
  friend class FakeHead;
  mutable std::atomic<int64_t> live_heads_{0}, most_live_heads_{0}, entries_{0};
  mutable std::atomic<int64_t> calls_[4] = {};
};

}  // namespace attnscope::test
