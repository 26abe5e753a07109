#include "apps/foretoken/server/doors/doors.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "apps/foretoken/server/api/request_fields.h"
#include "apps/foretoken/server/api/tool_fields.h"
#include "base/text/utf8.h"
#include "foretoken/json_schema.h"
#include "json/json.h"

namespace foretoken::server {
namespace {

// Makes turns of the items of an input, or of an output. This server's outputs can be sent back as
// they are, or by their ids. Of another server's, what its own tools did is left out.
class ItemReader {
 public:
  // Adds to `messages`. `kept_item` as in ApiDefaults.
  ItemReader(std::vector<ChatMessage>* messages, decltype(ApiDefaults::kept_item) kept_item)
      : messages_(messages), kept_item_(std::move(kept_item)) {}

  void Read(FieldReader* item) {
    std::string type = "message";
    item->String("type", &type);
    if (type == "item_reference") return ReadReference(item);
    SkipFields(item, {"id", "status", "phase"});
    if (type == "message") {
      ReadMessage(item);
    } else if (type == "function_call" || type == "custom_tool_call") {
      ReadCall(item, type == "custom_tool_call");
    } else if (type == "function_call_output" || type == "custom_tool_call_output") {
      ReadCallOutput(item);
    } else if (type == "reasoning") {
      ReadThoughts(item);
    } else {
      return item->LeaveOut("type", type);
    }
    item->Close();
  }

  // After the last item. The calls of a turn are put into it when all are known: it may have
  // thousands.
  void End() {
    if (calls_.empty()) return;
    ChatMessage& turn = (*messages_)[turn_ - 1];
    Json more = turn.more.empty() ? Json::object() : Json::Parse(turn.more);
    more["tool_calls"] = std::exchange(calls_, Json::array());
    turn.more = Dump(more);
  }

 private:
  // A call joins the turn of the assistant's that it follows; of a tool that takes a text, `input`
  // is its one argument.
  void ReadCall(FieldReader* item, bool custom) {
    std::string id;
    std::string name;
    std::string space;
    std::string arguments;
    item->String("call_id", &id);
    if (!item->String("name", &name)) item->Refuse("name", "a string");
    item->String("namespace", &space);
    const char* const field = custom ? "input" : "arguments";
    if (!item->String(field, &arguments)) item->Refuse(field, "a string");
    if (custom) arguments = Dump({{"input", arguments}});
    if (messages_->empty() || messages_->back().role != "assistant") {
      messages_->push_back({.role = "assistant", .content = {}});
    }
    if (turn_ != messages_->size()) End();
    turn_ = messages_->size();
    calls_.push_back(TemplateCall(id, FunctionName(space, name), arguments));
  }

  void ReadCallOutput(FieldReader* item) {
    std::string id;
    ChatMessage turn{.role = "tool", .content = {}};
    if (!item->String("call_id", &id)) item->Refuse("call_id", "a string");
    SkipFields(item, {"name"});
    if (!ReadToolResult(item, "output", kTextParts, &turn.content)) {
      item->Refuse("output", "a string");
    }
    turn.more = Dump({{"tool_call_id", id}});
    messages_->push_back(std::move(turn));
  }

  // What a model thought begins a turn of its own. Of another server's thoughts there may only be a
  // summary, and what that alone can read.
  void ReadThoughts(FieldReader* item) {
    constexpr std::string_view kTypes[] = {"reasoning_text", "summary_text"};
    std::string thoughts;
    std::string summary;
    ReadTextField(item, "content", kTypes, &thoughts);
    ReadTextField(item, "summary", kTypes, &summary);
    SkipFields(item, {"encrypted_content"});
    if (thoughts.empty()) thoughts = std::move(summary);
    if (thoughts.empty()) return;
    messages_->push_back({.role = "assistant",
                          .content = {},
                          .more = Dump({{"reasoning_content", std::move(thoughts)}})});
  }

  void ReadMessage(FieldReader* item) {
    ChatMessage turn;
    ReadTurn(item, {.types = kTextParts, .more = {}}, &turn);
    // The thoughts before it, if any, are of the same turn.
    const bool thought = !messages_->empty() && messages_->back().role == "assistant" &&
                         messages_->back().content.empty() && turn.role == "assistant";
    if (thought) {
      messages_->back().content = std::move(turn.content);
    } else {
      messages_->push_back(std::move(turn));
    }
  }

  // A part of an earlier answer, by its id. Each at most once, as OpenAI has it: a small body could
  // else become a prompt of any length.
  void ReadReference(FieldReader* item) {
    std::string id;
    if (!item->String("id", &id)) return item->Refuse("id", "a string");
    item->Close();
    if (!referred_.insert(id).second) {
      return item->Fail(
          "id", fmt::format("Duplicate item found with id '{}': an input may name an item once.",
                            Shortened(id)));
    }
    const auto kept = kept_item_ ? kept_item_(id) : nullptr;
    if (kept == nullptr) {
      return item->Fail("id",
                        fmt::format("Item with id '{}' not found. Items are kept unless 'store' is "
                                    "false, and only the latest ones; send the item itself.",
                                    Shortened(id)));
    }
    const Json json = Json::Parse(*kept);
    FieldReader referred = item->Inner("id", json);
    Read(&referred);
  }

  std::vector<ChatMessage>* messages_;
  decltype(ApiDefaults::kept_item) kept_item_;
  Json calls_ = Json::array();  // The calls of the latest turn that has any.
  std::size_t turn_ = 0;        // How many turns there were with it.
  std::set<std::string> referred_;
};

void ReadInput(FieldReader* body, const ApiDefaults& defaults, ApiRequest* request) {
  std::string text;
  if (body->String("instructions", &text)) {
    request->repeated["instructions"] = text;
    request->chat.messages.push_back({"system", std::move(text)});
  }
  request->keep.first_turn = request->chat.messages.size();
  const Json* input = body->Find("input");
  if (input == nullptr) return body->Refuse("input", "a string or an array of messages");
  if (input->is_string()) {
    request->chat.messages.push_back({"user", input->get<std::string>()});
  } else {
    ItemReader items(&request->chat.messages, defaults.kept_item);
    ForEachMessage(body, "input", [&](FieldReader* item, std::size_t) { items.Read(item); });
    items.End();
    NameToolAnswers(&request->chat.messages);
  }
}

// `text`: the output's format.
void ReadTextOptions(std::string_view body, FieldReader* fields, ApiRequest* request) {
  const Json* text = fields->Find("text");
  if (text == nullptr) return;
  FieldReader options = fields->Inner("text", *text);
  LeaveOutUnless(&options, "verbosity", {"medium"});
  if (const Json* format = options.Find("format"); format != nullptr) {
    FieldReader inner = options.InnerStrict("format", *format);
    std::string type;
    inner.String("type", &type);
    if (type != "text" && type != "json_object" && type != "json_schema") {
      inner.Refuse("type", "text, json_object or json_schema");
    } else if (type != "text" && !request->format.field.empty()) {
      options.Fail("format", fmt::format("'{}' and 'text.format' contradict; give one of them",
                                         request->format.field));
    }
    if (type == "json_object") {
      request->format = {.grammar = JsonObjectGrammar(), .field = "text.format"};
    } else if (type == "json_schema") {
      constexpr std::string_view kPath[] = {"text", "format", "schema"};
      ReadNamedSchema(body, kPath, &inner, &request->format);
    }
    inner.Close();
    request->repeated["format"] = *format;
  }
  options.Close();
}

// `include` says whether log-probabilities are wanted, `top_logprobs` how many others there are.
void ReadResponsesLogprobs(FieldReader* body, SamplingParams* sampling) {
  int top = 0;
  bool wanted = body->Int("top_logprobs", 0, kMaxTopLogprobs, &top) && top > 0;
  if (const Json* include = body->Find("include"); include != nullptr) {
    if (!include->is_array()) return body->Refuse("include", "an array of strings");
    for (const Json& item : *include) wanted = wanted || item == "message.output_text.logprobs";
  }
  sampling->top_logprobs = wanted ? top : -1;
}

// Responses are kept unless a request says otherwise, as OpenAI's are.
void ReadKeeping(FieldReader* body, KeepWish* keep) {
  keep->store = true;
  body->Bool("store", &keep->store);
  body->String("previous_response_id", &keep->previous);
}

// What asks for state that this server does not keep, or for what it does not do.
void RefuseUnserved(FieldReader* body) {
  MustBeEmpty(body, "conversation",
              "this server keeps no conversations; use 'previous_response_id', or send all of it "
              "in 'input'");
  MustBeEmpty(body, "prompt", "this server keeps no prompts; send its text in 'input'");
  MustBeEmpty(body, "background", "this server answers requests while they wait");
  if (const Json* truncation = body->Find("truncation");
      truncation != nullptr && *truncation != Json("disabled")) {
    body->Refuse("truncation", "disabled: this server leaves no message out");
  }
}

void ReadHarmlessResponses(FieldReader* body, Json* repeated) {
  bool flag = false;
  if (const Json* metadata = body->Find("metadata"); metadata != nullptr) {
    if (!metadata->is_object()) body->Refuse("metadata", "an object");
    (*repeated)["metadata"] = *metadata;
  }
  if (const Json* options = body->Find("stream_options"); options != nullptr) {
    FieldReader fields = body->Inner("stream_options", *options);
    fields.Bool("include_obfuscation", &flag);
    fields.Close();
  }
  LeaveOutUnless(body, "service_tier", {"auto", "default"});
  SkipFields(body, {"user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
                    "prompt_cache_options", "max_tool_calls", "client_metadata"});
}

// `reasoning`: how much is thought.
void ReadEffort(FieldReader* body, ApiRequest* request) {
  const Json* reasoning = body->Find("reasoning");
  if (reasoning == nullptr) return;
  FieldReader fields = body->Inner("reasoning", *reasoning);
  std::string effort;
  if (fields.String("effort", &effort)) SetReasoning(effort, request);
  SkipFields(&fields, {"summary", "generate_summary"});
  fields.Close();
}

Result<ApiRequest> ReadResponses(std::string_view body, const ApiDefaults& defaults) {
  return ReadBody(body, defaults, [&, body](FieldReader* fields, ApiRequest* request) {
    request->repeated = Json::object();
    ReadInput(fields, defaults, request);
    ReadFlatTools(body, fields, request);
    ReadEffort(fields, request);
    ReadReasoningBudget(fields, request);
    ReadTemplateVariables(fields, request);
    ReadMaxTokens(fields, "max_output_tokens", &request->stop.max_tokens);
    ReadSampling(fields, request);
    ReadResponsesLogprobs(fields, &request->sampling);
    ReadStopStrings(fields, "stop", &request->stop);
    ReadStopTokens(fields, &request->stop);
    ReadOutputFormat(body, fields, &request->format);
    ReadFormatsOfOthers(body, fields, &request->format);
    ReadTextOptions(body, fields, request);
    fields->Bool("stream", &request->stream);
    ReadSpeculation(fields, request);
    ReadKeeping(fields, &request->keep);
    RefuseUnserved(fields);
    ReadHarmlessResponses(fields, &request->repeated);
  });
}

}  // namespace

const Door& ResponsesDoor() {
  static constexpr Door kDoor = {.path = "/v1/responses",
                                 .id_prefix = "resp_",
                                 .prompt = "input",
                                 .limit = "max_output_tokens",
                                 .read = ReadResponses,
                                 .writer = ResponseItemsWriter,
                                 .error = OpenAiError};
  return kDoor;
}

std::vector<ChatMessage> TurnsOfOutput(const Json& output) {
  std::vector<ChatMessage> turns;
  std::vector<std::string> ignored;
  Status read;
  ItemReader items(&turns, nullptr);
  for (const Json& item : output) {
    FieldReader fields(item, "output", &read, &ignored);
    items.Read(&fields);
  }
  items.End();
  return turns;
}

}  // namespace foretoken::server
