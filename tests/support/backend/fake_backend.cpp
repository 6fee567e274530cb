#include "tests/support/backend/fake_backend.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "core/base/checked_math.h"
#include "tests/support/backend/outputs_by_weights.h"

namespace attnscope::test {

void RuleTensor::read(std::span<const int64_t> begin, std::span<const int64_t> count,
                      std::byte* destination) const {
  for (int64_t b = begin[0]; b < begin[0] + count[0]; ++b) {
    for (int64_t h = begin[1]; h < begin[1] + count[1]; ++h) {
      for (int64_t s = begin[2]; s < begin[2] + count[2]; ++s) {
        for (int64_t c = begin[3]; c < begin[3] + count[3]; ++c) {
          const float value = row_value(b, h, s) + static_cast<float>(c);
          std::memcpy(destination, &value, sizeof(value));
          destination += sizeof(value);
        }
      }
    }
  }
}

AttentionProblem rule_problem(int64_t batch, int64_t heads, int64_t queries, int64_t keys,
                              int64_t head_dim, Mask mask, ScoreFunction score) {
  AttentionProblem::Parts parts;
  parts.q = HeadTensor(
      std::make_shared<RuleTensor>("q", std::vector<int64_t>{batch, heads, queries, head_dim}),
      Layout::bhsd);
  parts.k = HeadTensor(
      std::make_shared<RuleTensor>("k", std::vector<int64_t>{batch, heads, keys, head_dim}),
      Layout::bhsd);
  parts.mask = std::move(mask);
  parts.score = score;
  parts.id.kind = CallKind::cross;
  parts.name = "rule";
  return AttentionProblem::make(std::move(parts));
}

float fake_weight(int64_t batch, int64_t head, int64_t query, int64_t key) {
  return static_cast<float>(1 + (query * 131 + key * 7 + head * 29 + batch * 3) % 65521);
}

float fake_logit(int64_t batch, int64_t head, int64_t query, int64_t key) {
  return -fake_weight(batch, head, query, key);
}

RowNorm fake_norm(int64_t batch, int64_t head, int64_t query) {
  return {1 + static_cast<double>(head) / 64, query * 4 + batch};
}

namespace {

void require(bool good, const char* what) {
  if (!good) throw std::logic_error(what);
}

}  // namespace

class FakeHead : public BoundHead {
 public:
  FakeHead(const FakeBackend& backend, const AttentionProblem& problem, int64_t batch, int64_t head)
      : backend_(backend), problem_(problem), batch_(batch), head_(head) {
    const int64_t live = backend.live_heads_.fetch_add(1) + 1;
    int64_t most = backend.most_live_heads_.load();
    while (most < live && !backend.most_live_heads_.compare_exchange_weak(most, live)) {
    }
  }
  ~FakeHead() override { backend_.live_heads_.fetch_sub(1); }

  void row_norms(const QueryBlock& queries, std::span<RowNorm> norms,
                 std::span<std::byte> workspace) const override {
    enter(FakeCall::row_norms, queries, 0, workspace, false);
    write_norms(queries, norms);
  }

  void emit(const QueryBlock& queries, std::span<const RowNorm> norms, IndexRange keys,
            Quantity quantity, const EmitTarget& target,
            std::span<std::byte> workspace) const override {
    enter(FakeCall::emit, queries, keys.size(), workspace, false);
    const bool divided = quantity == Quantity::weights && is_normalised(problem_.score());
    require(norms.size() == (divided ? queries.index.size() : 0), "norms of the wrong number");
    for (size_t r = 0; r < norms.size(); ++r) {
      const RowNorm expected = fake_norm(batch_, head_, queries.index[r]);
      require(norms[r].sum == expected.sum && norms[r].exponent == expected.exponent,
              "norms of other rows");
    }
    write_entries(queries, keys, quantity, target);
  }

  void emit_panel(const QueryBlock& queries, std::span<RowNorm> norms, IndexRange keys,
                  const EmitTarget& target, std::span<std::byte> workspace) const override {
    enter(FakeCall::emit_panel, queries, keys.size(), workspace, true);
    write_norms(queries, norms);
    write_entries(queries, keys, Quantity::weights, target);
  }

  void reduce(const QueryBlock&, int64_t, PanelReduction&, std::span<std::byte>) const override {
    throw std::logic_error("reductions have tests with real backends");
  }

  void outputs(const QueryBlock& queries, std::span<RowNorm> norms, const ValuePanels& values,
               const OutputTarget& target, std::span<std::byte> workspace) const override {
    outputs_by_weights(*this, queries, norms, values, target, workspace);
  }

 private:
  void enter(FakeCall call, const QueryBlock& queries, int64_t cols, std::span<std::byte> workspace,
             bool one_product) const {
    ++backend_.calls_[static_cast<size_t>(call)];
    if (backend_.on_call) backend_.on_call(call);
    const auto rows = static_cast<int64_t>(queries.index.size());
    require(rows > 0, "no rows");
    require(static_cast<int64_t>(workspace.size()) >=
                backend_.workspace_bytes(problem_, rows, cols, one_product),
            "too little workspace");
    // Whatever lies beside the workspace must not be in use.
    std::fill(workspace.begin(), workspace.end(), std::byte{0xee});
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t row = queries.index[static_cast<size_t>(r)];
      require(r == 0 || row > queries.index[static_cast<size_t>(r - 1)], "rows do not ascend");
      for (int64_t c : {int64_t{0}, problem_.head_dim() - 1}) {
        float value = 0;
        std::memcpy(&value, queries.data + (r * problem_.head_dim() + c) * 4, sizeof(value));
        require(value == RuleTensor::row_value(batch_, head_, row) + static_cast<float>(c),
                "wrong query row");
      }
    }
  }

  void write_norms(const QueryBlock& queries, std::span<RowNorm> norms) const {
    require(norms.size() == queries.index.size(), "norms of the wrong number");
    for (size_t r = 0; r < norms.size(); ++r) norms[r] = fake_norm(batch_, head_, queries.index[r]);
  }

  void write_entries(const QueryBlock& queries, IndexRange keys, Quantity quantity,
                     const EmitTarget& target) const {
    require(target.encoding == Encoding::f32, "only f32 is tested");
    require(static_cast<int64_t>(target.blocks.size()) == ceil_div(keys.size(), target.block_cols),
            "blocks of the wrong number");
    std::vector<float> bias(static_cast<size_t>(target.block_cols));
    for (size_t r = 0; r < queries.index.size(); ++r) {
      const int64_t query = queries.index[r];
      for (size_t b = 0; b < target.blocks.size(); ++b) {
        if (target.blocks[b] == nullptr) continue;
        const int64_t first = keys.begin + static_cast<int64_t>(b) * target.block_cols;
        const IndexRange block{first, std::min(first + target.block_cols, keys.end)};
        problem_.mask().fill_bias(batch_, head_, {&query, 1}, block, bias.data(),
                                  target.block_cols);
        auto* out = reinterpret_cast<float*>(target.blocks[b]) +
                    static_cast<int64_t>(r) * target.row_stride;
        for (int64_t c = 0; c < block.size(); ++c) {
          const bool masked = bias[static_cast<size_t>(c)] < 0;
          const int64_t key = block.begin + c;
          out[c] = quantity == Quantity::weights
                       ? (masked ? 0 : fake_weight(batch_, head_, query, key))
                       : (masked ? -std::numeric_limits<float>::infinity()
                                 : fake_logit(batch_, head_, query, key));
        }
        backend_.entries_ += block.size();
      }
    }
  }

  const FakeBackend& backend_;
  const AttentionProblem& problem_;
  const int64_t batch_, head_;
};

TileBackend::BindCost FakeBackend::bind_cost(const AttentionProblem& problem) const {
  return {head_cost.resident + problem.num_keys() * problem.head_dim(), head_cost.transient};
}

int64_t FakeBackend::workspace_bytes(const AttentionProblem&, int64_t rows, int64_t cols,
                                     bool one_product) const {
  return bytes_a_row * rows + rows * cols * (one_product ? stash_bytes_an_entry : bytes_an_entry);
}

int64_t FakeBackend::outputs_workspace_bytes(const AttentionProblem& problem, int64_t rows) const {
  return outputs_by_weights_bytes(*this, problem, rows);
}

std::unique_ptr<BoundHead> FakeBackend::bind(const AttentionProblem& problem, int64_t batch,
                                             int64_t head) const {
  ++calls_[static_cast<size_t>(FakeCall::bind)];
  if (on_call) on_call(FakeCall::bind);
  return std::make_unique<FakeHead>(*this, problem, batch, head);
}

}  // namespace attnscope::test
