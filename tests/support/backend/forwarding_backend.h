#pragma once

#include <memory>
#include <utility>

#include "core/stream/tile_backend.h"
#include "tests/support/backend/outputs_by_weights.h"

namespace attnscope::test {

/// A head that passes on what it is asked; outputs are made of the weights that it emits, so that
/// they show what a test does to those. Tests override what they watch or spoil.
class ForwardingHead : public BoundHead {
 public:
  explicit ForwardingHead(std::unique_ptr<BoundHead> inner) : inner_(std::move(inner)) {}

  void row_norms(const QueryBlock& queries, std::span<RowNorm> norms,
                 std::span<std::byte> workspace) const override {
    inner_->row_norms(queries, norms, workspace);
  }
  void emit(const QueryBlock& queries, std::span<const RowNorm> norms, IndexRange keys,
            Quantity quantity, const EmitTarget& target,
            std::span<std::byte> workspace) const override {
    inner_->emit(queries, norms, keys, quantity, target, workspace);
  }
  void emit_panel(const QueryBlock& queries, std::span<RowNorm> norms, IndexRange keys,
                  const EmitTarget& target, std::span<std::byte> workspace) const override {
    inner_->emit_panel(queries, norms, keys, target, workspace);
  }
  void reduce(const QueryBlock& queries, int64_t first, PanelReduction& panel,
              std::span<std::byte> workspace) const override {
    inner_->reduce(queries, first, panel, workspace);
  }
  void outputs(const QueryBlock& queries, std::span<RowNorm> norms, const ValuePanels& values,
               const OutputTarget& target, std::span<std::byte> workspace) const override {
    outputs_by_weights(*this, queries, norms, values, target, workspace);
  }

 private:
  const std::unique_ptr<BoundHead> inner_;
};

/// A backend that passes on what it is asked; wrap() puts its heads into others.
class ForwardingBackend : public TileBackend {
 public:
  explicit ForwardingBackend(std::unique_ptr<TileBackend> inner) : inner_(std::move(inner)) {}

  std::string name() const override { return inner_->name(); }
  std::string description() const override { return inner_->description(); }
  int workers() const override { return inner_->workers(); }
  int64_t open_units() const override { return inner_->open_units(); }
  BindCost bind_cost(const AttentionProblem& problem) const override {
    return inner_->bind_cost(problem);
  }
  int64_t workspace_bytes(const AttentionProblem& problem, int64_t rows, int64_t cols,
                          bool one_product) const override {
    return inner_->workspace_bytes(problem, rows, cols, one_product);
  }
  int64_t outputs_workspace_bytes(const AttentionProblem& problem, int64_t rows) const override {
    return outputs_by_weights_bytes(*this, problem, rows);
  }
  std::unique_ptr<BoundHead> bind(const AttentionProblem& problem, int64_t batch,
                                  int64_t head) const override {
    return wrap(inner_->bind(problem, batch, head));
  }

 protected:
  virtual std::unique_ptr<BoundHead> wrap(std::unique_ptr<BoundHead> head) const {
    return std::make_unique<ForwardingHead>(std::move(head));
  }

 private:
  const std::unique_ptr<TileBackend> inner_;
};

}  // namespace attnscope::test
