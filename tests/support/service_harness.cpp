#include "tests/support/service_harness.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "kernels/backend_factory.h"
#include "tests/support/sanitized.h"

namespace attnscope::test {

ServiceHarness::ServiceHarness(const AttentionProblem& problem, TileService::Settings settings,
                               std::unique_ptr<TileBackend> backend)
    : backend_(backend != nullptr ? std::move(backend)
                                  : make_backend(BackendKind::cpu, {settings.threads})) {
  // The problem is the caller's.
  MapCall call{std::shared_ptr<const AttentionProblem>(&problem, [](auto*) {}), nullptr};
  service_ = std::make_unique<TileService>(std::vector{call}, *backend_, settings, [this] {
    const std::lock_guard lock(mutex_);
    woken_.notify_all();
  });
}

TileService::Settings ServiceHarness::small_settings() {
  return {.memory = int64_t{64} << 20, .threads = 2, .cache_folders = {}};
}

bool ServiceHarness::wait(const std::function<bool()>& ready) {
  const auto deadline = std::chrono::steady_clock::now() + longest_wait();
  std::unique_lock lock(mutex_);
  while (!ready()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    // Not every change wakes: an idle service may have had nothing new.
    woken_.wait_for(lock, std::chrono::milliseconds(20));
  }
  return true;
}

std::optional<ProbedEntry> ServiceHarness::probe(const ProbeRequest& request, WishesByKind wishes) {
  wishes.probes = {request};
  want(std::move(wishes));
  std::optional<ProbedEntry> found;
  wait([&] {
    // Asked in this order: what ends between the two questions is found by the second.
    const bool busy = service_->status().busy;
    const auto entry = find(*service_, request);
    if (entry) found = *entry;
    return found || !busy;
  });
  return found;
}

MapReference::MapReference(const Oracle& oracle, const HeadId& head, Quantity which)
    : rows(oracle.problem().num_queries()),
      cols(oracle.problem().num_keys()),
      quantity(which),
      has_mask(!oracle.problem().mask().is_none()) {
  double magnitude = 0;
  for (int64_t query = 0; query < rows; ++query) {
    const Oracle::Row row = oracle.row(head.batch, head.head, query);
    const auto& values = quantity == Quantity::logits ? row.logits : row.weights;
    entries.insert(entries.end(), values.begin(), values.end());
    magnitude = std::max(magnitude, row.magnitude);
    std::vector<float> bias(static_cast<size_t>(cols));
    oracle.problem().mask().fill_bias(head.batch, head.head, {&query, 1}, {0, cols}, bias.data(),
                                      cols);
    for (const float b : bias) masked.push_back(std::isinf(b) ? 1 : 0);
  }
  relative = 1e-4 + 2 * 0x1p-24 * magnitude;
  absolute = quantity == Quantity::logits ? 2 * 0x1p-24 * magnitude + 1e-5
                                          : 1e-3 / static_cast<double>(cols);
}

MapReference::Texel MapReference::texel(int level, int64_t row, int64_t col) const {
  const int64_t side = int64_t{1} << level;
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  int64_t count = 0;
  bool any_kept = false;
  for (int64_t r = row * side; r < std::min(rows, (row + 1) * side); ++r) {
    for (int64_t c = col * side; c < std::min(cols, (col + 1) * side); ++c) {
      const double entry = at(r, c);
      if (quantity == Quantity::logits && std::isinf(entry)) continue;
      any_kept = any_kept || !is_masked(r, c);
      largest = std::max(largest, entry);
      sum += entry;
      ++count;
    }
  }
  if (!any_kept) largest = sum = -std::numeric_limits<double>::infinity();
  return {largest,
          count > 0 ? sum / static_cast<double>(count) : -std::numeric_limits<double>::infinity()};
}

bool MapReference::close(double value, double expected) const {
  if (std::isinf(expected) || std::isinf(value)) return value == expected;
  return std::abs(value - expected) <= absolute + relative * std::abs(expected);
}

std::string MapReference::differs(const MapTile& tile) const {
  for (int64_t r = 0; r < tile.rows; ++r) {
    for (int64_t c = 0; c < tile.cols; ++c) {
      const Texel expected =
          texel(tile.id.level, tile.id.row * kTileSide + r, tile.id.col * kTileSide + c);
      const auto at = static_cast<size_t>(r * tile.cols + c);
      if (close(tile.max[at], expected.max) && close(tile.mean[at], expected.mean)) continue;
      return "level " + std::to_string(tile.id.level) + ", texel " + std::to_string(r) + ", " +
             std::to_string(c) + ": max " + std::to_string(tile.max[at]) + " for " +
             std::to_string(expected.max) + ", mean " + std::to_string(tile.mean[at]) + " for " +
             std::to_string(expected.mean);
    }
  }
  return "";
}

}  // namespace attnscope::test
