#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// The names by which capture files say what they are: the second where a call states facts that
/// the first does not have.
constexpr std::string_view kCaptureFormat = "attnscope-capture/1";
constexpr std::string_view kCaptureFormat2 = "attnscope-capture/2";
/// The format that metadata state where it is one of ours, known to this program or not; empty
/// where they state none, or somebody else's: most writers of safetensors put "pt" there.
std::string capture_format(const std::map<std::string, std::string>& metadata);
/// Throws Error(file) naming `file` where `format` is another.
void check_capture_format(const nlohmann::json& format, const std::string& file);
/// Whether format 1 does not have this fact of a call.
bool is_format_2_fact(const std::string& fact);

/// A number as options and facts write it; nothing where there is more or less than one.
std::optional<double> parse_number(const std::string& text);

/// Where facts come from that --as told.
inline constexpr const char* kToldOrigin = "option --as";

/// What --as NAME=VALUE tells of a call.
struct ToldFact {
  std::string fact;
  nlohmann::json value;
};
/// The value is written as a file's metadata has it; `branch` is the fact branches, names parted by
/// commas. Throws Error(usage) where there is no such fact, where another option tells it, and
/// where the value is not of its type.
ToldFact parse_told_fact(const std::string& name, const std::string& text);
/// "--as layer", "--as branch": how messages name what told the fact.
std::string told_option(const std::string& fact);

/// The facts of one call, by the names that the capture format gives them, each with where it came
/// from. Values are checked for their JSON type as they are set. Not thread-safe.
class CallFacts {
 public:
  struct Fact {
    nlohmann::json value;
    std::string origin;  ///< "recorded", "option --grid", "default", "guessed from …"
    std::string source;  ///< file that recorded it; empty for the others
  };

  explicit CallFacts(std::string name) : name_(std::move(name)) {}

  /// Facts of a safetensors file's __metadata__: strings, lists and numbers as JSON.
  void add_metadata(const std::map<std::string, std::string>& metadata, const std::string& file);
  /// Facts of one entry of capture.json's calls (without `file`). A fact that is known already must
  /// have the same value, else Error(file) names both.
  void add_entry(const nlohmann::json& entry, const std::string& file,
                 const std::string& origin = "recorded");
  /// Facts of capture.json as a whole that hold for each of its calls: model and prompt. The same
  /// rule.
  void add_shared(const nlohmann::json& root, const std::string& file);
  /// One fact from elsewhere; replaces what is there.
  void set(const std::string& fact, nlohmann::json value, std::string origin);
  /// Forgets a fact that another one makes meaningless.
  void drop(const std::string& fact) { facts_.erase(fact); }

  bool has(const std::string& fact) const { return facts_.count(fact) != 0; }
  const Fact* find(const std::string& fact) const;
  std::optional<std::string> text(const std::string& fact) const;
  std::optional<int64_t> integer(const std::string& fact) const;
  std::optional<double> number(const std::string& fact) const;
  /// Empty where the fact is not known.
  std::vector<std::string> strings(const std::string& fact) const;

  const std::map<std::string, Fact>& all() const { return facts_; }
  /// Keys that are no fact of the format.
  const std::vector<std::string>& unknown_keys() const { return unknown_; }
  /// How messages name the call.
  const std::string& name() const { return name_; }

 private:
  void record(const std::string& fact, nlohmann::json value, const std::string& file,
              const std::string& origin = "recorded");

  std::string name_;
  std::map<std::string, Fact> facts_;
  std::vector<std::string> unknown_;
};

}  // namespace attnscope
