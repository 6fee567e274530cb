#include "core/heads/head_condition.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "core/base/name_patterns.h"
#include "core/base/nearest_word.h"
#include "core/base/split_text.h"

namespace attnscope {

/// Truth has three values, as in SQL: `null` where a comparison has nothing to compare with. These
/// may come of a condition: one, or all three where it asks for what is not measured yet.
struct Outcomes {
  bool yes = false, no = false, null = false;

  static Outcomes of(bool truth) { return {truth, !truth, false}; }
};
constexpr Outcomes kNull{false, false, true}, kAnyOutcome{true, true, true};

struct HeadCondition::Node {
  virtual ~Node() = default;
  virtual Outcomes of(const ConditionedHead& head) const = 0;
};

namespace {

using Node = HeadCondition::Node;
using NodePtr = std::shared_ptr<const Node>;

/// All of them hold or, of `any`, one of them.
struct Joined final : Node {
  Joined(std::vector<NodePtr> parts, bool is_any) : nodes(std::move(parts)), any(is_any) {}

  Outcomes of(const ConditionedHead& head) const override {
    // Of `any`, what is said here of `no` holds of `yes`.
    bool any_no = false, any_null = false, all_yes = true, none_no = true;
    for (const NodePtr& node : nodes) {
      Outcomes part = node->of(head);
      if (any) std::swap(part.yes, part.no);
      any_no |= part.no;
      any_null |= part.null;
      all_yes &= part.yes;
      none_no &= part.yes || part.null;
    }
    Outcomes whole{all_yes, any_no, any_null && none_no};
    if (any) std::swap(whole.yes, whole.no);
    return whole;
  }

  std::vector<NodePtr> nodes;
  bool any;
};

struct Not final : Node {
  explicit Not(NodePtr part) : node(std::move(part)) {}
  Outcomes of(const ConditionedHead& head) const override {
    Outcomes outcomes = node->of(head);
    std::swap(outcomes.yes, outcomes.no);
    return outcomes;
  }
  NodePtr node;
};

enum class Compare : uint8_t { equal, unequal, less, less_equal, greater, greater_equal };

struct NumberRange {
  double first = 0, last = 0;
};

/// Of a head's name: nothing where the number was not recorded.
using NameNumber = std::optional<double> (*)(const HeadName&);
using NameText = const std::string& (*)(const HeadName&);

struct NumberTest final : Node {
  Outcomes of(const ConditionedHead& head) const override {
    std::optional<double> value;
    if (const auto* const of_name = std::get_if<NameNumber>(&source)) {
      value = (*of_name)(head.name);
    } else if (head.number) {
      value = head.number(*std::get<const HeadField*>(source));
    } else {
      return kAnyOutcome;
    }
    if (!value || std::isnan(*value)) return kNull;
    return Outcomes::of(holds(*value));
  }

  bool holds(double value) const {
    switch (compare) {
      case Compare::less:
        return value < values.front().first;
      case Compare::less_equal:
        return value <= values.front().first;
      case Compare::greater:
        return value > values.front().first;
      case Compare::greater_equal:
        return value >= values.front().first;
      default:
        break;
    }
    const bool among = std::any_of(values.begin(), values.end(), [&](const NumberRange& range) {
      return value >= range.first && value <= range.last;
    });
    return among == (compare == Compare::equal);
  }

  std::variant<NameNumber, const HeadField*> source;
  Compare compare = Compare::equal;
  std::vector<NumberRange> values;
};

struct TextTest final : Node {
  Outcomes of(const ConditionedHead& head) const override {
    const std::string& text = source(head.name);
    if (text.empty() || (is_branch && head.name.place.unrecorded.branch)) return kNull;
    return Outcomes::of(matches_any(patterns, text) == equal);
  }

  NameText source = nullptr;
  bool is_branch = false, equal = true;
  std::vector<std::string> patterns;
};

struct ClassTest final : Node {
  Outcomes of(const ConditionedHead& head) const override {
    if (!head.head_class) return kAnyOutcome;
    const bool among = std::find(classes.begin(), classes.end(), *head.head_class) != classes.end();
    return Outcomes::of(among == equal);
  }

  bool equal = true;
  std::vector<HeadClass> classes;
};

struct NumberName {
  std::string_view name;
  NameNumber number;
};
constexpr NumberName kNumbers[] = {
    {"step",
     [](const HeadName& h) {
       return h.place.unrecorded.step ? std::optional<double>() : static_cast<double>(h.step);
     }},
    {"layer",
     [](const HeadName& h) {
       const bool none = h.layer == kNoLayer || h.place.unrecorded.layer;
       return none ? std::optional<double>() : static_cast<double>(h.layer);
     }},
    {"head", [](const HeadName& h) { return std::optional(static_cast<double>(h.head)); }},
    {"batch", [](const HeadName& h) { return std::optional(static_cast<double>(h.batch)); }},
    {"chunk", [](const HeadName& h) {
       return h.place.has_chunk() ? std::optional(static_cast<double>(h.place.chunk))
                                  : std::optional<double>();
     }}};

struct TextName {
  std::string_view name;
  NameText text;
};
constexpr TextName kTexts[] = {
    {"branch", [](const HeadName& h) -> const std::string& { return h.branch; }},
    {"kind", [](const HeadName& h) -> const std::string& { return h.kind; }},
    {"block", [](const HeadName& h) -> const std::string& { return h.place.block; }},
    {"slot", [](const HeadName& h) -> const std::string& { return h.place.slot; }}};

template <typename Names>
auto find_name(const Names& names, std::string_view name) {
  const auto found = std::find_if(std::begin(names), std::end(names),
                                  [&](const auto& each) { return each.name == name; });
  return found == std::end(names) ? nullptr : &*found;
}

/// Reads a condition by recursive descent.
class Reader {
 public:
  Reader(std::string_view text, std::string_view option) : option_(option) { cut(text); }

  NodePtr read() {
    if (tokens_.empty()) throw fail("\"\"", "expected a condition such as entropy<5");
    NodePtr node = read_any();
    if (at_ < tokens_.size()) throw fail(quoted(tokens_[at_]), "no bracket is open");
    return node;
  }
  bool asks_for_numbers() const { return asks_for_numbers_; }
  const std::vector<const HeadField*>& fields() const { return fields_; }

 private:
  static bool is_operator(char c) { return c == '<' || c == '>' || c == '=' || c == '!'; }
  static std::string quoted(const std::string& word) { return "\"" + one_line(word) + "\""; }
  Error fail(const std::string& word, const std::string& why) const {
    return usage_error(option_ + ": " + word + ": " + why);
  }

  /// Cuts the text into brackets, operators and words.
  void cut(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
      const char c = text[i];
      size_t end = i + 1;
      if (c == ' ' || c == '\t' || c == '\n') {
        i = end;
        continue;
      }
      if (is_operator(c)) {
        if (end < text.size() && text[end] == '=') ++end;
      } else if (c != '(' && c != ')') {
        end = std::min(text.find_first_of(" \t\n()<>=!", i), text.size());
      }
      tokens_.emplace_back(text.substr(i, end - i));
      i = end;
    }
  }

  bool is_next(std::string_view word) const { return at_ < tokens_.size() && tokens_[at_] == word; }
  bool take(std::string_view word) {
    if (!is_next(word)) return false;
    ++at_;
    return true;
  }

  NodePtr read_any() {
    std::vector<NodePtr> nodes{read_all()};
    while (take("or")) nodes.push_back(read_all());
    return nodes.size() == 1 ? nodes.front() : std::make_shared<Joined>(std::move(nodes), true);
  }
  NodePtr read_all() {
    std::vector<NodePtr> nodes{read_one()};
    while (at_ < tokens_.size() && !is_next("or") && !is_next(")")) {
      take("and");
      nodes.push_back(read_one());
    }
    return nodes.size() == 1 ? nodes.front() : std::make_shared<Joined>(std::move(nodes), false);
  }
  NodePtr read_one() {
    constexpr int kDeepest = 100;
    if (++depth_ > kDeepest) throw fail("\"(\"", "brackets and nots are nested too deeply");
    NodePtr node;
    if (take("not")) {
      node = std::make_shared<Not>(read_one());
    } else if (take("(")) {
      node = read_any();
      if (!take(")")) throw fail("\"(\"", "the bracket is not closed");
    } else {
      node = read_test();
    }
    --depth_;
    return node;
  }

  NodePtr read_test() {
    if (at_ == tokens_.size()) throw fail("its end", "a condition is missing");
    const std::string name = tokens_[at_++];
    if (at_ == tokens_.size() || !is_operator(tokens_[at_].front())) {
      if (const auto which = parse_head_class(name)) return class_test({*which}, true);
      throw fail(quoted(name), "expected NAME=VALUE, NAME<VALUE or a class of heads");
    }
    const std::string sign = tokens_[at_++];
    const std::optional<Compare> compare = parse_compare(sign);
    if (!compare) throw fail(quoted(name + sign), "expected =, !=, <, <=, > or >=");
    if (at_ == tokens_.size()) throw fail(quoted(name + sign), "a value is missing");
    const std::string value = tokens_[at_++];
    return test_of(name, *compare, value, name + sign + value);
  }

  static std::optional<Compare> parse_compare(std::string_view sign) {
    constexpr std::pair<std::string_view, Compare> kSigns[] = {
        {"=", Compare::equal},         {"==", Compare::equal},      {"!=", Compare::unequal},
        {"<", Compare::less},          {"<=", Compare::less_equal}, {">", Compare::greater},
        {">=", Compare::greater_equal}};
    for (const auto& [text, compare] : kSigns) {
      if (text == sign) return compare;
    }
    return std::nullopt;
  }

  NodePtr test_of(const std::string& name, Compare compare, const std::string& value,
                  const std::string& word) {
    const bool equality = compare == Compare::equal || compare == Compare::unequal;
    const auto* const text = find_name(kTexts, name);
    if ((text != nullptr || name == "class") && !equality) {
      throw fail(quoted(word), name + " is a name, which is = or !=");
    }
    if (name == "class") return class_test(classes_of(value, word), compare == Compare::equal);
    if (text != nullptr) {
      auto node = std::make_shared<TextTest>();
      node->source = text->text;
      node->is_branch = name == "branch";
      node->equal = compare == Compare::equal;
      node->patterns = split(value);
      return node;
    }
    auto node = std::make_shared<NumberTest>();
    node->compare = compare;
    if (const auto* const number = find_name(kNumbers, name)) {
      node->source = number->number;
    } else {
      fields_.push_back(field_of(name, word));
      node->source = fields_.back();
      asks_for_numbers_ = true;
    }
    node->values = numbers_of(value, word, equality);
    return node;
  }

  NodePtr class_test(std::vector<HeadClass> classes, bool equal) {
    auto node = std::make_shared<ClassTest>();
    node->classes = std::move(classes);
    node->equal = equal;
    asks_for_numbers_ = true;
    return node;
  }

  static std::vector<std::string> split(const std::string& text) {
    const std::vector<std::string_view> parts = split_text(text, ',');
    return {parts.begin(), parts.end()};
  }

  std::vector<HeadClass> classes_of(const std::string& value, const std::string& word) const {
    std::vector<HeadClass> classes;
    for (const std::string& part : split(value)) {
      const auto which = parse_head_class(part);
      if (!which) {
        throw fail(quoted(word),
                   "the classes are sink, text, temporal, spatial, local, global, undefined");
      }
      classes.push_back(*which);
    }
    return classes;
  }

  const HeadField* field_of(const std::string& name, const std::string& word) const {
    if (const HeadField* const field = find_head_field(name)) return field;
    std::vector<std::string> names{"class"};
    for (const NumberName& each : kNumbers) names.emplace_back(each.name);
    for (const TextName& each : kTexts) names.emplace_back(each.name);
    for (const HeadField& field : head_fields()) names.emplace_back(field.name);
    const std::string nearest = nearest_word(name, names);
    std::string list;
    for (const std::string& each : names) list += (list.empty() ? "" : ", ") + each;
    throw fail(quoted(word), "no such number" +
                                 (nearest.empty() ? "" : ", did you mean " + nearest + "?") + " (" +
                                 list + ")");
  }

  static std::optional<double> number_of_text(std::string_view text) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const bool whole = error == std::errc{} && stop == end && std::isfinite(number);
    return whole ? std::optional(number) : std::nullopt;
  }

  std::vector<NumberRange> numbers_of(const std::string& value, const std::string& word,
                                      bool several) const {
    std::vector<NumberRange> ranges;
    for (const std::string& part : several ? split(value) : std::vector<std::string>{value}) {
      // A sign or an exponent is no range: -1, 1e-3.
      const size_t dash = several ? part.find('-', 1) : std::string::npos;
      auto first = number_of_text(part);
      auto last = first;
      if (!first && dash != std::string::npos) {
        first = number_of_text(std::string_view(part).substr(0, dash));
        last = number_of_text(std::string_view(part).substr(dash + 1));
      }
      if (!first || !last || *last < *first) throw fail(quoted(word), "expected a number");
      ranges.push_back({*first, *last});
    }
    return ranges;
  }

  const std::string option_;
  std::vector<std::string> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  bool asks_for_numbers_ = false;
  std::vector<const HeadField*> fields_;
};

Outcomes outcomes_of(const Node* root, const ConditionedHead& head) {
  return root == nullptr ? Outcomes::of(true) : root->of(head);
}

}  // namespace

HeadCondition HeadCondition::parse(std::string_view text, std::string_view option) {
  Reader reader(text, option);
  HeadCondition condition;
  condition.root_ = reader.read();
  condition.asks_for_numbers_ = reader.asks_for_numbers();
  condition.fields_ = reader.fields();
  return condition;
}

std::optional<bool> HeadCondition::truth(const ConditionedHead& head) const {
  const Outcomes outcomes = outcomes_of(root_.get(), head);
  if (outcomes.yes == outcomes.no || outcomes.null) return std::nullopt;
  return outcomes.yes;
}

bool HeadCondition::may_hold(const HeadName& name) const {
  return outcomes_of(root_.get(), {name}).yes;
}

}  // namespace attnscope
