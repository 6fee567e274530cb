#include "web/figure/head/figure_choice.h"

namespace attnscope {

std::string FigureChoice::option(const std::string& name, const std::string& value) const {
  if (!in_python) return "--" + name + " " + value;
  const bool is_text = value.find(':') != std::string::npos;
  return name + "=" + (is_text ? "\"" + value + "\"" : value);
}

}  // namespace attnscope
