#include "cli/help/man_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/common/help.h"
#include "cli/help/topics.h"
#include "core/base/version.h"
#include "io/files/output_file.h"

namespace attnscope {
namespace {

/// A text as man reads it: no line of it is a request, and a minus stays one.
std::string escaped(std::string_view text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    begins = c == '\n';
  }
  return out;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string title(const std::string& name) {
  return fmt::format(".TH {} 1 \"\" \"attnscope {}\" \"User Commands\"\n", escaped(upper(name)),
                     version());
}

/// As it stands, line by line.
std::string verbatim(std::string_view text) { return ".nf\n" + escaped(text) + ".fi\n"; }

std::string option_entry(const OptionFacts& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += (names.empty() ? "" : ", ") + ("\\fB" + escaped(name) + "\\fR");
  }
  const std::string value =
      option.value.empty() ? ""
                           : (names.empty() ? "" : " ") + ("\\fI" + escaped(option.value)) + "\\fR";
  return ".TP\n" + names + value + "\n" + escaped(option.about) + "\n";
}

/// The options under their headings.
std::string option_sections(const CommandParser& command) {
  const std::vector<OptionFacts> options = command.options();
  std::vector<std::string> headings;
  for (const OptionFacts& option : options) {
    if (option.heading.empty()) continue;
    if (std::find(headings.begin(), headings.end(), option.heading) == headings.end()) {
      headings.push_back(option.heading);
    }
  }
  std::string text = ".SH OPTIONS\n";
  for (const std::string& heading : in_help_order(command.name(), std::move(headings))) {
    text += ".SS " + escaped(heading) + "\n";
    for (const OptionFacts& option : options) {
      if (option.heading == heading) text += option_entry(option);
    }
  }
  return text;
}

void write_page(const std::string& text, const std::filesystem::path& path) {
  OutputFile file(path, {.force = true, .sync = false, .bytes = std::ssize(text)});
  file.create_part();
  file.write_at(std::as_bytes(std::span(text)), 0);
  file.commit();
}

}  // namespace

std::string man_page(const CommandParser& command) {
  const std::string name = "attnscope-" + command.name();
  const std::vector<OptionFacts> options = command.options();
  std::string text = title(name);
  text += ".SH NAME\n" + escaped(name) + " \\- " + escaped(command.about()) + "\n";
  text += ".SH SYNOPSIS\n\\fBattnscope " + escaped(command.name()) + "\\fR";
  for (const OptionFacts& option : options) {
    if (!option.names.empty()) continue;
    const std::string value = "\\fI" + escaped(option.value) + "\\fR";
    text += option.required ? " " + value : " [" + value + "]";
  }
  text += " [\\fIOPTIONS\\fR]\n" + option_sections(command);
  const std::string footer = command.footer();
  const size_t examples = std::min(footer.find("Examples:\n"), footer.size());
  if (examples > 0) text += ".SH NOTES\n" + verbatim(footer.substr(0, examples) + "\n");
  if (examples < footer.size()) {
    text += ".SH EXAMPLES\n" + verbatim(footer.substr(examples + 10) + "\n");
  }
  return text + ".SH SEE ALSO\n\\fBattnscope\\fR(1)\n";
}

std::string man_page(std::span<const Command> commands) {
  std::string text = title("attnscope");
  text +=
      ".SH NAME\nattnscope \\- see what video diffusion transformers look at\n"
      ".SH SYNOPSIS\n\\fBattnscope\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\nExact attention maps, softmax(scale q.k), of the Q and K that were "
      "recorded of a model, streamed within a memory budget: to look at, to measure and to "
      "export.\n.SH COMMANDS\n";
  for (const Command& command : commands) {
    text += ".TP\n\\fBattnscope\\-" + escaped(command.parser.name()) + "\\fR(1)\n" +
            escaped(command.parser.about()) + "\n";
  }
  for (const HelpTopic& topic : help_topics()) {
    text += ".SH " + escaped(upper(std::string(topic.about))) + "\n" + verbatim(topic.text);
  }
  return text;
}

void write_man_pages(std::span<const Command> commands, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  write_page(man_page(commands), folder / "attnscope.1");
  for (const Command& command : commands) {
    write_page(man_page(command.parser), folder / ("attnscope-" + command.parser.name() + ".1"));
  }
}

}  // namespace attnscope
