#pragma once

#include <string>
#include <vector>

namespace attnscope {

/// Names of what a call can be told to be, each from the table by which it is read:
/// parse_kind(), parse_score(), TokenOrder::parse() (of the orders of axes one for all).
std::vector<std::string> kind_names();
std::vector<std::string> score_names();
std::vector<std::string> token_order_names();

}  // namespace attnscope
