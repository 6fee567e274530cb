#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/common/command.h"
#include "cli/help/man_pages.h"
#include "cli/help/topics.h"
#include "core/base/error.h"
#include "core/base/nearest_word.h"

namespace attnscope {
namespace {

struct HelpOptions {
  std::string topic, man;
};

std::string topic_list() {
  std::string text = "\nTopics (attnscope help TOPIC):\n";
  for (const HelpTopic& topic : help_topics()) {
    text += fmt::format("  {:<28}{}\n", topic.name, topic.about);
  }
  return text;
}

/// The text about a topic or a command. Throws Error(usage) where it is neither.
std::string help_on(const std::string& word, const std::vector<Command>& commands) {
  std::vector<std::string> known;
  for (const HelpTopic& topic : help_topics()) {
    if (topic.name == word) return std::string(topic.text);
    known.emplace_back(topic.name);
  }
  for (const Command& command : commands) {
    if (command.parser.name() == word) return command.parser.page();
    known.push_back(command.parser.name());
  }
  throw unknown_name("help", word, known);
}

}  // namespace

Command add_help_command(CLI::App& app, const std::vector<Command>& commands) {
  CommandParser parser(app, "help", "tell about a command, or a topic that commands share");
  const auto o = std::make_shared<HelpOptions>();
  parser.add_option("topic", o->topic, "a command, or select, tokens, inputs, memory, json or exit")
      .type_name("TOPIC");
  parser.add_option("--man", o->man, "write manual pages of all commands into this folder")
      .type_name("DIR");
  parser.footer(
      "Examples:\n"
      "  attnscope help select\n"
      "  attnscope help query\n");
  return {parser, [o, parser, &commands] {
            if (!o->man.empty()) {
              if (!o->topic.empty()) throw usage_error("help: --man is of all commands");
              write_man_pages(commands, o->man);
            } else if (o->topic.empty()) {
              fmt::print("{}{}", parser.program_page(), topic_list());
            } else {
              fmt::print("{}", help_on(o->topic, commands));
            }
            return kExitOk;
          }};
}

}  // namespace attnscope
