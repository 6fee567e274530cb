#include "cli/figure/figure_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/head_table.h"
#include "core/problem/head_name.h"
#include "io/capture/unknown_state.h"

namespace attnscope {
namespace {

/// A word of a shell's command line.
std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./:,+@%=").find(c) != std::string_view::npos;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

/// The last part of a path that names something.
std::string file_name(const std::filesystem::path& path) {
  const std::filesystem::path name = path.filename();
  return name.empty() ? path.parent_path().filename().string() : name.string();
}

}  // namespace

std::string figure_command(const FigureRequest& request, const std::filesystem::path& capture,
                           const CallEntry& call, const FigureCut& cut) {
  const CallId& id = call.id;
  std::string text =
      fmt::format("attnscope figure {} --steps {}", shell_word(file_name(capture)), id.step);
  if (id.layer != kNoLayer) text += fmt::format(" --layers {}", id.layer);
  for (const auto& [option, values] :
       std::array<std::pair<const char*, const std::vector<std::string>*>, 4>{
           {{"--branch", &request.selection.branches},
            {"--kind", &request.selection.kinds},
            {"--blocks", &request.selection.blocks},
            {"--slots", &request.selection.slots}}}) {
    for (const std::string& value : *values) {
      text += fmt::format(" {} {}", option, shell_word(value));
    }
  }
  text += fmt::format(" --batch {} --heads {}", cut.batch, cut.head);
  const FigureChoice& choice = request.choice;
  if (!choice.rows.empty()) text += " --rows " + shell_word(choice.rows);
  if (!choice.cols.empty()) text += " --cols " + shell_word(choice.cols);
  if (choice.stride > 1) text += fmt::format(" --stride {}", choice.stride);
  return text + " -o " + shell_word(file_name(request.out));
}

std::string figure_title(const std::filesystem::path& capture, const CallEntry& call,
                         const FigureCut& cut) {
  const std::string& model = call.model;
  return fmt::format("{}, {}{}", model.empty() ? file_name(capture) : model,
                     head_label(head_name(call.id, cut.batch, cut.head)),
                     is_state_unknown(call) ? std::string(", ") + kUnknownState : "");
}

}  // namespace attnscope
