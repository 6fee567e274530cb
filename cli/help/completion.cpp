#include <fmt/core.h>

#include <memory>
#include <string>
#include <string_view>

#include "cli/common/command.h"
#include "cli/help/complete_words.h"

namespace attnscope {
namespace {

// Each asks the program that stands on the line what its last word can become, and takes files
// where there is no answer. Answers are lines of a word, a tab and a description.

constexpr std::string_view kBash =
    R"(# Completion of attnscope in bash: source <(attnscope completion bash)
_attnscope() {
  local line word words=()
  COMPREPLY=()
  # As the shell would take them, without quotes.
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    word=${word//[\"\'\\]/}
    words+=("$word")
  done
  while IFS= read -r line; do
    COMPREPLY+=("${line%%$'\t'*}")
  done < <("${COMP_WORDS[0]/#\~\//$HOME/}" __complete "${words[@]}" 2>/dev/null)
  # A value follows a word that ends so.
  [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *[:=] ]] || compopt -o nospace 2>/dev/null
}
complete -o default -F _attnscope attnscope
)";

constexpr std::string_view kZsh = R"(#compdef attnscope
# Completion of attnscope in zsh: source <(attnscope completion zsh)
_attnscope() {
  local line
  local -a found shown
  for line in "${(@f)$("${words[1]/#\~\//$HOME/}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] || continue
    line=${line%$'\t'}
    found+=("${line%%$'\t'*}")
    shown+=("${line/$'\t'/  -- }")
  done
  if (( ${#found} == 0 )); then
    _files
  elif (( ${#found} == 1 )) && [[ $found[1] == *[:=] ]]; then
    compadd -S '' -d shown -a found
  else
    compadd -l -d shown -a found
  fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _attnscope "$@"
else
  compdef _attnscope attnscope
fi
)";

constexpr std::string_view kFish =
    R"(# Completion of attnscope in fish: attnscope completion fish | source
function __attnscope_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    type -q $program; or return
    set -l found ($program __complete $words[2..-1] "$last" 2>/dev/null)
    if test (count $found) -eq 0
        __fish_complete_path "$last"
    else
        printf '%s\n' $found
    end
end
complete -c attnscope -f -a '(__attnscope_complete)'
)";

std::string_view script_of(std::string_view shell) {
  return shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
}

}  // namespace

Command add_completion_command(CLI::App& app) {
  CommandParser parser(app, "completion", "print what a shell needs to complete attnscope's words");
  const auto shell = std::make_shared<std::string>();
  parser.add_option("shell", *shell, "{}")
      .required()
      .one_of({"bash", "zsh", "fish"})
      .type_name("SHELL");
  parser.footer(
      "Options, the names that they know, and steps, layers, heads and branches of the capture\n"
      "that is named.\n\n"
      "Examples:\n"
      "  attnscope completion fish | source      # in ~/.config/fish/config.fish\n"
      "  source <(attnscope completion bash)     # in ~/.bashrc\n"
      "  source <(attnscope completion zsh)      # in ~/.zshrc, behind compinit\n");
  return {parser, [shell] {
            fmt::print("{}", script_of(*shell));
            return kExitOk;
          }};
}

}  // namespace attnscope
