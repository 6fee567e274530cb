#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/problem/score.h"

namespace attnscope {

/// Facts given on the command line; what is set overrides what was recorded, and Capture::notes()
/// says so.
struct FactOverrides {
  std::optional<std::string> layout;  ///< "bhsd" …
  std::optional<std::string> grid;    ///< "13x30x45"
  std::optional<std::string> text;    ///< "226@start"
  std::optional<std::string> scale;   ///< "auto", a number, or one a head: "0.1,0.2"
  std::optional<std::string> mask;    ///< a word of mask_words.h or a file
  std::optional<std::string> preset;  ///< name of a ModelPreset: grid, text and head_dim to check
  ScoreFunction score = ScoreFunction::softmax;
  std::string mask_option = "--mask";  ///< how the command line calls `mask`
  std::optional<std::string> rope;     ///< "cogvideox" …: q and k are turned when they are read
  /// Where packed sequences begin and end: "0,9,24" or a tensor file FILE[:KEY]; packed_sequences.h
  std::optional<std::string> cu_seqlens;
  std::optional<std::string> cu_seqlens_k;  ///< the same of the keys, where it is another list
  /// What codes are multiplied by, FILE[:KEY] or a number, and what their bytes are:
  /// code_tensors.h.
  std::optional<std::string> q_scale, k_scale, q_dtype, k_dtype;
  std::optional<std::string> sinks;                 ///< "none", a logit or FILE[:KEY]: call_sinks.h
  std::optional<std::string> alibi, relative_bias;  ///< "none" or FILE[:KEY]: call_place_bias.h
  std::optional<std::string>
      pattern;  ///< which files of a folder are which tensors; name_pattern.h
  /// Facts that are told of every call: values as --as has them, by the facts' names; call_facts.h
  std::map<std::string, std::string> told = {};

  /// True where anything is set.
  bool any() const;
};

/// A fact that is overridden by a text: its name in sessions, exports and Python, and the option of
/// the command line.
struct TextFact {
  /// The texts that name no file: all, patterns of masks, lists of numbers, a number.
  enum class Kind : uint8_t { word, mask, list, number };
  const char* name;
  const char* option;
  std::optional<std::string> FactOverrides::*value;
  Kind kind = Kind::word;

  /// True where the text is FILE or FILE:KEY.
  bool names_file(const std::string& text) const;
};
inline constexpr std::array<TextFact, 17> kTextFacts{{
    {"pattern", "--pattern", &FactOverrides::pattern},
    {"layout", "--layout", &FactOverrides::layout},
    {"grid", "--grid", &FactOverrides::grid},
    {"text", "--text", &FactOverrides::text},
    {"scale", "--scale", &FactOverrides::scale},
    {"mask", "--mask", &FactOverrides::mask, TextFact::Kind::mask},
    {"preset", "--preset", &FactOverrides::preset},
    {"rope", "--rope", &FactOverrides::rope},
    {"cu_seqlens", "--cu-seqlens", &FactOverrides::cu_seqlens, TextFact::Kind::list},
    {"cu_seqlens_k", "--cu-seqlens-k", &FactOverrides::cu_seqlens_k, TextFact::Kind::list},
    {"q_scale", "--q-scale", &FactOverrides::q_scale, TextFact::Kind::number},
    {"k_scale", "--k-scale", &FactOverrides::k_scale, TextFact::Kind::number},
    {"q_dtype", "--q-dtype", &FactOverrides::q_dtype},
    {"k_dtype", "--k-dtype", &FactOverrides::k_dtype},
    {"sinks", "--sinks", &FactOverrides::sinks, TextFact::Kind::number},
    {"alibi", "--alibi", &FactOverrides::alibi, TextFact::Kind::number},
    {"relative_bias", "--relative-bias", &FactOverrides::relative_bias, TextFact::Kind::number},
}};

/// "0,9,24": no name of a file.
bool is_number_list(const std::string& text);

inline bool FactOverrides::any() const {
  return score != ScoreFunction::softmax || !told.empty() ||
         std::any_of(kTextFacts.begin(), kTextFacts.end(),
                     [&](const TextFact& fact) { return (this->*fact.value).has_value(); });
}

/// Tensors without metadata: FILE or FILE:KEY each.
struct BareTensors {
  std::string q;
  std::string k;
  std::string v;  ///< may be empty
};

}  // namespace attnscope
