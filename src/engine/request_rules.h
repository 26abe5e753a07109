#pragma once

#include "base/result.h"
#include "foretoken/request.h"

namespace foretoken {

/// What a request must fit, besides its plan.
struct RequestLimits {
  int vocabulary = 0;
  int max_context = 0;
  bool has_tokenizer = false;
};

/// In one sentence why a request can never run, whatever its plan, if so.
Status ValidateRequest(const Request& request, const RequestLimits& limits);

}  // namespace foretoken
