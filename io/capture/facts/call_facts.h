#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/json_types.h"

namespace attnscope {

/// The names by which capture files say what they are: the second where a call states facts that
/// the first does not have.
constexpr std::string_view kCaptureFormat = "attnscope-capture/1";
constexpr std::string_view kCaptureFormat2 = "attnscope-capture/2";
/// The format that metadata state where it is one of ours, known to this program or not; empty
/// where they state none, or somebody else's: most writers of safetensors put "pt" there.
std::string capture_format(const std::map<std::string, std::string>& metadata);
/// Throws Error(file) naming `file` where `format` is another.
void check_capture_format(const Json& format, const std::string& file);
/// True of a fact of a call that format 1 does not have.
bool is_format_2_fact(const std::string& fact);

/// The key in "metadata key attn.softcap", "capture.json key softcap", "tensor sinks": how what is
/// not understood is told.
std::string unknown_key(const std::string& what);

/// A number as options and facts write it; nothing where there is more or less than one.
std::optional<double> parse_number(const std::string& text);
/// Numbers parted by commas, "0.1,0.2"; nothing where there is anything else.
std::optional<std::vector<double>> parse_numbers(const std::string& text);

/// Where facts come from that --as told.
inline constexpr const char* kToldOrigin = "option --as";

/// One fact that --as NAME=VALUE tells of a call. Of what is no fact, or no text, NAME=none tells
/// that there is nothing of it: then `value` is null.
struct ToldFact {
  std::string fact;
  Json value;
};
/// The value is written as a file's metadata has it; `branch` is the fact branches, names parted by
/// commas. Throws Error(usage) where there is no such fact, where another option tells it, and
/// where the value is not of its type.
ToldFact parse_told_fact(const std::string& name, const std::string& text);
/// The names of which is told that there is nothing, ascending: what is beside q and k by them is
/// left out.
std::vector<std::string> left_out_names(const std::map<std::string, std::string>& told);
/// "--as layer", "--as branch": how messages name what told the fact.
std::string told_option(const std::string& fact);

/// Whose words metadata are: the capture format's, or anybody's, who has other names for facts
/// (value_names.h) and means other things by some of the format's.
enum class MetadataOf : uint8_t { capture, dump };

/// The facts of one call, by the names that the capture format gives them, each with where it came
/// from. Values are checked for their JSON type as they are recorded; one that cannot be is no
/// fact, and an error unless something else tells it: require_values(). Not thread-safe.
class CallFacts {
 public:
  struct Fact {
    Json value;
    std::string origin;  ///< "recorded", "option --grid", "default", "guessed from …"
    std::string source;  ///< file that recorded it; empty for the others
  };

  /// Keys with one of the names of `ignore` are left out.
  explicit CallFacts(std::string name, std::vector<std::string> ignore = {})
      : name_(std::move(name)), ignore_(std::move(ignore)) {}

  /// Facts of a safetensors file's __metadata__, or of what TensorFile::metadata() says otherwise:
  /// strings, lists and numbers as JSON or as Python's str() writes them.
  void add_metadata(const std::map<std::string, std::string>& metadata, const std::string& file,
                    MetadataOf of = MetadataOf::capture);
  /// Facts of one entry of capture.json's calls (without `file`). A fact that is known already must
  /// have the same value, else Error(file) names both.
  void add_entry(const Json& entry, const std::string& file,
                 const std::string& origin = "recorded");
  /// Facts of capture.json as a whole that hold for each of its calls: model and prompt. The same
  /// rule.
  void add_shared(const Json& root, const std::string& file);
  /// One fact from elsewhere; replaces what is there.
  void set(const std::string& fact, Json value, std::string origin);
  /// A tensor by the name of a fact that is a number, which cannot be one: `got`.
  void add_tensor(const std::string& key, const std::string& file, const std::string& got);
  /// Another source tells the fact, whatever was recorded.
  void replace_value(const std::string& fact) { bad_.erase(fact); }
  /// Throws Error(file) for a recorded value that cannot be one, and that nothing replaced.
  void require_values() const;
  /// True where `key` has a name that is left out; notes that name in ignored().
  bool ignores(const std::string& key);
  /// Names that were left out.
  const std::set<std::string>& ignored() const { return ignored_; }
  /// Forgets a fact that another one makes meaningless.
  void drop(const std::string& fact) { facts_.erase(fact); }

  bool has(const std::string& fact) const { return facts_.count(fact) != 0; }
  const Fact* find(const std::string& fact) const;
  std::optional<std::string> text(const std::string& fact) const;
  std::optional<int64_t> integer(const std::string& fact) const;
  std::optional<double> number(const std::string& fact) const;
  /// A number alone is a list of one. Empty where the fact is not known.
  std::vector<double> numbers(const std::string& fact) const;
  /// Empty where the fact is not known.
  std::vector<std::string> strings(const std::string& fact) const;

  const std::map<std::string, Fact>& all() const { return facts_; }
  /// Keys that are no fact of the format.
  const std::vector<std::string>& unknown_keys() const { return unknown_; }
  /// How messages name the call.
  const std::string& name() const { return name_; }

 private:
  struct BadValue {
    std::string file, key, what;
  };

  void add_text(const std::string& key, const std::string& fact, const std::string& text,
                const std::string& file, MetadataOf of);
  void add_value(const std::string& fact, const Json& value, const std::string& file,
                 const std::string& origin = "recorded");
  void record(const std::string& fact, Json value, const std::string& file,
              const std::string& origin = "recorded");

  std::string name_;
  std::vector<std::string> ignore_;
  std::set<std::string> ignored_;
  std::map<std::string, BadValue> bad_;  ///< by fact
  std::map<std::string, Fact> facts_;
  std::vector<std::string> unknown_;
};

}  // namespace attnscope
