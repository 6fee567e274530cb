#include "cli/report/report_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "cli/common/shell_words.h"
#include "core/reduce/head_fields.h"
#include "io/pictures/class_colours.h"

namespace attnscope {
namespace {

/// What the heads of a page differ in, beyond layer and head.
struct NameParts {
  bool side = false, step = false, branch = false, batch = false, slot = false, kind = false,
       chunk = false;
};

NameParts differing_parts(std::span<const ReportHead> heads) {
  NameParts parts;
  for (const ReportHead& head : heads) {
    const HeadName &a = heads.front().name, &b = head.name;
    parts.side |= head.side != heads.front().side;
    parts.step |= a.step != b.step;
    parts.branch |= a.branch != b.branch || a.place.forward != b.place.forward;
    parts.batch |= a.batch != b.batch;
    parts.slot |= a.place.slot != b.place.slot;
    parts.kind |= a.kind != b.kind;
    parts.chunk |= a.place.chunk != b.place.chunk;
  }
  // A slot's name tells its kind, and a branch mostly its batch item.
  parts.kind &= !parts.slot;
  return parts;
}

std::string short_name(const ReportHead& head, const NameParts& parts) {
  const HeadName& name = head.name;
  std::string text;
  if (parts.side) text += head.side == 0 ? "A " : "B ";
  if (parts.step) text += fmt::format("S{} ", name.step);
  if (name.layer != kNoLayer && !name.place.unrecorded.layer) {
    text += fmt::format("L{} ", name.layer);
  } else if (!name.place.block.empty()) {
    text += name.place.block + " ";
  }
  if (parts.slot && !name.place.slot.empty()) text += name.place.slot + " ";
  if (parts.kind) text += name.kind + " ";
  if (parts.branch) text += name.branch + " ";
  if (parts.chunk) text += fmt::format("chunk {} ", name.place.chunk);
  if (parts.batch) text += fmt::format("b{} ", name.batch);
  return text + fmt::format("H{}", name.head);
}

OrderedJson number_or_null(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson();
}

OrderedJson text_or_null(const std::string& text) {
  return text.empty() ? OrderedJson() : OrderedJson(text);
}

/// A number in two to four words: what a reader looks for it under.
std::string label_of(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kLabels{
      {{"entropy", "entropy (nats)"},
       {"max_weight", "largest weight"},
       {"max_weight_peak", "peak weight"},
       {"max_logit", "largest logit"},
       {"text_mass", "mass on text"},
       {"padding_mass", "mass on padding"},
       {"video_mass", "mass on video"},
       {"same_frame_mass", "mass on the own frame"},
       {"same_position_mass", "mass on the own place"},
       {"local_mass", "mass nearby"},
       {"sink_mass", "mass on the heaviest key"}}};
  for (const auto& [of, label] : kLabels) {
    if (of == name) return std::string(label);
  }
  std::string label = name;
  std::replace(label.begin(), label.end(), '_', ' ');
  return name.starts_with("keys_for_") ? label + " %" : label;
}

OrderedJson number_facts(const ReportColumn& column, const std::string& command) {
  const HeadField* const field = find_head_field(column.name);
  OrderedJson json{{"name", column.name}};
  json["label"] = field != nullptr ? label_of(column.name) : column.name;
  json["heading"] =
      field != nullptr && !field->heading.empty() ? std::string(field->heading) : column.name;
  json["decimals"] = field != nullptr && !field->heading.empty() ? field->decimals : 4;
  json["text"] = field != nullptr ? std::string(field->long_name) : column.name;
  if (!command.empty()) json["command"] = command;
  return json;
}

OrderedJson classes_facts() {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kClasses{
      {{"sink", "one key draws at least 10 % of all mass"},
       {"text", "at least 25 % of the mass lies on the text"},
       {"temporal",
        "it looks at its own place in the other frames: at least 15 % of the mass, and more times "
        "the uniform share than its own frame has"},
       {"spatial", "at least 40 % of the mass lies in the query's own frame"},
       {"local", "at least 40 % of the mass lies next to the query in space and time"},
       {"global", "none of the others: mass is spread"},
       {"undefined", "the score is not normalised, so that shares of mass mean nothing"}}};
  OrderedJson list = OrderedJson::array();
  for (const auto& [name, text] : kClasses) {
    const Rgb colour = class_colour(*parse_head_class(name));
    list.push_back({{"name", name}, {"text", text}, {"colour", {colour.r, colour.g, colour.b}}});
  }
  return list;
}

OrderedJson heads_facts(std::span<const ReportHead> heads) {
  OrderedJson json;
  for (const char* name :
       {"step", "layer", "branch", "kind", "block", "slot", "batch", "head", "class", "names"}) {
    json[name] = OrderedJson::array();
  }
  bool sides = false;
  for (const ReportHead& head : heads) {
    const HeadName& name = head.name;
    const Unrecorded& unrecorded = name.place.unrecorded;
    const bool no_layer = unrecorded.layer || name.layer == kNoLayer;
    json["step"].push_back(unrecorded.step ? OrderedJson() : OrderedJson(name.step));
    json["layer"].push_back(no_layer ? OrderedJson() : OrderedJson(name.layer));
    json["branch"].push_back(unrecorded.branch ? OrderedJson() : OrderedJson(name.branch));
    json["kind"].push_back(name.kind);
    json["block"].push_back(text_or_null(name.place.block));
    json["slot"].push_back(text_or_null(name.place.slot));
    json["batch"].push_back(name.batch);
    json["head"].push_back(name.head);
    json["class"].push_back(text_or_null(head.head_class));
    sides |= head.side != 0;
  }
  json["names"] = short_head_names(heads);
  if (sides) {
    for (const ReportHead& head : heads) json["side"].push_back(head.side);
  }
  return json;
}

}  // namespace

std::vector<std::string> short_head_names(std::span<const ReportHead> heads) {
  std::vector<std::string> names;
  if (heads.empty()) return names;
  const NameParts parts = differing_parts(heads);
  for (const ReportHead& head : heads) names.push_back(short_name(head, parts));
  return names;
}

std::vector<ReportColumn> columns_of(std::span<const HeadRecord> records) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<ReportColumn> columns;
  for (const HeadField& field : head_fields()) {
    ReportColumn column{std::string(field.name), {}, {}};
    bool any = false, errors = false;
    for (const HeadRecord& record : records) {
      const auto value = number_of(record.metrics, field);
      const auto error = standard_error_of(record.metrics, field);
      any |= value.has_value();
      errors |= error.has_value();
      column.values.push_back(value.value_or(kNone));
      column.errors.push_back(error.value_or(kNone));
    }
    if (!errors) column.errors.clear();
    if (any) columns.push_back(std::move(column));
  }
  return columns;
}

void add_heads(OrderedJson& facts, std::span<const ReportHead> heads,
               std::span<const ReportColumn> columns, const std::string& command) {
  facts["numbers"] = OrderedJson::array();
  for (const ReportColumn& column : columns) {
    facts["numbers"].push_back(number_facts(column, command));
  }
  facts["classes"] = classes_facts();
  OrderedJson json = heads_facts(heads);
  json["values"] = OrderedJson::object();
  json["errors"] = OrderedJson::object();
  for (const ReportColumn& column : columns) {
    OrderedJson& values = json["values"][column.name] = OrderedJson::array();
    for (const double value : column.values) values.push_back(number_or_null(value));
    if (column.errors.empty()) continue;
    OrderedJson& errors = json["errors"][column.name] = OrderedJson::array();
    for (const double error : column.errors) errors.push_back(number_or_null(error));
  }
  facts["heads"] = std::move(json);
}

std::string selection_words(const SelectionOptions& o) {
  std::string text;
  const auto add = [&](const char* option, const std::string& value) {
    text += fmt::format(" {} {}", option, shell_word(value));
  };
  for (const auto& [option, value] :
       std::array<std::pair<const char*, const std::string*>, 5>{{{"--steps", &o.steps},
                                                                  {"--layers", &o.layers},
                                                                  {"--heads", &o.heads},
                                                                  {"--batch", &o.batch},
                                                                  {"--chunks", &o.chunks}}}) {
    if (*value != "all") add(option, *value);
  }
  for (const auto& [option, values] :
       std::array<std::pair<const char*, const std::vector<std::string>*>, 5>{
           {{"--branch", &o.branches},
            {"--kind", &o.kinds},
            {"--blocks", &o.blocks},
            {"--slots", &o.slots},
            {"--pick", &o.pick}}}) {
    for (const std::string& value : *values) add(option, value);
  }
  if (!o.from.empty()) add("--from", file_name(o.from));
  if (o.where) add("--where", *o.where);
  return text;
}

std::string head_options(const HeadName& name) {
  const ModelPlace& place = name.place;
  std::string text;
  if (!place.unrecorded.step) text += fmt::format(" --steps {}", name.step);
  if (name.layer != kNoLayer && !place.unrecorded.layer) {
    text += fmt::format(" --layers {}", name.layer);
  } else if (!place.block.empty()) {
    text += " --blocks " + shell_word(place.block);
  }
  if (!place.slot.empty()) text += " --slots " + shell_word(place.slot);
  if (!place.unrecorded.branch) text += " --branch " + shell_word(name.branch);
  if (place.has_chunk()) text += fmt::format(" --chunks {}", place.chunk);
  return text + fmt::format(" --batch {} --heads {}", name.batch, name.head);
}

std::string without_folders(std::string text, const std::filesystem::path& path) {
  std::error_code none;
  for (const std::filesystem::path& form : {path, std::filesystem::absolute(path, none),
                                            std::filesystem::weakly_canonical(path, none)}) {
    std::filesystem::path whole = form;
    if (!whole.has_filename()) whole = whole.parent_path();
    const std::string folder = whole.parent_path().string() + "/";
    if (whole.parent_path().empty()) continue;
    for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at)) {
      text.erase(at, folder.size());
    }
  }
  return text;
}

}  // namespace attnscope
