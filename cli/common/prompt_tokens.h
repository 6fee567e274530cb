#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/capture/capture.h"

namespace attnscope {

/// The text tokens of one batch item of a call, counted within the text, that --text-token asks
/// for, each by its number or its string (in any case, without the marks that tokenizers put on
/// pieces of words); where it asks for none, all that are not padding. Throws Error(usage) for a
/// token that does not exist, and with the places where several read alike.
std::vector<int64_t> chosen_text_tokens(const std::vector<std::string>& asked,
                                        const CallEntry& call, int64_t batch);

/// "text token 2  "red"", or the number alone where no strings were recorded.
std::string text_token_label(const CallEntry& call, int64_t batch, int64_t token);

}  // namespace attnscope
