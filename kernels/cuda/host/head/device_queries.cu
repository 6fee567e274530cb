// DeviceHead's query rows: from the caller's memory, or from where the tensor has them.
#include <algorithm>
#include <cassert>
#include <numbers>
#include <vector>

#include "core/base/checked_math.h"
#include "core/stream/panel.h"
#include "kernels/cuda/host/head/device_head.h"
#include "kernels/cuda/host/tensors/row_layout.h"

namespace attnscope::cuda {
namespace {

ScoreKind kind_of(ScoreFunction score) {
  switch (score.form) {
    case ScoreFunction::Form::softmax:
      return ScoreKind::softmax;
    case ScoreFunction::Form::sigmoid:
      return ScoreKind::sigmoid;
    case ScoreFunction::Form::linear_elu1:
    case ScoreFunction::Form::linear_relu:
      return ScoreKind::linear;
    case ScoreFunction::Form::linear_normaliser:
      break;  // only its logits are computed here, which all kinds have alike
  }
  return ScoreKind::softmax;
}

ScoreFactors factors_of(const AttentionProblem& problem, int64_t head) {
  const double scale = problem.scale(head);
  const auto split = [](double factor, float& high, float& low) {
    high = static_cast<float>(factor);
    low = static_cast<float>(factor - static_cast<double>(high));
  };
  ScoreFactors factors;
  factors.kind = kind_of(problem.score());
  split(scale * std::numbers::log2e, factors.exponent_high, factors.exponent_low);
  split(scale, factors.logit_high, factors.logit_low);
  factors.bias_factor = static_cast<float>(1 / scale);
  return factors;
}

}  // namespace

int64_t DeviceHead::host_query_bytes(const AttentionProblem& problem, int64_t rows) {
  return problem.q().source().device_place() ? rows * problem.q().row_bytes() : 0;
}

DeviceHead::Rows DeviceHead::load_rows(Lane& lane, const QueryBlock& queries, int64_t first,
                                       int64_t count) const {
  Rows rows;
  rows.index = queries.index.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  CallArgs& call = rows.call;
  call.rows = static_cast<int>(count);
  call.row_tiles = static_cast<int>(ceil_div(count, kTileRows));
  call.num_keys = static_cast<int>(problem_.num_keys());
  call.key_tiles = key_tiles_;
  call.padded_dim = format_.padded_dim;
  call.score = factors_of(problem_, head_);
  call.keys = keys_->data();
  rows.exponents.resize(static_cast<size_t>(count));
  const int64_t padded_rows = int64_t{call.row_tiles} * kTileRows;
  const int64_t bytes = padded_rows * format_.row_bytes();
  std::byte* const packed = lane.queries.get<std::byte>(bytes);
  const std::byte* const source =
      queries
          .part(static_cast<size_t>(first), static_cast<size_t>(count), format_.source_row_bytes())
          .data;
  if (format_.has_features()) {
    upload_features(lane, source, rows, packed);
  } else {
    const int64_t source_bytes = count * format_.source_row_bytes();
    std::byte* const as_it_is = lane.query_source.get<std::byte>(source_bytes);
    if (source == nullptr) {
      fetch_queries(lane, rows.index, as_it_is);
    } else {
      lane.upload(as_it_is, std::span(source, static_cast<size_t>(source_bytes)));
    }
    place_rows(format_, Operand::queries, as_it_is, count, padded_rows, packed, lane.stream(),
               lane.log());
  }
  call.queries = packed;
  return rows;
}

/// Features of the rows, and zeros for those that pad their tiles.
void DeviceHead::upload_features(Lane& lane, const std::byte* source, Rows& rows,
                                 std::byte* to) const {
  std::vector<float> scratch(static_cast<size_t>(format_.head_dim));
  const int64_t row_bytes = format_.row_bytes();
  const int64_t padded_rows = int64_t{rows.call.row_tiles} * kTileRows;
  lane.upload(to, padded_rows * row_bytes, row_bytes, [&](std::span<std::byte> piece, int64_t at) {
    const int64_t begin = at / row_bytes;
    const int64_t end = begin + static_cast<int64_t>(piece.size()) / row_bytes;
    for (int64_t row = begin; row < end; ++row) {
      std::byte* const packed = piece.data() + (row - begin) * row_bytes;
      if (row >= rows.call.rows) {
        std::fill_n(packed, row_bytes, std::byte{0});
        continue;
      }
      const std::byte* const from = source + row * format_.source_row_bytes();
      int& exponent = rows.exponents[static_cast<size_t>(row)];
      exponent = row_exponent(format_, from, scratch);
      pack_features(format_, from, exponent, scratch, packed);
    }
  });
}

/// Queues what brings the rows of these numbers from where the tensor has them.
void DeviceHead::fetch_queries(Lane& lane, std::span<const int64_t> index, std::byte* to) const {
  assert(query_way_ != RowsWay::host && !index.empty());
  const DeviceRows& all = *query_rows_;
  const auto count = std::ssize(index);
  if (index.back() - index.front() + 1 == count) {
    const DeviceRows rows = all.part({index.front(), index.back() + 1});
    return fetch_rows(query_way_, rows, to, lane.stream(), lane.log());
  }
  if (query_way_ == RowsWay::gather) {
    auto* const places = lane.query_places.get<int64_t>(count);
    lane.upload(places, index);
    return gather_listed_rows(all, places, count, to, lane.stream(), lane.log());
  }
  for (int64_t i = 0; i < count;) {
    const auto at = [&](int64_t row) { return index[static_cast<size_t>(row)]; };
    int64_t past = i + 1;
    while (past < count && at(past) == at(past - 1) + 1) ++past;
    fetch_rows(query_way_, all.part({at(i), at(past - 1) + 1}), to + i * all.row_bytes(),
               lane.stream(), lane.log());
    i = past;
  }
}

QueryBlock DeviceHead::on_host(const QueryBlock& queries, std::span<std::byte>& workspace) const {
  if (queries.data != nullptr) return queries;
  const auto bytes =
      static_cast<size_t>(host_query_bytes(problem_, static_cast<int64_t>(queries.index.size())));
  assert(bytes <= workspace.size());
  std::byte* const rows = workspace.data() + (workspace.size() - bytes);
  workspace = workspace.first(workspace.size() - bytes);
  read_listed_rows(problem_.q(), batch_, head_, queries.index, rows);
  return {rows, queries.index};
}

}  // namespace attnscope::cuda
