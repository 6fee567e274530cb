#include "io/metrics/run_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

/// The 97.5 % quantile of Student's t; of broken degrees of freedom, those below, whose intervals
/// are wider.
double student_t95(double freedom) {
  static constexpr std::array<double, 30> kTable{
      12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004,
      2.262157,  2.228139, 2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905,
      2.109816,  2.100922, 2.093024, 2.085963, 2.079614, 2.073873, 2.068658, 2.063899,
      2.059539,  2.055529, 2.051831, 2.048407, 2.045230, 2.042272};
  const double whole = std::max(1.0, std::floor(freedom));
  if (whole <= kTable.size()) return kTable[static_cast<size_t>(whole) - 1];
  // By the expansion around the normal distribution.
  constexpr double z = 1.959964;
  return z + (z * z * z + z) / (4 * whole) +
         (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * whole * whole);
}

bool comes_before(const HeadOverRuns& a, const HeadOverRuns& b) {
  const auto order = [](const HeadName& n) {
    return std::tie(n.step, n.layer, n.batch, n.kind, n.place, n.head, n.branch);
  };
  return order(a.name) < order(b.name);
}

/// What one head of a group is over the runs; nothing where no run has it.
std::optional<HeadOverRuns> head_of(const MetricGroup& group, size_t b, size_t h,
                                    const std::vector<std::string>& numbers) {
  const size_t heads = group.batch.size() * group.heads.size();
  const auto& measured = std::get<std::vector<int32_t>>(group.find(kMeasured)->values);
  const auto& classes = std::get<std::vector<std::string>>(group.find("class")->values);
  HeadOverRuns head;
  head.name = group.call.name;
  head.name.batch = group.batch[b];
  head.name.head = group.heads[h];
  std::map<std::string, int64_t> often;
  for (size_t at = b * group.heads.size() + h; at < measured.size(); at += heads) {
    if (measured[at] != 1) continue;
    ++head.runs;
    ++often[classes[at]];
  }
  if (head.runs == 0) return std::nullopt;
  const auto most = std::max_element(
      often.begin(), often.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
  head.head_class = most->first;
  head.class_share = static_cast<double>(most->second) / static_cast<double>(head.runs);
  for (const std::string& number : numbers) {
    std::vector<double>& values = head.values.emplace_back(measured.size() / heads, kNoValue);
    const MetricVariable* const variable = group.find(number);
    if (variable == nullptr || variable->type() != MetricType::f64 || variable->cell() != 1) {
      continue;
    }
    const auto& all = std::get<std::vector<double>>(variable->values);
    for (size_t r = 0; r < values.size(); ++r) {
      values[r] = all[r * heads + b * group.heads.size() + h];
    }
  }
  return head;
}

}  // namespace

NumberSpread spread_of(const std::vector<double>& values) {
  NumberSpread spread{0, kNoValue, kNoValue, kNoValue};
  double sum = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    ++spread.runs;
    sum += value;
  }
  if (spread.runs == 0) return spread;
  const auto count = static_cast<double>(spread.runs);
  spread.mean = sum / count;
  if (spread.runs < 2) return spread;
  double squares = 0;
  for (const double value : values) {
    if (!std::isnan(value)) squares += (value - spread.mean) * (value - spread.mean);
  }
  spread.deviation = std::sqrt(squares / (count - 1));
  spread.half95 = student_t95(count - 1) * spread.deviation / std::sqrt(count);
  return spread;
}

std::vector<HeadOverRuns> heads_over_runs(const RunTable& table,
                                          const std::vector<std::string>& numbers,
                                          const std::string& where) {
  std::vector<HeadOverRuns> heads;
  for (const MetricGroup& group : table.groups) {
    const MetricVariable* const classes = group.find("class");
    if (classes == nullptr || classes->type() != MetricType::text) {
      throw usage_error(where + ": has no stats (it was made without the product \"stats\")");
    }
    for (size_t b = 0; b < group.batch.size(); ++b) {
      for (size_t h = 0; h < group.heads.size(); ++h) {
        if (auto head = head_of(group, b, h, numbers)) heads.push_back(std::move(*head));
      }
    }
  }
  std::sort(heads.begin(), heads.end(), comes_before);
  return heads;
}

std::vector<ClassChange> class_changes(const std::vector<HeadOverRuns>& heads) {
  std::map<HeadName, const HeadOverRuns*> last;
  std::vector<ClassChange> changes;
  for (const HeadOverRuns& head : heads) {
    HeadName key = head.name;
    key.step = 0;
    const HeadOverRuns*& before = last[key];
    if (before != nullptr && before->head_class != head.head_class) {
      changes.push_back({head.name, before->name.step, before->head_class, head.head_class});
    }
    before = &head;
  }
  return changes;
}

NumberDifference difference_of(const std::vector<double>& a, const std::vector<double>& b,
                               bool paired) {
  NumberDifference found{spread_of(a), spread_of(b), kNoValue, kNoValue};
  if (paired) {
    std::vector<double> differences;
    for (size_t r = 0; r < std::min(a.size(), b.size()); ++r) differences.push_back(a[r] - b[r]);
    const NumberSpread spread = spread_of(differences);
    found.difference = spread.mean;
    found.half95 = spread.half95;
    return found;
  }
  found.difference = found.a.mean - found.b.mean;
  if (found.a.runs < 2 || found.b.runs < 2) return found;
  const auto share = [](const NumberSpread& s) {
    return s.deviation * s.deviation / static_cast<double>(s.runs);
  };
  const double va = share(found.a), vb = share(found.b);
  const double sum = va + vb;
  const double freedom = sum > 0 ? sum * sum /
                                       (va * va / static_cast<double>(found.a.runs - 1) +
                                        vb * vb / static_cast<double>(found.b.runs - 1))
                                 : 1;
  found.half95 = student_t95(freedom) * std::sqrt(sum);
  return found;
}

}  // namespace attnscope
