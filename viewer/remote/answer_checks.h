#pragma once

#include "viewer/remote/messages.h"

namespace attnscope {

/// Throws Error(file) where the answer is not one to what was asked: arrays of other lengths than
/// the map has. `call` is that of the head that was asked about.
void check_answer(const RemoteItem& item, const MapSource& call);
/// The call that is asked about; 0 of pictures.
int64_t call_of_ask(const Ask& ask);
/// Bytes that an answer holds.
int64_t answer_bytes(const Answer& answer);

}  // namespace attnscope
