#include "apps/foretoken/server/doors/doors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "apps/foretoken/server/api/request_fields.h"

namespace foretoken::server {
namespace {

constexpr std::string_view kBefore =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n";
constexpr std::string_view kBehind = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
constexpr std::string_view kUsualInstruction =
    "Given a web search query, retrieve relevant passages that answer the query";

// What stands between these of a document.
std::string RankPrompt(const RankWish& wish, const std::string& document) {
  return fmt::format("<Instruct>: {}\n<Query>: {}\n<Document>: {}", wish.instruction, wish.query,
                     document);
}

// A document is a string, or an object with its `text`.
void ReadDocuments(FieldReader* fields, std::string_view name, RankWish* wish) {
  const Json* documents = fields->Find(name);
  constexpr std::size_t kMost = kMaxTexts / 2;
  if (documents == nullptr || !documents->is_array() || documents->empty() ||
      documents->size() > kMost) {
    return fields->Refuse(name, fmt::format("an array of 1 to {} strings", kMost));
  }
  for (std::size_t i = 0; i < documents->size() && fields->ok(); ++i) {
    const Json& document = (*documents)[i];
    std::string& text = wish->documents.emplace_back();
    if (document.is_string()) {
      text = document.get<std::string>();
      continue;
    }
    FieldReader inner = fields->Inner(fmt::format("{}[{}]", name, i), document);
    if (!inner.String("text", &text)) inner.Refuse("text", "a string");
    inner.Close();
  }
}

Result<ApiRequest> ReadRerank(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [](FieldReader* fields, ApiRequest* request) {
    RankWish& wish = request->rank.emplace();
    if (!fields->String("query", &wish.query) || wish.query.empty()) {
      fields->Refuse("query", "a string that is not empty");
    }
    wish.instruction = kUsualInstruction;
    fields->String("instruction", &wish.instruction);
    wish.plain_list = fields->Has("texts");
    ReadDocuments(fields, wish.plain_list ? "texts" : "documents", &wish);
    int most = 0;
    if (fields->Int("top_n", 1, kMaxTexts, &most)) wish.most = most;
    fields->Bool(wish.plain_list ? "return_text" : "return_documents", &wish.return_documents);
    bool raw = false;
    if (fields->Bool("raw_scores", &raw) && raw) {
      fields->Refuse("raw_scores", "false: scores are from 0 to 1");
    }
    ReadSpeculation(fields, request);
    SkipFields(fields,
               {"user", "truncate", "max_tokens_per_doc", "max_chunks_per_doc", "priority"});
    request->kind = ApiKind::kCompletion;
    request->sampling = {.temperature = 0};
    request->sampling.top_logprobs = 0;
    request->stop.max_tokens = 1;
    request->stop.ignore_eos = true;
    for (int time = 0; time < 2; ++time) {
      for (const std::string& document : wish.documents) {
        request->prompts.emplace_back(RankPrompt(wish, document));
      }
    }
  });
}

class RankWriter final : public ReplyWriter {
 public:
  RankWriter(const ApiRequest& request, ReplyHead head)
      : wish_(*request.rank), head_(std::move(head)), said_(request.prompts.size()) {}

  static std::unique_ptr<ReplyWriter> Make(const ApiRequest& request, ReplyHead head,
                                           const Tokenizer* /*tokenizer*/) {
    return std::make_unique<RankWriter>(request, std::move(head));
  }

  void Start(std::span<const std::string>, std::string*) override {}

  void Add(Burst burst, std::string*) override {
    const std::size_t choice = burst.choice;
    if (!burst.tokens.empty()) said_[choice] = burst.tokens.front().logprobs.front().logprob;
    const bool asked_first = choice < wish_.documents.size();
    if (burst.ending.has_value() && asked_first) tokens_ += burst.ending->stats.prompt_tokens;
  }

  void End(std::string* out) override {
    const std::size_t count = wish_.documents.size();
    std::vector<double> scores;
    for (std::size_t i = 0; i < count; ++i) {
      scores.push_back(1 / (1 + std::exp(double{said_[count + i]} - double{said_[i]})));
    }
    std::vector<std::size_t> best(count);
    std::iota(best.begin(), best.end(), std::size_t{0});
    std::ranges::stable_sort(best, std::ranges::greater(),
                             [&scores](std::size_t i) { return scores[i]; });
    if (wish_.most && std::cmp_less(*wish_.most, count)) {
      best.resize(*wish_.most);
    }
    Json results = Json::array();
    for (const std::size_t i : best) {
      Json entry = {{"index", i}};
      entry[wish_.plain_list ? "score" : "relevance_score"] = scores[i];
      if (wish_.return_documents && wish_.plain_list) entry["text"] = wish_.documents[i];
      if (wish_.return_documents && !wish_.plain_list) {
        entry["document"] = {{"text", wish_.documents[i]}};
      }
      results.push_back(std::move(entry));
    }
    if (wish_.plain_list) {
      *out += Dump(results);
      return;
    }
    *out += Dump({{"model", head_.model},
                  {"object", "list"},
                  {"usage", {{"prompt_tokens", tokens_}, {"total_tokens", tokens_}}},
                  {"results", std::move(results)}});
  }

  // Nothing streams.
  void Fail(const ApiError&, std::string*) const override {}

 private:
  const RankWish& wish_;
  const ReplyHead head_;
  std::vector<float> said_;  // The log-probability of what each choice was made to say.
  std::int64_t tokens_ = 0;  // Each document counts once.
};

}  // namespace

const Door& RerankDoor() {
  static const Door kDoor = {.path = "/v1/rerank",
                             .id_prefix = "",
                             .prompt = "documents",
                             .limit = "documents",
                             .read = ReadRerank,
                             .writer = RankWriter::Make,
                             .error = LlamaCppDoor().error};
  return kDoor;
}

std::vector<Token> RankTokens(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<Token> tokens = tokenizer.Encode(kBefore, /*add_bos=*/true, /*parse_special=*/true);
  std::ranges::copy(tokenizer.Encode(text, false, false), std::back_inserter(tokens));
  std::ranges::copy(tokenizer.Encode(kBehind, false, true), std::back_inserter(tokens));
  return tokens;
}

std::optional<YesAndNo> FindYesAndNo(const Tokenizer& tokenizer) {
  const std::vector<Token> yes = tokenizer.Encode("yes", false, false);
  const std::vector<Token> no = tokenizer.Encode("no", false, false);
  if (yes.size() != 1 || no.size() != 1) return std::nullopt;
  return YesAndNo{yes.front(), no.front()};
}

}  // namespace foretoken::server
