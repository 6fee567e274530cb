#include "cli/report/report_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/common/shell_words.h"
#include "cli/report/report_plan.h"
#include "core/base/memory_budget.h"
#include "core/base/version.h"
#include "io/files/staged_file.h"
#include "io/segments/head_name_json.h"
#include "web/report/report_page.h"

namespace attnscope {
namespace {

/// The command that makes the page, with names of files alone: a page is sent to others.
std::string report_command(const ReportRequest& o) {
  std::string text = "attnscope report";
  const auto add_path = [&](const std::string& path) {
    if (!path.empty()) text += " " + shell_word(file_name(path));
  };
  add_path(o.capture.capture);
  add_path(o.second);
  for (const auto& [option, path] : {std::pair("--q", &o.capture.tensors.q),
                                     {"--k", &o.capture.tensors.k},
                                     {"--v", &o.capture.tensors.v}}) {
    if (!path->empty()) text += fmt::format(" {} {}", option, shell_word(file_name(*path)));
  }
  text += selection_words(o.selection);
  if (o.sample > 0) text += fmt::format(" --sample {}", o.sample);
  if (!o.title.empty()) text += " --title " + shell_word(o.title);
  if (o.style != "reader") text += " --style " + o.style;
  if (o.max_size != "8MiB") text += " --max-size " + shell_word(o.max_size);
  return text + " -o " + shell_word(file_name(o.out));
}

OrderedJson answer_json(const ReportParts& parts, const ReportAnswer& answer, int64_t bytes) {
  OrderedJson json{{"format", "attnscope-report/1"}};
  json["capture_hash"] =
      answer.capture_hash.empty() ? OrderedJson() : OrderedJson(answer.capture_hash);
  json["bytes"] = bytes;
  json["title"] = parts.facts.at("title");
  json["subject"] = parts.facts.at("subject");
  json["sample"] = parts.facts.at("sample");
  json["heads"] = answer.heads;
  json["stands_out"] = OrderedJson::array();
  for (const StandingRule& rule : answer.rules) {
    OrderedJson& list = json["stands_out"].emplace_back(
        OrderedJson{{"rule", rule.rule}, {"text", rule.text}, {"heads", OrderedJson::array()}});
    for (const StandingRule::Head& head : rule.heads) {
      OrderedJson& row = list["heads"].emplace_back(name_json(answer.names[head.head].name));
      row["value"] = head.value;
      row["text"] = head.text;
    }
  }
  if (parts.facts.at("subject") == "pair") json["pairs"] = answer.pairs;
  json["not_reached"] = OrderedJson::array();
  for (const HeadName& name : answer.not_reached) json["not_reached"].push_back(name_json(name));
  json["lacks"] = parts.lacks;
  json["problems"] = parts.problems;
  return json;
}

/// What a page of which nothing is computed takes.
void plan_page(const ReportRequest& o, const ReportParts& parts, const ReportAnswer& answer) {
  const MemoryBudget budget(memory_limit(o.run));
  RunPlan plan = plan_of("report", std::ssize(answer.names), ReductionPlan(), budget);
  plan.seconds = 0;
  set_page_bytes(plan, parts.bytes(), false);
  print_plan(plan, o.json);
}

}  // namespace

OrderedJson first_facts(const ReportRequest& o, const std::string& subject,
                        const std::string& title) {
  OrderedJson facts{{"format", "attnscope-report/1"},
                    {"version", std::string(version())},
                    {"title", o.title.empty() ? title : o.title},
                    {"subject", subject},
                    {"input", OrderedJson::array()},
                    {"command", report_command(o)},
                    {"capture_hash", nullptr},
                    {"problems", OrderedJson::array()},
                    {"lacks", OrderedJson::array()},
                    {"about", OrderedJson::array()},
                    {"checks", OrderedJson::array()},
                    {"sample", nullptr}};
  for (const std::string& path : {o.capture.capture, o.second, o.capture.tensors.q,
                                  o.capture.tensors.k, o.capture.tensors.v}) {
    if (!path.empty()) facts["input"].push_back(file_name(path));
  }
  return facts;
}

OrderedJson standing_facts(std::span<const StandingRule> rules) {
  OrderedJson list = OrderedJson::array();
  for (const StandingRule& rule : rules) {
    OrderedJson& json = list.emplace_back(OrderedJson{{"rule", rule.rule},
                                                      {"title", rule.title},
                                                      {"text", rule.text},
                                                      {"heads", OrderedJson::array()}});
    for (const StandingRule::Head& head : rule.heads) {
      json["heads"].push_back({{"head", head.head}, {"value", head.value}, {"text", head.text}});
    }
  }
  return list;
}

void write_report(const ReportRequest& o, ReportParts& parts, const ReportAnswer& answer,
                  const Console& console) {
  parts.style = parse_page_style(o.style);
  fit_page(parts, o.most_bytes(), o.size_option());
  if (o.dry_run) return plan_page(o, parts, answer);
  const OrderedJson facts = parts.joined_facts();
  StagedFile file(o.out, o.force);
  int64_t bytes = 0;
  write_report_page(parts.page(facts), [&](std::string_view text) {
    file.append(std::as_bytes(std::span(text.data(), text.size())));
    bytes += static_cast<int64_t>(text.size());
  });
  file.commit();
  console.say(fmt::format("wrote {} ({:.2f} MB: {} heads{})", o.out,
                          static_cast<double>(bytes) * 1e-6, answer.names.size(),
                          parts.figures.empty()
                              ? std::string()
                              : fmt::format(", {} with an exact map", parts.figures.size())));
  if (!parts.figures.empty()) {
    console.say("note: the page contains the queries and keys of the heads with an exact map");
  }
  for (const std::string& problem : parts.problems) console.warn("warning: " + one_line(problem));
  if (o.json) print_json(answer_json(parts, answer, bytes), true);
}

}  // namespace attnscope
