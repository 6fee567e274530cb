#include "io/lab/edit_target.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/base/split_text.h"

namespace attnscope {
namespace {

const std::vector<std::string>& measure_names() {
  static const std::vector<std::string> names{"output_error", "recall", "recall_p05"};
  return names;
}

struct TargetLimit {
  std::string name, sign;
  double number = 0;
};

TargetLimit parse_target_limit(std::string_view part, const std::string& where) {
  const size_t at = part.find_first_of("<>=");
  const std::string sign(at == part.npos ? "" : part.substr(at, 2));
  if (sign != "<=" && sign != ">=") {
    throw usage_error(where + ": expected NAME<=NUMBER or NAME>=NUMBER, as output_error<=0.05");
  }
  TargetLimit limit{std::string(part.substr(0, at)), sign, 0};
  const std::string_view digits = part.substr(at + 2);
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, limit.number);
  if (error != std::errc() || stop != end || !std::isfinite(limit.number) || limit.number < 0) {
    throw usage_error(fmt::format("{}: expected a number, at least 0, after {}{}, got \"{}\"",
                                  where, limit.name, sign, digits));
  }
  return limit;
}

/// Throws where the limit is of the wrong side, or out of the range of what it limits.
void check_target_limit(const TargetLimit& limit, const EditTarget& target,
                        const std::string& where) {
  const std::string_view sign = target.is_error() ? "<=" : ">=";
  if (limit.sign != sign) {
    throw usage_error(fmt::format("{}: expected {}{}{}, because {} {} is better", where, limit.name,
                                  sign, limit.number, target.is_error() ? "less" : "more",
                                  target.name()));
  }
  if (!target.is_error() && limit.number > 1) {
    throw usage_error(
        fmt::format("{}: {} is at most 1, got {}", where, target.name(), limit.number));
  }
}

}  // namespace

std::string_view EditTarget::name() const { return measure_names()[static_cast<size_t>(measure)]; }

EditTarget parse_target(std::string_view text, std::string_view option) {
  const std::string where = fmt::format("{} {}", option, one_line(text));
  std::vector<std::string_view> parts;
  for (const std::string_view part : split_text(text, ' ')) {
    if (!part.empty()) parts.push_back(part);
  }
  if (parts.empty() || parts.size() > 2) {
    throw usage_error(where +
                      ": expected one limit, or one and that of the worst forward, as "
                      "\"output_error<=0.05 worst<=0.1\"");
  }
  const auto& names = measure_names();
  const TargetLimit mean = parse_target_limit(parts[0], where);
  EditTarget target;
  target.text = text;
  size_t measure = 0;
  while (measure < names.size() && names[measure] != mean.name) ++measure;
  if (measure == names.size()) throw unknown_name(where + ":", mean.name, names);
  target.measure = static_cast<EditMeasure>(measure);
  check_target_limit(mean, target, where);
  target.mean = target.worst = mean.number;
  if (parts.size() == 1) return target;
  const TargetLimit worst = parse_target_limit(parts[1], where);
  if (worst.name != "worst") throw unknown_name(where + ":", worst.name, {"worst"});
  check_target_limit(worst, target, where);
  if (target.is_better(worst.number, mean.number)) {
    throw usage_error(fmt::format("{}: the worst may not be held to more ({}) than the mean ({})",
                                  where, worst.number, mean.number));
  }
  target.worst = worst.number;
  return target;
}

}  // namespace attnscope
