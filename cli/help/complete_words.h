#pragma once

#include <string>
#include <vector>

#include "cli/common/command.h"

namespace attnscope {

/// The word behind the program's name with which the scripts of `attnscope completion` ask for
/// complete_words().
constexpr const char* kCompleteWord = "__complete";

/// A word that the last one of a command line can become.
struct WordCompletion {
  std::string word, about;  ///< `about` is one line, or empty
  friend bool operator==(const WordCompletion&, const WordCompletion&) = default;
};

/// The completions of the last of `words`, which stand behind the program's name: commands,
/// options, the words of an option's value, and the steps, layers, heads and names of the capture
/// that the line names. None where a file is to be named, which shells know themselves. Reads the
/// capture's descriptions; never throws for what it finds there. Of the line "--layers=1" shells
/// that part words at the equals sign give "--layers", "=" and "1".
std::vector<WordCompletion> complete_words(const std::vector<Command>& commands,
                                           std::vector<std::string> words);

}  // namespace attnscope
