#include "cli/common/parser.h"

#include <CLI/CLI.hpp>

namespace attnscope {

OptionSetup& OptionSetup::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

OptionSetup& OptionSetup::group(const std::string& heading) {
  option_->group(heading);
  return *this;
}

OptionSetup& OptionSetup::required() {
  option_->required();
  return *this;
}

OptionSetup& OptionSetup::delimiter(char between) {
  option_->delimiter(between);
  return *this;
}

OptionSetup& OptionSetup::one_value_each() {
  option_->allow_extra_args(false);
  return *this;
}

OptionSetup& OptionSetup::in_range(int64_t first, int64_t last) {
  option_->check(CLI::Range(first, last));
  return *this;
}

OptionSetup& OptionSetup::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return *this;
}

OptionSetup& OptionSetup::check(std::function<std::string(const std::string&)> complaint) {
  option_->check(std::move(complaint));
  return *this;
}

CommandParser::CommandParser(CLI::App& program, const std::string& name, const std::string& help)
    : app_(program.add_subcommand(name, help)) {}

OptionSetup CommandParser::add_option(const std::string& name, std::string& value,
                                      const std::string& help) {
  return OptionSetup(*app_->add_option(name, value, help));
}

OptionSetup CommandParser::add_option(const std::string& name, int& value,
                                      const std::string& help) {
  return OptionSetup(*app_->add_option(name, value, help));
}

OptionSetup CommandParser::add_option(const std::string& name, int64_t& value,
                                      const std::string& help) {
  return OptionSetup(*app_->add_option(name, value, help));
}

OptionSetup CommandParser::add_option(const std::string& name, uint64_t& value,
                                      const std::string& help) {
  return OptionSetup(*app_->add_option(name, value, help));
}

OptionSetup CommandParser::add_option(const std::string& name, double& value,
                                      const std::string& help) {
  return OptionSetup(*app_->add_option(name, value, help));
}

OptionSetup CommandParser::add_option(const std::string& name, std::optional<int64_t>& value,
                                      const std::string& help) {
  return OptionSetup(*app_->add_option(name, value, help));
}

OptionSetup CommandParser::add_option(const std::string& name, std::vector<std::string>& values,
                                      const std::string& help) {
  return OptionSetup(*app_->add_option(name, values, help));
}

OptionSetup CommandParser::add_option(const std::string& name, std::vector<int64_t>& values,
                                      const std::string& help) {
  return OptionSetup(*app_->add_option(name, values, help));
}

OptionSetup CommandParser::add_flag(const std::string& name, bool& value, const std::string& help) {
  return OptionSetup(*app_->add_flag(name, value, help));
}

void CommandParser::footer(const std::string& text) { app_->footer(text); }

size_t CommandParser::count(const std::string& name) const { return app_->count(name); }

}  // namespace attnscope
