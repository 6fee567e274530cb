#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "io/metrics/number_table.h"

namespace attnscope {

/// Makes a table line by line, whatever it is read from.
class TableBuilder {
 public:
  /// `file`: for messages.
  explicit TableBuilder(std::string file);

  const std::string& file() const { return file_; }
  /// A run that may have no lines. Throws Error(file) where there is one of the name.
  void add_run(const std::string& name);
  /// A head of a run, which is added where it is new. Throws Error(file) where the run has the head
  /// already.
  void begin_line(const std::string& run, const HeadName& head, const std::string& head_class);
  /// A number of it; nothing where the name is that of a count, a key or a standard error.
  void add(const std::string& metric, double value);
  /// Throws Error(file) where there is no head.
  NumberTable take();

 private:
  const std::string file_;
  NumberTable table_;
  std::map<std::string, size_t> runs_, metrics_;
  std::set<std::pair<size_t, HeadName>> heads_;
};

}  // namespace attnscope
