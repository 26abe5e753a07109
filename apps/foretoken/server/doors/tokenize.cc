#include "apps/foretoken/server/doors/tokenize.h"

#include <fmt/core.h>

#include "apps/foretoken/server/api/field_reader.h"
#include "apps/foretoken/server/api/request_fields.h"

namespace foretoken::server {

Result<TokenizeRequest> ParseTokenizeRequest(std::string_view body) {
  const auto read = [](FieldReader* fields, TokenizeRequest* request) {
    SkipFields(fields, {"model"});
    if (!fields->String("content", &request->content)) fields->Refuse("content", "a string");
    if (request->content.size() > kMaxTokenizeBytes) {
      fields->Refuse("content", fmt::format("of {} bytes at most; send a longer text in parts",
                                            kMaxTokenizeBytes));
    }
    fields->Bool("add_special", &request->add_special);
    fields->Bool("parse_special", &request->parse_special);
    fields->Bool("with_pieces", &request->with_pieces);
  };
  return ParseFields<TokenizeRequest>(body, nullptr, read);
}

Result<std::vector<Token>> ParseDetokenizeRequest(std::string_view body, int vocabulary) {
  const auto read = [vocabulary](FieldReader* fields, std::vector<Token>* tokens) {
    SkipFields(fields, {"model"});
    const Json* list = fields->Find("tokens");
    if (list == nullptr || !list->is_array()) return fields->Refuse("tokens", "an array of tokens");
    for (const Json& item : *list) {
      if (!item.is_number_unsigned() ||
          item.get<std::uint64_t>() >= static_cast<std::uint64_t>(vocabulary)) {
        return fields->Refuse("tokens", fmt::format("tokens from 0 to {}", vocabulary - 1));
      }
      tokens->push_back(item.get<Token>());
    }
  };
  return ParseFields<std::vector<Token>>(body, nullptr, read);
}

}  // namespace foretoken::server
