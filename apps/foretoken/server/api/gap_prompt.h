#pragma once

#include <vector>

#include "apps/foretoken/server/api/api_request.h"
#include "foretoken/fill_marks.h"
#include "foretoken/tokenizer.h"

namespace foretoken::server {

/// The prompt that asks for what fills a gap: the other files, what stands before the gap and
/// behind it, each behind its mark. `marks` are complete. Files that would make it longer than
/// `most` tokens are left out, the first ones rather than the last.
std::vector<Token> GapPrompt(const ApiGap& gap, const Tokenizer& tokenizer, const FillMarks& marks,
                             int most);

/// The tokens that end what fills a gap, besides those that end any text.
std::vector<Token> GapEnds(const FillMarks& marks);

}  // namespace foretoken::server
