#include "viewer/view/mask_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "core/patterns/block_rules.h"
#include "core/patterns/build_mask.h"
#include "core/patterns/mask_pattern.h"

namespace attnscope {
namespace {

/// Blocks and lines of more than that are better typed.
constexpr int64_t kMostSlider = 1024;
/// Window and blocks begin with that.
constexpr int64_t kFirstTokens = 64;

MaskParameter whole(const char* name, int64_t value, int64_t low, int64_t high) {
  high = std::max({high, value, low + 1});
  return {name, static_cast<double>(value), static_cast<double>(low), static_cast<double>(high),
          true};
}

bool has_bare_number(const std::string& pattern) {
  return pattern == "window" || pattern == "block_causal";
}

/// "key=value" and "key=" begin alike.
bool is_of(const std::string& part, const std::string& name) {
  return part.starts_with(name + "=");
}

}  // namespace

bool is_mask_file(const std::string& text) {
  const std::string extension = std::filesystem::path(text).extension().string();
  return extension == ".npy" || extension == ".json";
}

void check_mask_look(const MaskLook& look) {
  if (look.block < 1) {
    throw usage_error(fmt::format("mask: a block has at least 1 token (got {})", look.block));
  }
  if (look.edits.size() > kMostMaskEdits) {
    throw usage_error(
        fmt::format("mask: at most {} rectangles are edited; save-mask FILE.npy keeps them, and "
                    "mask FILE.npy goes on from there",
                    kMostMaskEdits));
  }
  if (look.text.empty() && !look.edits.empty()) throw usage_error("mask: there is none to edit");
  edited_mask(Mask(), look.edits);  // an empty one is refused
  if (look.text.empty() || is_mask_file(look.text)) return;
  try {
    parse_mask_pattern(look.text, "mask");
  } catch (const Error& error) {
    throw usage_error(one_line(error.what()));
  }
}

std::string mask_pattern_name(const std::string& text) {
  return is_mask_file(text) ? text : text.substr(0, text.find(':'));
}

std::string mask_short_name(const std::string& text) {
  return is_mask_file(text) ? std::filesystem::path(text).filename().string()
                            : mask_pattern_name(text);
}

std::string first_mask_text(const std::string& name) {
  if (name == "natten") return name + ":1x3x3";
  return has_bare_number(name) ? fmt::format("{}:{}", name, kFirstTokens) : name;
}

std::string mask_pattern_about(const std::string& name) {
  static const std::map<std::string, std::string> kAbout{
      {"causal", "keys up to the query's own place"},
      {"window", "keys near the query, by place in the sequence"},
      {"block_causal", "keys of the query's block and of those before it"},
      {"spatial", "keys of the query's frame, or of frames near it"},
      {"temporal", "keys around the query's row and column, in all frames"},
      {"tiles", "a window of tiles of frames, rows and columns (Sliding Tile Attention)"},
      {"natten", "a window of cells around the query's (neighbourhood attention)"},
      {"radial", "a reach that falls with the distance of frames (Radial Attention)"},
      {"vertical-slash", "the columns and diagonals with the most mass (MInference)"},
      {"topk", "of each row of blocks those with the largest mean q times mean k"},
      {"topp", "of each row of blocks the fewest whose softmax reaches p"},
      {"sol", "the blocks that Sol-Attn chooses"},
      {"subblock", "the blocks that SubBlock (KeySplit) chooses"},
      {"vsa", "the tiles that Video Sparse Attention chooses"},
      {"sla", "the blocks that Sparse-Linear Attention chooses"},
      {"sparge", "the blocks that SpargeAttn chooses"},
      {"nabla", "the tiles that NABLA (Kandinsky 5) chooses"},
      {"draft", "the tiles that DraftAttention chooses"},
      {"ssta", "the tiles that HunyuanVideo 1.5 chooses (Selective and Sliding Tile Attention)"},
      {"xattention", "the blocks that XAttention chooses"},
      {"dfs", "the blocks that DFSAttn chooses"},
      {"skip-softmax", "the blocks with an entry near a row's largest so far (BLASST)"},
      {"block-oracle", "the blocks with the most mass: the best that any choice could do"}};
  const auto found = kAbout.find(name);
  return found == kAbout.end() ? "" : found->second;
}

std::vector<MaskParameter> mask_parameters(const std::string& text, const TokenGrid& keys) {
  if (text.empty() || is_mask_file(text)) return {};
  MaskPattern p;
  try {
    p = parse_mask_pattern(text, "mask");
  } catch (const Error&) {
    return {};
  }
  const int64_t tokens = std::max<int64_t>(keys.tokens() - 1, 1);
  const int64_t lines = std::min(tokens, kMostSlider);
  const bool grid = keys.has_grid();
  const int64_t frames = grid ? keys.frames() : 1;
  switch (p.kind) {
    case PatternKind::window:
      return {whole("", p.reach, 0, tokens)};
    case PatternKind::block_causal:
      return {whole("", p.block, 1, tokens)};
    case PatternKind::spatial:
      return {whole("frames", p.frames, 0, frames - 1)};
    case PatternKind::temporal:
      return {whole("band",
                    p.band < 0 && grid ? comparable_band(keys) : std::max<int64_t>(p.band, 0), 0,
                    grid ? std::max(keys.height(), keys.width()) - 1 : 1)};
    case PatternKind::radial:
      return {whole("block", p.block, 1, kMostSlider),
              {"decay", p.decay, 0.05, std::max(4.0, p.decay), false},
              whole("sink", p.sink, 0, frames)};
    case PatternKind::vertical_slash:
      return {whole("vertical", p.vertical, 0, lines), whole("slash", p.slash, 0, lines),
              whole("rows", p.rows, 1, lines)};
    case PatternKind::topk:
      if (p.blocks > 0) {
        return {whole("block", p.block, 1, kMostSlider), whole("blocks", p.blocks, 1, lines)};
      }
      return {whole("block", p.block, 1, kMostSlider), {"keep", p.keep, 0.01, 1, false}};
    case PatternKind::topp:
      return {whole("block", p.block, 1, kMostSlider), {"p", p.p, 0.01, 1, false}};
    case PatternKind::sol:
      if (p.keep > 0) return {{"keep", p.keep, std::min(0.01, p.keep), 1, false}};
      return {{"tau", p.tau, std::min(-1.0, p.tau), std::max(4.0, p.tau), false}};
    case PatternKind::subblock:
    case PatternKind::vsa:
    case PatternKind::sla:
    case PatternKind::draft:
    case PatternKind::dfs:
    case PatternKind::block_oracle:
      return {{"keep", p.keep, std::min(0.01, p.keep), 1, false}};
    case PatternKind::sparge:
      if (p.keep > 0) return {{"sim", p.sim, -1, 1, false}, {"keep", p.keep, 0.01, 1, false}};
      return {{"sim", p.sim, -1, 1, false}, {"cdf", p.cdf, std::min(0.01, p.cdf), 1, false}};
    case PatternKind::nabla:
    case PatternKind::xattention:
      return {{"p", p.p, 0.01, 1, false}};
    case PatternKind::skip_softmax:
      return {{"lambda", p.lambda, std::min(0.0001, p.lambda), 1, false}};
    case PatternKind::ssta:
      return {whole("blocks", p.blocks > 0 ? p.blocks : usual_ssta_blocks(keys), 1, kMostSlider),
              {"lambda", p.lambda, 0, 1, false}};
    case PatternKind::none:
    case PatternKind::causal:
    case PatternKind::tiles:
    case PatternKind::natten:
      return {};
  }
  return {};
}

std::string with_parameter(const std::string& text, const MaskParameter& parameter) {
  const std::string name = mask_pattern_name(text);
  const std::string value = parameter.whole ? fmt::format("{:.0f}", parameter.value)
                                            : fmt::format("{:.4g}", parameter.value);
  if (parameter.name.empty()) return name + ":" + value;
  std::string parts;
  const auto add = [&](const std::string& part) { parts += (parts.empty() ? ":" : ",") + part; };
  bool replaced = false;
  for (size_t begin = name.size(); begin < text.size();) {
    const size_t comma = std::min(text.find(',', begin + 1), text.size());
    const std::string part = text.substr(begin + 1, comma - begin - 1);
    const bool own = is_of(part, parameter.name);
    replaced = replaced || own;
    add(own ? parameter.name + "=" + value : part);
    begin = comma;
  }
  if (!replaced) add(parameter.name + "=" + value);
  return name + parts;
}

}  // namespace attnscope
