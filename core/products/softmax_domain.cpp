#include "core/products/softmax_domain.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest_word.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 4> kDomains{"all", "video", "text", "frame"};

/// Masks that a label names, where calls have different ones.
constexpr size_t kNamedMasks = 3;

/// Divides row[range] by its sum; a range without mass stays zero.
void renormalise(std::span<float> row, IndexRange range) {
  double sum = 0;
  for (int64_t j = range.begin; j < range.end; ++j) sum += row[static_cast<size_t>(j)];
  if (sum <= 0) return;
  const double factor = 1 / sum;
  for (int64_t j = range.begin; j < range.end; ++j) {
    float& value = row[static_cast<size_t>(j)];
    value = static_cast<float>(value * factor);
  }
}

/// Sets what lies outside `kept` to 0.
void clear_outside(std::span<float> row, IndexRange kept) {
  std::fill(row.begin(), row.begin() + kept.begin, 0.0f);
  std::fill(row.begin() + kept.end, row.end(), 0.0f);
}

}  // namespace

void apply_domain(SoftmaxDomain domain, const TokenGrid& keys, std::span<float> row) {
  switch (domain) {
    case SoftmaxDomain::all:
      return;
    case SoftmaxDomain::video:
      clear_outside(row, keys.video_range());
      return renormalise(row, keys.video_range());
    case SoftmaxDomain::text:
      clear_outside(row, keys.text_range());
      return renormalise(row, keys.text_range());
    case SoftmaxDomain::frame: {
      clear_outside(row, keys.video_range());
      const int64_t frame = keys.height() * keys.width();
      for (int64_t t = 0; t < keys.frames(); ++t) {
        const int64_t begin = keys.video_range().begin + t * frame;
        renormalise(row, {begin, begin + frame});
      }
      return;
    }
  }
}

SoftmaxDomain parse_domain(std::string_view name) {
  for (size_t i = 0; i < kDomains.size(); ++i) {
    if (kDomains[i] == name) return static_cast<SoftmaxDomain>(i);
  }
  throw unknown_name("--domain", std::string(name), domain_names());
}

std::string_view domain_name(SoftmaxDomain domain) { return kDomains[static_cast<size_t>(domain)]; }

std::vector<std::string> domain_names() { return {kDomains.begin(), kDomains.end()}; }

std::string kept_keys_text(std::span<const std::string> masks) {
  std::vector<std::string> different;
  for (const std::string& mask : masks) {
    if (std::find(different.begin(), different.end(), mask) == different.end()) {
      different.push_back(mask);
    }
  }
  if (different.empty() || different == std::vector<std::string>{"none"}) return "";
  if (different.size() == 1) return "the keys that the mask leaves (" + different.front() + ")";
  const size_t named = std::min(different.size(), kNamedMasks);
  std::string list;
  for (size_t i = 0; i < named; ++i) list += (i > 0 ? "; " : "") + different[i];
  if (named < different.size()) {
    list += "; and " + std::to_string(different.size() - named) + " more";
  }
  return "the keys that their masks leave (" + list + ")";
}

std::string domain_text(std::string_view score, std::string_view domain,
                        std::span<const std::string> masks) {
  std::string text(score);
  if (score.starts_with("softmax") || score.starts_with("softcap")) {
    text += " domain " + std::string(domain);
  } else {
    text += " scores";
    if (domain != domain_name(SoftmaxDomain::all)) text += ", domain " + std::string(domain);
  }
  const std::string kept = kept_keys_text(masks);
  return kept.empty() ? text : text + ", of " + kept;
}

IndexRange domain_of(SoftmaxDomain domain, const TokenGrid& keys, int64_t key) {
  const auto within = [&](IndexRange range) { return range.contains(key) ? range : IndexRange{}; };
  switch (domain) {
    case SoftmaxDomain::all:
      return {0, keys.tokens()};
    case SoftmaxDomain::video:
      return within(keys.video_range());
    case SoftmaxDomain::text:
      return within(keys.text_range());
    case SoftmaxDomain::frame: {
      const auto coord = keys.coord(key);
      if (!coord) return {};
      const int64_t frame = keys.height() * keys.width();
      const int64_t begin = keys.video_range().begin + coord->t * frame;
      return {begin, begin + frame};
    }
  }
  return {};
}

}  // namespace attnscope
