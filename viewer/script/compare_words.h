#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "viewer/script/script_arguments.h"
#include "viewer/view/heads/head_picker.h"
#include "viewer/view/view_actions.h"

namespace attnscope {

namespace word {
/// `b layer 3`, `b head 3 2`: side B, one value after the other.
struct SelectOther {
  std::vector<std::pair<HeadAxis, std::string>> values;
};
/// `b capture PATH`.
struct OpenOther {
  std::string path;
};
/// `b show on`: B in place of A, as while its key is held.
struct ShowOther {
  bool on = false;
};
}  // namespace word
/// The commands that the words of a comparison stand for.
using CompareWord = std::variant<Action, word::SelectOther, word::OpenOther, word::ShowOther>;

// `b …` and `difference …`; the arguments are the whole line. Throw Error(usage) without a place.
CompareWord parse_other(const ScriptArguments& words);
CompareWord parse_difference_word(const ScriptArguments& words);

}  // namespace attnscope
