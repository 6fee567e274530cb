#include "viewer/script/compare_words.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/products/differences/map_difference.h"

namespace attnscope {
namespace {

constexpr std::array kOtherAxes{HeadAxis::step,  HeadAxis::layer, HeadAxis::chunk, HeadAxis::branch,
                                HeadAxis::block, HeadAxis::slot,  HeadAxis::batch, HeadAxis::head};
constexpr std::array kNamedAxes{HeadAxis::branch, HeadAxis::block, HeadAxis::slot};

std::vector<std::string> other_kinds() {
  std::vector<std::string> kinds{"capture"};
  for (const HeadAxis axis : kOtherAxes) kinds.emplace_back(head_axis_name(axis));
  kinds.insert(kinds.end(), {"split", "show", "lock", "release", "ranked", "off"});
  return kinds;
}

bool is_on(const ScriptArguments& w) {
  if (w[2] != "on" && w[2] != "off") throw unknown_name("b " + w[1], w[2], {"on", "off"});
  return w[2] == "on";
}

CompareWord make_lock(const ScriptArguments& w) {
  const bool on = w[1] == "lock";
  if (w[2] == "zoom") return action::SetLock{action::Lock::zoom, on};
  if (w[2] == "range") return action::SetLock{action::Lock::range, on};
  if (w[2] == "cursor") return action::SetLock{action::Lock::cursor, on};
  throw unknown_name("b " + w[1], w[2], {"zoom", "range", "cursor"});
}

CompareWord make_split(const ScriptArguments& w) {
  if (w[2] == "off") return action::SetSplitLine{};
  const double share = number(w, 2);
  if (!(share >= 0) || !(share <= 1)) {
    throw usage_error("b split: expected a share of the map's width from 0 to 1, or off, got " +
                      one_line(w[2]));
  }
  return action::SetSplitLine{static_cast<float>(share)};
}

CompareWord make_other_head(const ScriptArguments& w, HeadAxis axis) {
  if (w.size() == 4) {
    whole(w, 2);
    whole(w, 3);
    return word::SelectOther{{{HeadAxis::layer, w[2]}, {HeadAxis::head, w[3]}}};
  }
  if (std::find(kNamedAxes.begin(), kNamedAxes.end(), axis) == kNamedAxes.end()) whole(w, 2);
  return word::SelectOther{{{axis, w[2]}}};
}

}  // namespace

CompareWord parse_other(const ScriptArguments& w) {
  const std::vector<std::string> kinds = other_kinds();
  if (std::find(kinds.begin(), kinds.end(), w[1]) == kinds.end()) {
    throw unknown_name(w[0], w[1], kinds);
  }
  const size_t most = w[1] == "off" ? 2 : w[1] == "head" ? 4 : 3;
  const size_t least = w[1] == "off" ? 2 : 3;
  if (w.size() < least || w.size() > most) {
    throw usage_error("b " + w[1] + (w[1] == "off" ? ": stands alone" : ": expected one value") +
                      (w[1] == "head" ? ", or a layer and a head" : ""));
  }
  if (w[1] == "off") return action::DropOther{};
  if (w[1] == "capture") return word::OpenOther{w[2]};
  if (w[1] == "show") return word::ShowOther{is_on(w)};
  if (w[1] == "ranked") return action::ShowRanked{is_on(w)};
  if (w[1] == "lock" || w[1] == "release") return make_lock(w);
  if (w[1] == "split") return make_split(w);
  const auto axis = std::find_if(kOtherAxes.begin(), kOtherAxes.end(),
                                 [&](HeadAxis each) { return head_axis_name(each) == w[1]; });
  return make_other_head(w, *axis);
}

CompareWord parse_difference_word(const ScriptArguments& w) {
  const auto how = parse_difference(w[1]);
  if (!how) throw unknown_name(w[0], w[1], difference_names());
  return action::SetDifference{*how};
}

}  // namespace attnscope
