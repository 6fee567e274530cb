#include "viewer/script/view_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/products/tokens/token_box.h"
#include "viewer/view/query_words.h"
#include "viewer/view/view_names.h"

namespace attnscope {
namespace {

using Choices = std::vector<std::pair<HeadAxis, std::string>>;

/// A word as scripts quote it.
std::string quoted(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\r#\"\\") == std::string::npos) return word;
  std::string text = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

/// The values of a head in the order in which HeadPicker::select() keeps them best. `all`: also
/// those that the capture has one of.
Choices choices_of(const HeadPicker& picker, const HeadId& head, bool all) {
  const HeadValues v = picker.values(head);
  const Unrecorded& unrecorded = v.place.unrecorded;
  Choices choices;
  const auto add = [&](HeadAxis axis, const std::string& value, bool usual) {
    const size_t count = picker.choices(head, axis).size();
    if (count > 1 || (count == 1 && (usual || all))) choices.emplace_back(axis, value);
  };
  if (!v.place.slot.empty()) add(HeadAxis::slot, v.place.slot, false);
  if (v.place.slot.empty() || all) {
    add(HeadAxis::kind, std::string(kind_name(v.kind)), false);
  }
  if (!unrecorded.branch) add(HeadAxis::branch, v.branch, false);
  const bool in_stack = v.layer != kNoLayer;
  if (in_stack && !unrecorded.layer) add(HeadAxis::layer, std::to_string(v.layer), true);
  if (!v.place.block.empty() && (!in_stack || all)) add(HeadAxis::block, v.place.block, true);
  if (!unrecorded.step) add(HeadAxis::step, std::to_string(v.step), true);
  if (v.place.has_chunk()) add(HeadAxis::chunk, std::to_string(v.place.chunk), false);
  add(HeadAxis::batch, std::to_string(v.batch), false);
  add(HeadAxis::head, std::to_string(v.head), true);
  return choices;
}

/// Where these choices lead from the first head.
HeadId chosen_head(const HeadPicker& picker, const Choices& choices) {
  HeadId head;
  for (const auto& [axis, value] : choices) head = picker.select(head, axis, value);
  return head;
}

Choices head_choices(const HeadPicker& picker, const HeadId& head) {
  const auto leads_there = [&](const Choices& choices) {
    const HeadId there = chosen_head(picker, choices);
    return there.call == head.call && there.batch == head.batch && there.head == head.head;
  };
  Choices choices = choices_of(picker, head, false);
  if (leads_there(choices)) return choices;
  choices = choices_of(picker, head, true);
  if (leads_there(choices)) return choices;
  // Values that were not together with those before them are, once all the others stand.
  const Choices again = choices;
  choices.insert(choices.end(), again.begin(), again.end());
  return choices;
}

std::string query_line(const ChosenQuery& query, const TokenNames& names) {
  const std::vector<int64_t>& tokens = query.tokens;
  if (tokens.size() > 1) {
    const auto box = box_of(tokens, *names.grid);
    if (!box) return "";
    std::string text = box_text(*box);
    std::replace(text.begin(), text.end(), ',', ' ');
    return "query " + text + "\n";
  }
  if (tokens.empty()) return "";
  const int64_t token = tokens.front();
  const auto place = names.grid->coord(token);
  if (place && names.grid->has_grid() && names.grid->index_of(*place) == token) {
    return fmt::format("query {} {} {}\n", place->t, place->y, place->x);
  }
  const IndexRange text = names.grid->text_range();
  if (token >= text.begin && token < text.end) {
    return fmt::format("query text {}\n", token - text.begin);
  }
  return fmt::format("query token {}\n", token);
}

std::string atlas_lines(const AtlasLook& look) {
  if (!look.shown) return "atlas off\n";
  std::string text = "atlas on\n";
  if (!look.metric.empty()) text += "atlas " + look.metric + "\n";
  if (!look.sort.empty()) text += "atlas sort " + look.sort + "\n";
  if (look.exact) text += "atlas exact\n";
  return text;
}

std::string order_lines(const MapOrder& order) {
  const auto is_named = [](const TokenOrder& side) {
    return side.kind != TokenOrder::Kind::listed && side.kind != TokenOrder::Kind::stored;
  };
  if (order.rows == order.keys) {
    return is_named(order.rows) ? "order " + order.rows.text() + "\n" : "";
  }
  std::string text;
  if (is_named(order.rows)) text += "order " + order.rows.text() + " rows\n";
  if (is_named(order.keys)) text += "order " + order.keys.text() + " keys\n";
  return text;
}

std::string colour_lines(const ViewState& view, const ViewState& first) {
  std::string text;
  if (view.product != first.product) {
    text += fmt::format("product {}\n", product_name(view.product));
  }
  if (view.pool != first.pool) text += fmt::format("pool {}\n", pool_name(view.pool));
  if (view.scale != usual_scale(view.product)) {
    text += fmt::format("scale {}\n", scale_kind_name(view.scale));
  }
  if (view.colormap != first.colormap) text += "colormap " + quoted(view.colormap) + "\n";
  if (!view.range.automatic) text += fmt::format("range {} {}\n", view.range.low, view.range.high);
  if (view.range.automatic && view.range.whole) text += "range minmax\n";
  return text;
}

std::string zoom_line(const ViewState& view, const MapSource& call) {
  const MapRect& rect = view.rect;
  if (rect == fit_rect(call.queries.tokens(), call.keys.tokens())) return "";
  const auto rounded = [](double value) { return std::round(value * 100) / 100 + 0.0; };
  return fmt::format("zoom {} {} {} {}\n", rounded(rect.q0), rounded(rect.q1), rounded(rect.k0),
                     rounded(rect.k1));
}

/// True of words that change what is looked at, and nothing else.
template <class Word>
constexpr bool kIsView =
    std::is_same_v<Word, word::Select> || std::is_same_v<Word, word::SelectLayerHead> ||
    std::is_same_v<Word, word::QueryAt> || std::is_same_v<Word, word::QueryBox> ||
    std::is_same_v<Word, word::QueryText> || std::is_same_v<Word, word::QueryToken> ||
    std::is_same_v<Word, word::ShowSegment> || std::is_same_v<Word, word::ShowAtlas> ||
    std::is_same_v<Word, word::ShowVolume> || std::is_same_v<Word, word::ShowTrack> ||
    std::is_same_v<Word, word::ShowWords> || std::is_same_v<Word, word::ChooseWords> ||
    std::is_same_v<Word, word::Act>;

/// The parts one after the other, without the longest ones where all of them would be too long.
std::string joined_within(std::vector<std::string> parts, size_t most) {
  const auto size = [](size_t sum, const std::string& part) { return sum + part.size(); };
  const auto shorter = [](const std::string& a, const std::string& b) {
    return a.size() < b.size();
  };
  while (std::accumulate(parts.begin(), parts.end(), size_t{0}, size) > most) {
    parts.erase(std::max_element(parts.begin(), parts.end(), shorter));
  }
  return std::accumulate(parts.begin(), parts.end(), std::string());
}

bool is_view(const ScriptWord& word) {
  // An order may be a file's.
  if (const auto* const order = std::get_if<word::ShowOrder>(&word)) {
    return TokenOrder::is_name(order->text);
  }
  return std::visit([](const auto& each) { return kIsView<std::decay_t<decltype(each)>>; }, word);
}

}  // namespace

std::string view_script(const ViewState& view, const HeadPicker& picker) {
  const MapSource& call = picker.calls()[static_cast<size_t>(view.head.call)];
  const ViewState first = opened_view(ViewLimits::of(picker.calls()));
  std::vector<std::string> parts;
  for (const auto& [axis, value] : head_choices(picker, view.head)) {
    parts.push_back(fmt::format("{} {}\n", head_axis_name(axis), quoted(value)));
  }
  parts.push_back(atlas_lines(view.atlas));
  if (view.atlas.shown && !view.atlas.filter.empty()) {
    parts.push_back("atlas filter " + quoted(view.atlas.filter) + "\n");
  }
  if (view.reverse) parts.emplace_back("reverse on\n");
  const std::vector<std::string> segments = film_segments(view.reverse ? call.queries : call.keys);
  if (std::find(segments.begin(), segments.end(), view.segment) != segments.end()) {
    parts.push_back("segment " + quoted(view.segment) + "\n");
  }
  if (view.query) {
    parts.push_back(query_line(*view.query, TokenNames::of(call, view.head.batch, view.reverse)));
  }
  parts.push_back(colour_lines(view, first));
  parts.push_back(order_lines(view.order));
  if (view.equal_axes) parts.emplace_back("aspect equal\n");
  if (view.maximised) parts.push_back(fmt::format("pane {}\n", pane_name(*view.maximised)));
  parts.push_back(zoom_line(view, call));
  return joined_within(std::move(parts), kMostViewScript);
}

Script parse_view_script(std::string_view text) {
  if (text.size() > kMostViewScript) {
    throw usage_error(fmt::format("address: a view of at most {} bytes was expected, got {}",
                                  kMostViewScript, text.size()));
  }
  Script script = parse_script(text, "address");
  for (const ScriptLine& line : script.lines) {
    if (is_view(line.word)) continue;
    throw usage_error(
        fmt::format("address:{}: {}: an address has words that change what is looked at, and no "
                    "others",
                    line.line, one_line(line.text)));
  }
  return script;
}

}  // namespace attnscope
