#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attnscope {

/// How the words of the prompt are listed, and which of them are looked at.
struct WordsLook {
  bool shown = false;
  bool special = true;      ///< special tokens and padding are listed too, apart from the words
  bool by_mass = false;     ///< the largest mass first, not the order of the prompt
  std::string filter = {};  ///< words that hold this; empty: all
  /// Whose film is seen in place of the query's, counted within the text, ascending; empty: none.
  std::vector<int64_t> chosen = {};
  friend bool operator==(const WordsLook&, const WordsLook&) = default;
};

}  // namespace attnscope
