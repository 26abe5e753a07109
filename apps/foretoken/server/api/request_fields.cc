#include "apps/foretoken/server/api/request_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/text/parse_number.h"
#include "core/speculation/plan_values.h"
#include "json/json_events.h"

namespace foretoken::server {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();
constexpr std::size_t kMaxStops = 128;

// Variables of the chat template; they go before those of the same name.
void AddVariables(const Json& variables, ApiRequest* request) {
  std::string* const present = &request->chat.variables;
  Json all = present->empty() ? Json::object() : Json::Parse(*present);
  all.update(variables);
  *present = all.dump();
}

bool IsTokenArray(const Json& json) {
  if (!json.is_array() || json.empty()) return false;
  for (const Json& item : json) {
    if (!item.is_number_integer()) return false;
  }
  return true;
}

bool ReadPrompt(const Json& json, std::vector<ApiPrompt>* prompts) {
  if (json.is_string()) {
    prompts->emplace_back(json.get<std::string>());
    return true;
  }
  if (!IsTokenArray(json)) return false;
  std::vector<Token> tokens;
  for (const Json& item : json) {
    // What no token can be stays so; the engine names it.
    const auto id = item.get<std::int64_t>();
    tokens.push_back(id < 0 || id > kMaxInt ? Token{-1} : static_cast<Token>(id));
  }
  prompts->emplace_back(std::move(tokens));
  return true;
}

void ReadLogitBias(FieldReader* body, std::vector<std::pair<Token, float>>* biases) {
  const Json* field = body->Find("logit_bias");
  if (field == nullptr) return;
  const char* const expected = "an object of token ids and numbers, as in {\"42\": -1.5}";
  if (!field->is_object()) return body->Refuse("logit_bias", expected);
  biases->clear();
  for (const auto& [name, value] : field->items()) {
    Token token = -1;
    constexpr double kLargest = 1e6;
    if (!ParseNumber(name, &token) || !value.is_number() ||
        !(std::abs(value.get<double>()) <= kLargest)) {
      return body->Refuse("logit_bias", expected);
    }
    biases->emplace_back(token, value.get<float>());
  }
}

bool ReadValue(const PlanField<Fanout>& field, FieldReader* fields, Fanout* fanout) {
  const Json* read = fields->Find(field.name);
  if (read == nullptr) return false;
  *fanout = {.rule = FanoutRule::kGiven, .counts = {}};
  const Json list = read->is_array() ? *read : Json::array({*read});
  bool good = !list.empty() && list.size() <= kMaxProposal + 1;
  for (const Json& item : list) {
    good = good && item.is_number_unsigned() && item.get<std::uint64_t>() <= kMaxFanout;
    if (good) fanout->counts.push_back(item.get<int>());
  }
  if (good) return true;
  fields->Refuse(field.name, fmt::format("an integer from 0 to {}, or an array of them for the "
                                         "outcomes k = 0, 1, ...",
                                         kMaxFanout));
  return true;
}

bool ReadValue(const PlanField<int>& field, FieldReader* fields, int* value) {
  return fields->Int(field.name, static_cast<int>(field.least), static_cast<int>(field.most),
                     value);
}

bool ReadValue(const PlanField<float>& field, FieldReader* fields, float* value) {
  return fields->Number(field.name, static_cast<float>(field.least), static_cast<float>(field.most),
                        value);
}

// What has a name.
template <typename Value>
bool ReadValue(const PlanField<Value>& field, FieldReader* fields, Value* value) {
  std::string name;
  if (!fields->String(field.name, &name)) return false;
  const Result<Value> named = ParseValue(field, name);
  if (named.ok()) *value = *named;
  if (!named.ok()) fields->Fail(field.name, named.error().message);
  return named.ok();
}

void ReadPlan(FieldReader* body, std::optional<PlanOptions>* wish) {
  const Json* field = body->Find("speculative");
  if (field == nullptr) return;
  PlanOptions plan;
  FieldReader fields = body->InnerStrict("speculative", *field);
  ForEachPlanField([&]<typename Value>(const PlanField<Value>& row) {
    Value value{};
    if (row.scope == PlanScope::kRequest && ReadValue(row, &fields, &value)) {
      plan.*row.member = std::move(value);
    }
  });
  bool off = false;
  if (fields.Bool("off", &off) && off) {
    if (plan.mode && *plan.mode != Mode::kAr) {
      fields.Fail("off", "'speculative.off' contradicts 'speculative.mode'; give one of them");
    }
    plan.mode = Mode::kAr;
  }
  fields.Close();
  if (!field->empty()) *wish = std::move(plan);
}

void ReadDatastore(FieldReader* body, DatastoreWish* wish) {
  const Json* field = body->Find("datastore");
  if (field == nullptr) return;
  wish->given = true;
  FieldReader fields = body->InnerStrict("datastore", *field);
  if (fields.String("namespace", &wish->tenant) && wish->tenant.empty()) {
    fields.Refuse("namespace", "a name, or absent");
  }
  fields.Bool("learn", &wish->learn);
  fields.Close();
}

// A name; an object with that or a place, and perhaps a scale; or as llama.cpp has it a list of
// such objects, of which one may have a scale that is not 0.
void ReadAdapter(FieldReader* body, AdapterWish* wish) {
  const Json* field = body->Find("lora");
  if (field == nullptr) return;
  wish->given = true;
  if (field->is_string()) {
    wish->name = field->get<std::string>();
    return;
  }
  const Json list = field->is_array() ? *field : Json::array({*field});
  for (std::size_t i = 0; i < list.size() && body->ok(); ++i) {
    const std::string place = field->is_array() ? fmt::format("lora[{}]", i) : "lora";
    FieldReader entry = body->InnerStrict(place, list[i]);
    AdapterWish own{.given = true};
    const bool named = entry.String("name", &own.name) && !own.name.empty();
    const bool placed = entry.Int("id", 0, kMaxInt, &own.index);
    float scale = 1;
    if (entry.Number("scale", -1e6F, 1e6F, &scale)) own.scale = scale;
    if (named == placed) entry.Refuse("id", "the place of an adapter, or 'name' its name");
    entry.Close();
    if (scale == 0) continue;
    if (!wish->name.empty() || wish->index >= 0) {
      return body->Fail("lora", "'lora' names two adapters, but a text is decoded with one");
    }
    *wish = std::move(own);
  }
}

}  // namespace

Result<ApiRequest> ReadBody(std::string_view body, const ApiDefaults& defaults,
                            const std::function<void(FieldReader*, ApiRequest*)>& read) {
  std::vector<std::string> unknown;
  const auto read_all = [&](FieldReader* fields, ApiRequest* request) {
    request->sampling = defaults.sampling;
    // 0: chats as much as the context holds, completions 16 as OpenAI does.
    request->stop.max_tokens = 0;
    request->chat.variables = defaults.template_variables;
    request->parts_reasoning = defaults.parts_reasoning;
    request->budget = defaults.budget;
    fields->String("model", &request->model);
    ReadAdapter(fields, &request->adapter);
    fields->Int("id_slot", -1, kMaxInt, &request->slot);
    read(fields, request);
  };
  FT_ASSIGN_OR_RETURN(ApiRequest request,
                      ParseFields<ApiRequest>(body, &unknown, read_all, defaults.strict_fields));
  request.ignored = std::move(unknown);
  return request;
}

namespace {

// Keeps nothing of a body but what its member "model" is, if that is a string: bodies are long.
class ModelName : public JsonEvents {
 public:
  std::string Take() { return std::move(name_); }

  bool Value(Json value) override {
    if (!is_next_) return true;
    is_next_ = false;
    name_ = value.is_string() ? std::move(value.text()) : std::string();
    return true;
  }
  bool Name(std::string name) override {
    is_next_ = depth_ == 1 && name == "model";
    return true;
  }
  bool BeginObject() override { return Open(); }
  bool BeginArray() override { return Open(); }
  bool EndObject() override { return Close(); }
  bool EndArray() override { return Close(); }

 private:
  bool Open() {
    if (is_next_) name_.clear();
    is_next_ = false;
    ++depth_;
    return true;
  }
  bool Close() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  bool is_next_ = false;  // What comes next is the model's.
  std::string name_;
};

}  // namespace

std::string ModelNamed(std::string_view body) {
  ModelName name;
  return ReadJsonEvents(body, &name) ? name.Take() : std::string();
}

void ForEachMessage(FieldReader* body, std::string_view name,
                    const std::function<void(FieldReader*, std::size_t)>& read) {
  const Json* field = body->Find(name);
  if (field == nullptr || !field->is_array() || field->empty()) {
    return body->Refuse(name, "an array of at least one {\"role\": ..., \"content\": ...}");
  }
  for (std::size_t i = 0; i < field->size() && body->ok(); ++i) {
    FieldReader message = body->Inner(fmt::format("{}[{}]", name, i), (*field)[i]);
    read(&message, i);
  }
}

void ReadTurn(FieldReader* message, const MessageFields& fields, ChatMessage* turn) {
  if (fields.more) fields.more(message, turn);
  if (!message->String("role", &turn->role)) message->Refuse("role", "a string");
  if (turn->role == "developer") turn->role = "system";
  if (fields.tools && turn->role == "function") turn->role = "tool";  // OpenAI's old name.
  const bool of_tool = fields.tools && turn->role == "tool";
  if (turn->role != "system" && turn->role != "user" && turn->role != "assistant" && !of_tool) {
    message->Refuse("role", fields.tools ? "system, developer, user, assistant or tool"
                                         : "system, developer, user or assistant");
  }
  const bool has_content = of_tool
                               ? ReadToolResult(message, "content", fields.types, &turn->content)
                               : ReadTextField(message, "content", fields.types, &turn->content);
  if (!has_content && turn->role != "assistant") message->Refuse("content", "a string");
}

void ReadMessages(FieldReader* body, std::string_view name, const MessageFields& fields,
                  std::vector<ChatMessage>* messages) {
  ForEachMessage(body, name, [&](FieldReader* message, std::size_t) {
    ReadTurn(message, fields, &messages->emplace_back());
    message->Close();
  });
}

bool HasCalls(const ChatMessage& turn) {
  return !turn.more.empty() && Json::Parse(turn.more).contains("tool_calls");
}

void ReadContinuation(FieldReader* body, std::string_view messages, ApiRequest* request) {
  bool goes_on = false;
  bool begins = false;
  const bool said = body->Bool("continue_final_message", &goes_on);
  const bool said_begins = body->Bool("add_generation_prompt", &begins);
  if (!body->ok()) return;
  if (goes_on && begins) {
    return body->Fail("add_generation_prompt",
                      "'add_generation_prompt' begins a turn, and 'continue_final_message' goes on "
                      "with one; give one of them");
  }
  const ChatMessage& last = request->chat.messages.back();
  const bool can = last.role == "assistant" && !HasCalls(last);
  if (goes_on && !can) {
    return body->Fail("continue_final_message",
                      fmt::format("'continue_final_message' needs '{}' to end with a turn of the "
                                  "assistant's that calls nothing",
                                  messages));
  }
  request->chat.continues_last = can && !begins && (goes_on || !said);
  if (said_begins && !request->chat.continues_last) {
    AddVariables({{"add_generation_prompt", begins}}, request);
  }
}

void SetReasoning(std::string_view effort, ApiRequest* request) {
  const bool thinks = effort != "none";
  AddVariables({{"reasoning_effort", effort}, {"enable_thinking", thinks}, {"thinking", thinks}},
               request);
}

void ReadReasoningBudget(FieldReader* body, ApiRequest* request) {
  // llama.cpp's names, and vLLM's.
  constexpr std::string_view kNames[] = {"thinking_budget_tokens", "reasoning_budget_tokens",
                                         "thinking_token_budget"};
  std::string_view given;
  for (const std::string_view name : kNames) {
    const int before = request->budget.tokens;
    if (!body->Int(name, -1, ReasoningBudget::kMaxTokens, &request->budget.tokens)) continue;
    if (!given.empty() && request->budget.tokens != before) {
      body->Fail(name, fmt::format("'{}' and '{}' differ; give one of them", given, name));
    }
    given = name;
  }
  body->String("reasoning_budget_message", &request->budget.message);
}

void ReadReasoning(FieldReader* body, ApiRequest* request) {
  ReadReasoningBudget(body, request);
  std::string word;
  if (body->String("reasoning_effort", &word)) SetReasoning(word, request);
  if (!body->String("reasoning_format", &word)) return;
  if (word != "none" && word != "auto" && word != "deepseek") {
    body->Refuse("reasoning_format", "none, auto or deepseek");
  }
  request->parts_reasoning = word != "none";
}

void ReadTemplateVariables(FieldReader* body, ApiRequest* request) {
  const Json* field = body->Find("chat_template_kwargs");
  if (field == nullptr) return;
  if (!field->is_object()) {
    return body->Refuse("chat_template_kwargs",
                        "an object of the chat template's variables, as {\"enable_thinking\": "
                        "false}");
  }
  for (const char* name : {"messages", "tools", "documents"}) {
    if (!field->contains(name)) continue;
    return body->Fail(
        "chat_template_kwargs",
        fmt::format("'chat_template_kwargs' must not have '{}': the chat itself is", name));
  }
  AddVariables(*field, request);
}

void ReadPrompts(FieldReader* body, std::string_view name, std::vector<ApiPrompt>* prompts,
                 std::size_t most) {
  const Json* field = body->Find(name);
  const char* const expected = "a string, an array of tokens, or an array of either";
  if (field == nullptr) return body->Refuse(name, expected);
  if (ReadPrompt(*field, prompts)) return;
  if (!field->is_array() || field->empty()) return body->Refuse(name, expected);
  if (field->size() > most) {
    return body->Refuse(name, fmt::format("at most {} prompts", most));
  }
  for (const Json& item : *field) {
    if (!ReadPrompt(item, prompts)) return body->Refuse(name, expected);
  }
}

void ReadSampling(FieldReader* fields, ApiRequest* request) {
  SamplingParams* sampling = &request->sampling;
  ForEachSamplingField([&](const auto& field) {
    if (!field.has_flag()) return;
    auto* value = &(sampling->*field.member);
    if constexpr (std::is_same_v<decltype(field.most), int>) {
      // Clients write -1 for all as well.
      if (fields->Int(field.name, std::min(-1, field.least), field.most, value)) {
        *value = std::max(*value, field.least);
      }
    } else {
      fields->Number(field.name, field.least, field.most, value);
    }
  });
  request->seeded = fields->Seed("seed", &sampling->seed);
  ReadLogitBias(fields, &sampling->logit_bias);
}

void ReadLlamaSampling(FieldReader* fields, ApiRequest* request) {
  SamplingParams* sampling = &request->sampling;
  const std::uint64_t default_seed = sampling->seed;
  ReadSampling(fields, request);
  if (request->seeded && sampling->seed == std::numeric_limits<std::uint64_t>::max()) {
    request->seeded = false;
    sampling->seed = default_seed;
  }
  // Penalties that a request asks for by these APIs' names look at the latest 64 tokens, unless it
  // says at how many; -1 is all of the text. Those of the server are what they are elsewhere.
  bool penalises = fields->Number("repeat_penalty", 0.01F, 100, &sampling->repetition_penalty);
  for (const char* name : {"frequency_penalty", "presence_penalty"}) {
    penalises = fields->Has(name) || penalises;
  }
  if (penalises) sampling->penalty_window = 64;
  fields->Int("repeat_last_n", -1, kMaxInt, &sampling->penalty_window);
  constexpr std::pair<std::string_view, float> kOff[] = {
      {"mirostat", 0},        {"typical_p", 1},      {"tfs_z", 1},         {"top_n_sigma", -1},
      {"xtc_probability", 0}, {"dynatemp_range", 0}, {"dry_multiplier", 0}};
  for (const auto& [name, off] : kOff) {
    float value = off;
    if (fields->Number(name, -1000, 1000, &value) && value != off) {
      fields->Refuse(name, fmt::format("{}: this server has no such sampler", off));
    }
  }
  SkipFields(fields, {"mirostat_tau", "mirostat_eta", "xtc_threshold", "dynatemp_exponent",
                      "dry_base", "dry_allowed_length", "dry_penalty_last_n",
                      "dry_sequence_breakers", "penalize_newline"});
}

bool ReadMaxTokens(FieldReader* fields, std::string_view name, int* max_tokens) {
  int given = 0;
  if (!fields->Int(name, -1, kMaxInt, &given)) return false;
  if (given == 0) fields->Refuse(name, "-1 (what the context holds) or from 1");
  *max_tokens = std::max(given, 0);
  return true;
}

void ReadStopStrings(FieldReader* fields, std::string_view name, StopRules* stop) {
  const Json* field = fields->Find(name);
  if (field == nullptr) return;
  const Json list = field->is_array() ? *field : Json::array({*field});
  if (list.size() > kMaxStops) {
    return fields->Refuse(name, fmt::format("at most {} strings", kMaxStops));
  }
  for (const Json& item : list) {
    if (!item.is_string() || item.text().empty()) {
      return fields->Refuse(name, "a string or an array of strings, none of them empty");
    }
    stop->stop_strings.push_back(item.get<std::string>());
  }
}

void ReadStopTokens(FieldReader* fields, StopRules* stop) {
  fields->Bool("ignore_eos", &stop->ignore_eos);
  const Json* field = fields->Find("stop_token_ids");
  if (field == nullptr) return;
  if (!field->empty() && !IsTokenArray(*field)) {
    return fields->Refuse("stop_token_ids", "an array of tokens");
  }
  for (const Json& item : *field) {
    const auto id = item.get<std::int64_t>();
    if (id < 0 || id > kMaxInt) return fields->Refuse("stop_token_ids", "an array of tokens");
    stop->stop_tokens.push_back(static_cast<Token>(id));
  }
}

void ReadSpeculation(FieldReader* body, ApiRequest* request) {
  ReadPlan(body, &request->speculation);
  ReadDatastore(body, &request->datastore);
}

void SkipFields(FieldReader* fields, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) fields->Has(name);
}

void LeaveOutUnless(FieldReader* fields, std::string_view name,
                    std::initializer_list<std::string_view> usual) {
  std::string said;
  if (!fields->String(name, &said) || std::ranges::count(usual, said) > 0) return;
  fields->LeaveOut(name, said);
}

void MustBeEmpty(FieldReader* fields, std::string_view name, std::string_view why) {
  const Json* field = fields->Find(name);
  if (field == nullptr || *field == Json(false) || *field == Json("")) return;
  if (field->is_structured() && field->empty()) return;
  fields->Refuse(name, fmt::format("empty: {}", why));
}

}  // namespace foretoken::server
