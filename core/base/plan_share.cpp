#include "core/base/plan_share.h"

#include <algorithm>
#include <cassert>
#include <charconv>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// Sums of works stay below 2^45, so that their double times kMostShares fits an int64_t.
constexpr int64_t kMostWork = int64_t{1} << 45;

/// A whole text as a number; −1 where it is none.
int64_t number_of(std::string_view text) {
  int64_t value = -1;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end && !text.empty() && text[0] != '-' ? value : -1;
}

/// The works in such a unit that their sum is small enough, each at least 1.
std::vector<int64_t> scaled(std::span<const int64_t> work) {
  const int64_t most = std::max<int64_t>(1, kMostWork / std::max<int64_t>(1, std::ssize(work)));
  int64_t largest = 1;
  for (const int64_t w : work) largest = std::max(largest, w);
  int shift = 0;
  while (largest >> shift > most) ++shift;
  std::vector<int64_t> result;
  for (const int64_t w : work) result.push_back(std::max<int64_t>(1, w >> shift));
  return result;
}

}  // namespace

std::string PlanShare::text() const { return std::to_string(index) + "/" + std::to_string(count); }

PlanShare PlanShare::parse(std::string_view text, std::string_view option) {
  const size_t slash = text.find('/');
  const auto refuse = [&](const std::string& what) {
    throw usage_error(std::string(option) + " " + one_line(text) + ": " + what);
  };
  const int64_t index = number_of(text.substr(0, slash));
  const int64_t count = slash == std::string_view::npos ? -1 : number_of(text.substr(slash + 1));
  if (index < 0 || count < 0) refuse("expected I/N, the I-th of N parts, I counted from 0");
  if (count < 1 || count > kMostShares) {
    refuse("N must be 1 to " + std::to_string(kMostShares) + " (got " + std::to_string(count) +
           ")");
  }
  if (index >= count) {
    refuse("I must be 0 to " + std::to_string(count - 1) + ", counted from 0 (got " +
           std::to_string(index) + ")");
  }
  return {index, count};
}

std::vector<IndexRange> share_out(std::span<const int64_t> work, int64_t count) {
  assert(count >= 1 && count <= kMostShares);
  const std::vector<int64_t> weights = scaled(work);
  int64_t total = 0;
  for (const int64_t w : weights) total += w;
  std::vector<IndexRange> runs(static_cast<size_t>(count));
  int64_t before = 0, next = 0;
  for (size_t u = 0; u < weights.size(); ++u) {
    const int64_t run = (2 * before + weights[u]) * count / (2 * total);
    before += weights[u];
    const auto unit = static_cast<int64_t>(u);
    for (; next <= run; ++next) runs[static_cast<size_t>(next)] = {unit, unit};
    runs[static_cast<size_t>(run)].end = unit + 1;
  }
  const auto units = std::ssize(work);
  for (; next < count; ++next) runs[static_cast<size_t>(next)] = {units, units};
  return runs;
}

}  // namespace attnscope
