#include "viewer/settings/setting_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/products/tokens/token_box.h"
#include "io/pictures/colormap.h"
#include "viewer/view/query_words.h"
#include "viewer/view/row/prompt_words.h"
#include "viewer/view/view_names.h"

namespace attnscope {
namespace {

using Words = ScriptArguments;

TokenNames tokens_of(const SettingPlace& at) {
  return TokenNames::of(at.call(), at.state.head.batch, at.state.reverse);
}

/// "3,25,40-52".
std::string list_text(const std::vector<int64_t>& tokens) {
  std::string text;
  for (size_t i = 0; i < tokens.size();) {
    size_t last = i;
    while (last + 1 < tokens.size() && tokens[last + 1] == tokens[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", tokens[i]);
    if (last > i) text += fmt::format("-{}", tokens[last]);
    i = last + 1;
  }
  return text;
}

SettingChange parse_tokens(const std::string& text) {
  const auto lists = number_lists(text);
  constexpr int64_t kMost = int64_t{1} << 24;
  if (!lists) throw usage_error("query tokens: expected N,N-M..., got " + one_line(text));
  ChosenQuery query;
  for (const IndexRange& numbers : *lists) {
    if (numbers.size() > kMost - static_cast<int64_t>(query.tokens.size())) {
      throw usage_error(fmt::format("query tokens: expected at most {} of them", kMost));
    }
    for (int64_t n = numbers.begin; n < numbers.end; ++n) query.tokens.push_back(n);
  }
  return always(action::PickQuery{query});
}

SettingChange parse_query(Words w) {
  if (w[1] == "none" && w.size() == 2) return always(action::DropQuery{});
  if (w[1] == "tokens" && w.size() == 3) return parse_tokens(w[2]);
  if (w[1] == "text" && w.size() == 3) {
    return [number = whole(w, 2)](const SettingPlace& at) -> Action {
      return action::PickQuery{query_text(tokens_of(at), number)};
    };
  }
  if (w[1] == "token" && w.size() == 3) {
    return always(action::PickQuery{ChosenQuery{{whole(w, 2)}}});
  }
  if (w[1] == "text" || w[1] == "token" || w[1] == "tokens" || w.size() != 4) {
    throw usage_error(
        "query: expected query T Y X, query text N, query token N, query tokens N,N-M... or "
        "query none");
  }
  const bool box = std::any_of(w.begin() + 1, w.end(), [](const std::string& each) {
    return each.find(':') != std::string::npos;
  });
  if (box) {
    const std::string text = fmt::format("{}", fmt::join(w.subspan(1), ","));
    return [text](const SettingPlace& at) -> Action {
      return action::PickQuery{query_box(tokens_of(at), text, "query")};
    };
  }
  const LatentCoord place{whole(w, 1), whole(w, 2), whole(w, 3)};
  return [place](const SettingPlace& at) -> Action {
    return action::PickQuery{query_at(tokens_of(at), place)};
  };
}

std::string query_lines(const SettingPlace& at) {
  if (!at.state.query) return "query none\n";
  const std::vector<int64_t>& tokens = at.state.query->tokens;
  const TokenNames names = tokens_of(at);
  if (tokens.size() > 1) {
    const auto box = box_of(tokens, *names.grid);
    if (!box) return "query tokens " + list_text(tokens) + "\n";
    std::string text = box_text(*box);
    std::replace(text.begin(), text.end(), ',', ' ');
    return "query " + text + "\n";
  }
  const int64_t token = tokens.front();
  const auto place = names.grid->coord(token);
  if (place && names.grid->has_grid() && names.grid->index_of(*place) == token) {
    return fmt::format("query {} {} {}\n", place->t, place->y, place->x);
  }
  const IndexRange text = names.grid->text_range();
  if (text.contains(token)) return fmt::format("query text {}\n", token - text.begin);
  return fmt::format("query token {}\n", token);
}

Setting query_setting() {
  return {
      .name = "query",
      .usage = "query T Y X | query text N | query token N | query tokens N,N-M... | query none",
      .help =
          "pick a token by its latent place, its place in the text, or in the sequence; "
          "the mean of several by ranges A:B, or by a list",
      .most = 3,
      .in_address = true,
      .parse = parse_query,
      .value = [](const SettingPlace& at) { return query_words(tokens_of(at), at.state.query); },
      .lines = query_lines};
}

Setting segment_setting() {
  return {.name = "segment",
          .usage = "segment NAME|none",
          .help = "film another segment of the token map; none: the video again",
          .in_address = true,
          .parse = [](Words w) -> SettingChange {
            return [name = word_text(w[1], "none")](const SettingPlace& at) -> Action {
              const MapSource& call = at.call();
              if (at.of_this_head) {
                check_film_segment(at.state.reverse ? call.queries : call.keys, name);
              }
              return action::SetSegment{name};
            };
          },
          .value = [](const SettingPlace& at) { return text_word(at.state.segment, "none"); },
          .lines =
              [](const SettingPlace& at) {
                return "segment " + script_quoted(text_word(at.state.segment, "none")) + "\n";
              }};
}

/// A setting whose words are names of a list, and what `print` tells too.
template <typename Enum, typename Do>
Setting choice(std::string_view usage, std::string_view help, const std::vector<std::string>& names,
               std::optional<Enum> (*parse)(std::string_view), std::string_view (*name)(Enum),
               Enum ViewState::*member, Do make) {
  Setting setting{.usage = usage, .help = help, .told = names, .in_address = true};
  setting.name = setting.word();
  setting.parse = [=](Words w) {
    return always(Action(make(named(w[0], w[1], parse(w[1]), names))));
  };
  setting.value = [=](const SettingPlace& at) { return std::string(name(at.state.*member)); };
  return setting;
}

/// A setting of two words, the first of which switches a part of the state on.
Setting switch_setting(std::string_view name, std::string_view usage, std::string_view help,
                       const std::vector<std::string>& words, bool ViewState::*member) {
  Setting setting{.name = name, .usage = usage, .help = help, .told = words, .in_address = true};
  setting.parse = [words, member](Words w) -> SettingChange {
    if (w[1] != words[0] && w[1] != words[1]) throw unknown_name(w[0], w[1], words);
    if (member == &ViewState::reverse) return always(action::SetReverse{w[1] == words[0]});
    return always(action::Switch{member, w[1] == words[0]});
  };
  setting.value = [words, member](const SettingPlace& at) {
    return words[at.state.*member ? 0 : 1];
  };
  return setting;
}

Setting colormap_setting() {
  return {.name = "colormap",
          .usage = "colormap NAME",
          .help = "viridis, cividis, magma, ...",
          .told = colormap_names(),
          .in_address = true,
          .parse = [](Words w) -> SettingChange {
            named(w[0], w[1], parse_colormap(w[1]), colormap_names());
            return always(action::SetColormap{w[1]});
          },
          .value = [](const SettingPlace& at) { return at.state.colormap; }};
}

SettingChange parse_range(Words w) {
  if (w.size() == 2) {
    if (w[1] != "auto" && w[1] != "minmax") {
      throw usage_error("range: expected range LO HI, range auto or range minmax");
    }
    ColourRange range;
    range.whole = w[1] == "minmax";
    return always(action::SetRange{range});
  }
  const double low = number(w, 1), high = number(w, 2);
  if (!(low < high)) {
    throw usage_error(
        fmt::format("range: the low end must be below the high end, got {} {}", w[1], w[2]));
  }
  return always(action::SetRange{{false, low, high}});
}

Setting range_setting() {
  return {
      .name = "range",
      .usage = "range LO HI | range auto|minmax",
      .help =
          "the values at the colours' ends: these, where the mass of what is seen is, all "
          "of it",
      .most = 2,
      .in_address = true,
      .parse = parse_range,
      .value =
          [](const SettingPlace& at) {
            return range_text(at.state.against() ? at.state.other->range : at.state.range);
          },
      .lines = [](const SettingPlace& at) { return "range " + range_text(at.state.range) + "\n"; }};
}

Setting zoom_setting() {
  return {.name = "zoom",
          .usage = "zoom Q0 Q1 K0 K1",
          .help = "show these queries and keys of the map",
          .least = 4,
          .most = 4,
          .in_address = true,
          .parse = [](Words w) { return always(action::SetRect{parse_rect(w, 1)}); },
          .value = [](const SettingPlace& at) { return rect_text(at.state.rect, false); },
          .lines =
              [](const SettingPlace& at) {
                return "zoom " + rect_text(at.state.rect, at.rounded) + "\n";
              }};
}

/// The words behind `order` and `other-order`.
template <typename Do>
SettingChange parse_order(Words w) {
  // A word with a dot or a slash may name a file; that is looked at when the line is done.
  const bool named = TokenOrder::is_name(w[1]);
  if (named || w[1].find_first_of("./") == std::string::npos) TokenOrder::parse(w[1]);
  std::optional<action::MapSide> side;
  if (w.size() == 3) {
    if (w[2] != "rows" && w[2] != "keys")
      throw unknown_name(w[0] + " " + w[1], w[2], {"rows", "keys"});
    side = w[2] == "rows" ? action::MapSide::rows : action::MapSide::keys;
  }
  return [named, side, word = w[0], text = w[1]](const SettingPlace& at) -> Action {
    if (named) return Do{TokenOrder::parse(text), side};
    if (at.files == nullptr) {
      throw usage_error(word + " " + one_line(text) + ": this window reads no files");
    }
    return Do{at.files->read_order(text), side};
  };
}

std::string order_lines(std::string_view word, const MapOrder& order, const SettingPlace& at) {
  const auto side = [&](const TokenOrder& tokens, std::string_view behind) {
    const bool file = tokens.kind == TokenOrder::Kind::listed;
    if (file && at.files == nullptr) return std::string();
    const std::string text = file ? at.files->written_order(tokens.file) : tokens.text();
    return fmt::format("{} {}{}\n", word, script_quoted(text), behind);
  };
  // Of one file for both sides there is one list.
  if (order.rows == order.keys) return side(order.rows, "");
  return side(order.rows, " rows") + side(order.keys, " keys");
}

Setting order_setting() {
  return {.name = "order",
          .usage = "order stored|raster|yxt|tiles:TxHxW|hilbert|morton|FILE [rows|keys]",
          .help =
              "the order in which the matrix has its tokens: both sides, or one; FILE holds "
              "the token at each place",
          .most = 2,
          .in_address = true,
          .parse = parse_order<action::SetOrder>,
          .value =
              [](const SettingPlace& at) {
                const MapOrder& order = at.state.order;
                return order.rows == order.keys ? order.rows.text()
                                                : order.rows.text() + " " + order.keys.text();
              },
          .lines = [](const SettingPlace& at) { return order_lines("order", at.state.order, at); }};
}

Setting other_order_setting() {
  return {.usage = "other-order NAME|FILE [rows|keys]",
          .help = "the order that the key for it changes to",
          .most = 2,
          .parse = parse_order<action::SetOtherOrder>,
          .lines = [](const SettingPlace& at) {
            return order_lines("other-order", at.state.other_order, at);
          }};
}

Setting column_setting() {
  return {.name = "column",
          .usage = "column SHARE",
          .help = "the share of the window's width that the right column takes",
          .number = true,
          .parse = [](Words w) -> SettingChange {
            const double share = number(w, 1);
            if (!(share > 0) || !(share < 1)) {
              throw usage_error("column: expected a share of the width between 0 and 1, got " +
                                one_line(w[1]));
            }
            return always(action::SetSplit{static_cast<float>(share)});
          },
          .value = [](const SettingPlace& at) { return fmt::format("{}", at.state.split_query); }};
}

}  // namespace

std::string range_text(const ColourRange& range) {
  if (!range.automatic) return fmt::format("{} {}", range.low, range.high);
  return range.whole ? "minmax" : "auto";
}

std::string rect_text(const MapRect& rect, bool rounded) {
  const auto number = [&](double value) {
    return rounded ? std::round(value * 100) / 100 + 0.0 : value;
  };
  return fmt::format("{} {} {} {}", number(rect.q0), number(rect.q1), number(rect.k0),
                     number(rect.k1));
}

MapRect parse_rect(ScriptArguments w, size_t at) {
  const MapRect rect{number(w, at), number(w, at + 1), number(w, at + 2), number(w, at + 3)};
  if (rect.q0 < rect.q1 && rect.k0 < rect.k1) return rect;
  throw usage_error(fmt::format("{}: expected Q0 < Q1 and K0 < K1, got {}",
                                fmt::join(w.first(at), " "), fmt::join(w.subspan(at), " ")));
}

std::vector<Setting> map_settings() {
  std::vector<Setting> all{
      switch_setting("reverse", "reverse on|off",
                     "show who attends to the token, not what it attends to", kOnOff,
                     &ViewState::reverse),
      segment_setting(),
      query_setting(),
      choice("product weights|logits|lift", "what numbers are shown", product_names(),
             parse_product, product_name, &ViewState::product,
             [](ViewProduct product) { return action::SetProduct{product}; }),
      choice("pool max|mean", "what a texel shows of its entries", pool_names(), parse_pool,
             pool_name, &ViewState::pool, [](Pool pool) { return action::SetPool{pool}; }),
      choice("scale log|linear|sqrt|symlog", "how values are spread over the colours",
             scale_kind_names(), parse_scale_kind, scale_kind_name, &ViewState::scale,
             [](ScaleKind scale) { return action::SetScale{scale}; }),
      colormap_setting(),
      range_setting(),
      zoom_setting(),
      switch_setting("aspect", "aspect equal|fill",
                     "an entry as high as it is wide, or the map as large as the pane",
                     {"equal", "fill"}, &ViewState::equal_axes),
      order_setting(),
      other_order_setting(),
      choice("theme dark|light", "the colours of the window itself", theme_names(), parse_theme,
             theme_name, &ViewState::theme,
             [](ViewTheme theme) { return action::SetTheme{theme}; }),
      switch_setting("histogram", "histogram on|off", "how often which values are seen", kOnOff,
                     &ViewState::show_histogram),
      column_setting(),
      switch_setting("frame_matrix", "frames on|off",
                     "the mass that each frame's queries put on each frame, as a small matrix",
                     kOnOff, &ViewState::show_frames),
      switch_setting("magnifier", "magnify on|off",
                     "the entries around the mouse with their numbers, beside it", kOnOff,
                     &ViewState::magnifier),
  };
  // The theme is whose window it is.
  const auto is_theme = [](const Setting& setting) { return setting.name == "theme"; };
  std::find_if(all.begin(), all.end(), is_theme)->in_address = false;
  return all;
}

}  // namespace attnscope
