#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/foretoken/server/api/field_reader.h"
#include "apps/foretoken/server/api/output_format.h"
#include "base/numbers/integers.h"
#include "base/result.h"
#include "foretoken/chat.h"
#include "foretoken/chat_format.h"
#include "foretoken/request.h"
#include "foretoken/sampling.h"
#include "foretoken/speculation.h"

namespace foretoken::server {

inline constexpr int kMaxChoices = 128;  ///< Prompts times `n` of one request.
inline constexpr int kMaxTexts = 2048;   ///< Texts of one request for embeddings, as OpenAI has it.

enum class ApiKind { kChat, kCompletion };

/// What a request says about the server's datastore.
struct DatastoreWish {
  std::string tenant;  ///< A namespace; empty: the server's default.
  bool learn = true;   ///< False: the output stays out of it.
  bool given = false;  ///< The request has the field at all.
};

/// The adapter that a request asks for by its field `lora`.
struct AdapterWish {
  bool given = false;          ///< The request has the field at all: if with nothing, for none.
  std::string name;            ///< The adapter's name; or else `index` is given.
  int index = -1;              ///< The adapter's place; neither: none.
  std::optional<float> scale;  ///< None: the adapter's own.
};

/// A tool that its client knows by another shape than that of the function which a model is told
/// of.
struct ToolShape {
  std::string name;     ///< As the client calls it.
  std::string space;    ///< The namespace that it is in; empty: none.
  bool custom = false;  ///< It takes a text: the function's one argument, `input`.
};

/// What a request is taken to say where it says nothing.
struct ApiDefaults {
  SamplingParams sampling;
  std::string template_variables;  ///< Variables of the chat template, a JSON object; empty: none.
  bool parts_reasoning = true;     ///< What a model thinks is apart from what it says.
  ReasoningBudget budget;          ///< How much chats may think.
  bool strict_fields = false;      ///< Fields that nobody knows are refused, not noted.
  /// The part of an earlier answer to the client that has this id, as JSON; null where none is
  /// kept. Empty where nothing is.
  std::function<std::shared_ptr<const std::string>(const std::string& id)> kept_item = {};
};

/// What a request says of responses that are kept.
struct KeepWish {
  bool store = false;    ///< Its own is to be kept.
  std::string previous;  ///< The id of the one that it goes on with; empty: none.
  /// The chat's first turn: instructions before it are for this request alone.
  std::size_t first_turn = 0;
};

/// A wish for the embeddings of prompts in place of generations.
struct EmbeddingWish {
  Pooling pooling = Pooling::kMean;
  bool base64 = false;  ///< Little-endian float32 in base64 instead of an array of numbers.
  std::optional<int> dimensions;  ///< How many numbers are expected; none: any number.
};

/// A wish for how well each of some documents answers a query, in place of generations. A model
/// says yes or no, which the reply makes scores of.
struct RankWish {
  std::string instruction;  ///< What makes a document a good one.
  std::string query;
  std::vector<std::string> documents;  ///< At least one.
  std::optional<int> most;             ///< The best so many are wanted; none: all.
  bool return_documents = false;       ///< The answer has the documents' texts.
  /// The answer has the form of the text-embeddings-inference API.
  bool plain_list = false;
};

/// A gap in a text that a model is to fill.
struct ApiGap {
  struct File {
    std::string name;
    std::string text;
  };
  std::string before;
  std::string behind;
  std::vector<File> files = {};  ///< Others, that what fills it may have to do with.
};

/// A prompt as text, as tokens, or as a gap in a text.
using ApiPrompt = std::variant<std::string, std::vector<Token>, ApiGap>;

/// One request for a generation or for embeddings, whatever door it came through, checked as far as
/// it can be without a model.
struct ApiRequest {
  ApiKind kind = ApiKind::kChat;
  std::string model;               ///< As asked for; empty: whichever is served.
  ChatInput chat;                  ///< kChat; without the time.
  std::vector<ApiPrompt> prompts;  ///< kCompletion; at least one.
  SamplingParams sampling;
  bool seeded = false;  ///< `sampling.seed` was given.
  OutputFormat format;
  std::vector<ChatTool> tools;  ///< kChat: functions that may be called.
  /// The tools of another shape, by the function's name.
  std::map<std::string, ToolShape, std::less<>> shapes;
  bool must_call = false;       ///< One of the tools must be called.
  bool one_call = false;        ///< One tool may be called at most.
  bool old_calls = false;       ///< The reply has calls as `function_call`, OpenAI's old form.
  bool parts_reasoning = true;  ///< kChat: thoughts are apart from what is said.
  ReasoningBudget budget;       ///< How long thoughts may be.
  std::string prediction;       ///< kChat: what the answer may turn out to be.
  StopRules stop;               ///< `max_tokens` is 0 where as much as the context holds is wanted.
  int n = 1;                    ///< Choices per prompt.
  bool echo = false;            ///< kCompletion: the reply has the prompts before the texts.
  bool prompt_only = false;     ///< kCompletion: the reply has the prompts and nothing behind them.
  std::optional<EmbeddingWish> embedding;  ///< kCompletion, with `prompt_only`.
  /// kCompletion. `prompts` are RankPrompt of each document, and then all of them again: first the
  /// model is made to say yes, then no.
  std::optional<RankWish> rank;
  bool parse_special = false;  ///< kCompletion: special tokens written out in a prompt count.
  bool stream = false;
  bool include_usage = false;
  bool trace = false;                      ///< `speculation_trace`
  bool receipt = false;                    ///< Each choice ends with a receipt.
  bool return_tokens = false;              ///< The reply has the tokens beside the text.
  bool return_prompts = false;             ///< kCompletion: it has the prompts beside the texts.
  std::optional<PlanOptions> speculation;  ///< What it leaves open is the server's default.
  DatastoreWish datastore;
  AdapterWish adapter;
  KeepWish keep;                     ///< kChat
  int slot = -1;                     ///< Which of llama.cpp's slots has the text; -1: any.
  Json repeated;                     ///< Fields that the reply says again.
  std::vector<std::string> ignored;  ///< Fields that were sent and mean nothing here.

  /// The chat as it is at this moment.
  ChatInput ChatNow() const {
    ChatInput now = chat;
    now.now = LocalTime();
    return now;
  }
  /// Whether there may be thousands of prompts, which go to the engine bit by bit.
  bool in_bits() const { return embedding.has_value() || rank.has_value(); }
  /// Whether the output has to match a grammar, or may have to.
  bool constrained() const { return !format.grammar.empty() || !tools.empty(); }
  /// Whether the log-probabilities of prompts are wanted.
  bool scores_prompts() const { return echo && sampling.top_logprobs >= 0; }
  int choices() const { return n * (kind == ApiKind::kChat ? 1 : Int(prompts.size())); }
};

}  // namespace foretoken::server
