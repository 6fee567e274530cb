#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// Over which keys each row is renormalised before rows are averaged: not at all, over the video
/// keys, over the text keys, or within each frame of keys. Keys outside the domain are 0.
enum class SoftmaxDomain : uint8_t { all, video, text, frame };
/// "all", "video", "text", "frame"; throws Error(usage) otherwise.
SoftmaxDomain parse_domain(std::string_view name);
std::string_view domain_name(SoftmaxDomain domain);
std::vector<std::string> domain_names();

/// "the keys that the mask leaves (causal)"; of calls whose masks differ "the keys that their masks
/// leave (causal; none)". Empty where nothing is masked. `masks`: one a call, as Mask::describe().
std::string kept_keys_text(std::span<const std::string> masks);
/// The words of a picture about the keys that its numbers were normalised over: "softmax domain
/// all", of masked calls "softmax domain all, of the keys that the mask leaves (causal)". Scores
/// other than "softmax" are named: "sigmoid scores, domain text".
std::string domain_text(std::string_view score, std::string_view domain,
                        std::span<const std::string> masks);

/// Applies the domain to one row of weights, [keys].
void apply_domain(SoftmaxDomain domain, const TokenGrid& keys, std::span<float> row);

/// The keys that `key` shares its rows' sums with; empty where it lies outside the domain.
IndexRange domain_of(SoftmaxDomain domain, const TokenGrid& keys, int64_t key);

}  // namespace attnscope
