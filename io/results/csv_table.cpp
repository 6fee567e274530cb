#include "io/results/csv_table.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// Takes lines from a text.
class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  bool at_end() const { return at_ == text_.size(); }
  int64_t line() const { return line_; }

  std::vector<std::string> next_line() {
    std::vector<std::string> fields;
    for (;;) {
      fields.push_back(at(0) == '"' ? quoted() : plain());
      if (at(0) == ',') {
        ++at_;
        continue;
      }
      if (at(0) == '\r' && at(1) == '\n') ++at_;
      if (!at_end() && text_[at_] != '\n') fail("a quoted field goes on behind its quote");
      if (!at_end()) ++at_;
      ++line_;
      return fields;
    }
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw file_error(file_, fmt::format("line {}", line_), what);
  }

 private:
  char at(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  std::string plain() {
    size_t end = at_;
    while (end < text_.size() && text_[end] != ',' && text_[end] != '\n' &&
           !(text_[end] == '\r' && end + 1 < text_.size() && text_[end + 1] == '\n')) {
      ++end;
    }
    std::string field(text_.substr(at_, end - at_));
    at_ = end;
    return field;
  }

  std::string quoted() {
    const int64_t begin = line_;
    std::string field;
    for (++at_; !at_end(); ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        if (at(0) != '"') return field;
      }
      if (text_[at_] == '\n') ++line_;
      field += text_[at_];
    }
    line_ = begin;
    fail("a quoted field does not end");
  }

  const std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

}  // namespace

CsvTable parse_csv(std::string_view text, const std::string& file) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.substr(0, kMark.size()) == kMark) text.remove_prefix(kMark.size());
  CsvParser parser(text, file);
  if (parser.at_end()) throw file_error(file, "", "is empty");
  CsvTable table;
  table.names = parser.next_line();
  std::set<std::string> taken;
  for (const std::string& name : table.names) {
    if (!taken.insert(name).second) {
      throw file_error(file, "line 1", "the column " + one_line(name) + " is there twice");
    }
  }
  while (!parser.at_end()) {
    const int64_t number = parser.line();
    std::vector<std::string> fields = parser.next_line();
    if (fields.size() != table.names.size()) {
      throw file_error(
          file, fmt::format("line {}", number),
          fmt::format("has {} fields, the first line {}", fields.size(), table.names.size()));
    }
    table.lines.push_back(std::move(fields));
    table.numbers.push_back(number);
  }
  return table;
}

}  // namespace attnscope
