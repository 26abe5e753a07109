#include "foretoken/chat_format.h"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace foretoken {
namespace {

constexpr auto kCallForms = std::to_array<CallForm>({
    {.name = "hermes",  // Qwen 2.5 and 3, SmolLM3, Granite 4
     .open = "<tool_call>",
     .close = "</tool_call>",
     .before_name = "<tool_call>\n{\"name\": \"",
     .before_arguments = "\", \"arguments\": ",
     .after_arguments = "}\n</tool_call>",
     .joint = "\n"},
    {.name = "qwen-tags",  // Qwen3-Coder
     .body = CallBody::kTags,
     .open = "<tool_call>",
     .close = "</tool_call>",
     .before_bare_name = "<function=",
     .key_open = "<parameter=",
     .key_close = ">",
     .value_close = "</parameter>",
     .before_name = "<tool_call>\n<function=",
     .before_arguments = ">\n",
     .after_arguments = "</function>\n</tool_call>",
     .joint = "\n"},
    {.name = "glm",  // 4.5 and later
     .body = CallBody::kTags,
     .open = "<tool_call>",
     .close = "</tool_call>",
     .key_open = "<arg_key>",
     .key_close = "</arg_key>",
     .value_open = "<arg_value>",
     .value_close = "</arg_value>",
     .before_name = "<tool_call>",
     .before_arguments = "\n",
     .after_arguments = "</tool_call>",
     .joint = "\n"},
    {.name = "gpt-oss",
     .body = CallBody::kHarmony,
     .open = "to=functions.",
     .before_name = "<|channel|>commentary to=functions.",
     .before_arguments = " <|constrain|>json<|message|>",
     .several = false},
    {.name = "gemma",  // 4
     .body = CallBody::kGemma,
     .open = "<|tool_call>",
     .close = "<tool_call|>",
     .before_bare_name = "call:",
     .value_open = "<|\"|>",
     .value_close = "<|\"|>",
     .before_name = "<|tool_call>call:",
     .before_arguments = "",
     .after_arguments = "<tool_call|>"},
    {.name = "llama3",
     .open = "<|python_tag|>",
     .opens_by_brace = true,
     .arguments_key = "parameters",
     .before_name = "{\"name\": \"",
     .before_arguments = "\", \"parameters\": ",
     .after_arguments = "}",
     .several = false},
    {.name = "mistral",
     .open = "[TOOL_CALLS]",
     .bare_name = true,
     .before_name = "[TOOL_CALLS]",
     .before_arguments = "[ARGS]"},
    {.name = "mistral-list",  // of before 2025
     .open = "[TOOL_CALLS]",
     .first = "[TOOL_CALLS][",
     .before_name = "{\"name\": \"",
     .before_arguments = "\", \"arguments\": ",
     .after_arguments = "}",
     .joint = ", ",
     .last = "]"},
    {.name = "deepseek",  // since V3.1
     .open = "<｜tool▁call▁begin｜>",
     .close = "<｜tool▁call▁end｜>",
     .passed_over = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
     .bare_name = true,
     .first = "<｜tool▁calls▁begin｜>",
     .before_name = "<｜tool▁call▁begin｜>",
     .before_arguments = "<｜tool▁sep｜>",
     .after_arguments = "<｜tool▁call▁end｜>",
     .last = "<｜tool▁calls▁end｜>"},
    {.name = "deepseek-r1",  // V3's, too.
     .open = "<｜tool▁call▁begin｜>",
     .close = "<｜tool▁call▁end｜>",
     .passed_over = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
     .bare_name = true,
     .before_bare_name = "function<｜tool▁sep｜>",
     .first = "<｜tool▁calls▁begin｜>",
     .before_name = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
     .before_arguments = "\n```json\n",
     .after_arguments = "\n```<｜tool▁call▁end｜>",
     .joint = "\n",
     .last = "<｜tool▁calls▁end｜>"},
    {.name = "granite",  // 3
     .open = "<|tool_call|>",
     .first = "<|tool_call|>[",
     .before_name = "{\"name\": \"",
     .before_arguments = "\", \"arguments\": ",
     .after_arguments = "}",
     .joint = ", ",
     .last = "]"},
    {.name = "phi",  // 4 mini
     .open = "<|tool_call|>",
     .close = "<|/tool_call|>",
     .first = "<|tool_call|>[",
     .before_name = "{\"name\": \"",
     .before_arguments = "\", \"arguments\": ",
     .after_arguments = "}",
     .joint = ", ",
     .last = "]<|/tool_call|>"},
    {.name = "command",  // Command R7B and A
     .open = "<|START_ACTION|>",
     .close = "<|END_ACTION|>",
     .passed_over = {"<|START_RESPONSE|>", "<|END_RESPONSE|>"},
     .name_key = "tool_name",
     .arguments_key = "parameters",
     .first = "<|START_ACTION|>[\n    ",
     .before_name = "{\"tool_call_id\": \"0\", \"tool_name\": \"",
     .before_arguments = "\", \"parameters\": ",
     .after_arguments = "}",
     .last = "\n]<|END_ACTION|>",
     .several = false},
});

/// What the templates of a form have in common: all of these.
struct Evidence {
  std::string_view form;
  std::array<std::string_view, 2> texts;
};

// Evidence that tells more comes first: some templates have the marks of several forms.
constexpr auto kEvidence = std::to_array<Evidence>({
    {"gpt-oss", {"<|channel|>", "<|message|>"}},
    {"gemma", {"<|tool_call>call:"}},
    {"qwen-tags", {"<function=", "<parameter="}},
    {"glm", {"<tool_call>", "<arg_key>"}},
    {"mistral", {"[TOOL_CALLS]", "[ARGS]"}},
    {"mistral-list", {"[TOOL_CALLS]"}},
    {"deepseek-r1", {"<｜tool▁call▁begin｜>", "```json"}},
    {"deepseek", {"<｜tool▁call▁begin｜>"}},
    {"command", {"<|START_ACTION|>"}},
    {"phi", {"<|/tool|>"}},
    {"granite", {"<|tool_call|>"}},
    {"hermes", {"<tool_call>"}},
    {"llama3", {"<|python_tag|>"}},
    {"llama3", {"<|start_header_id|>", "tools"}},
});

// Where a message ends another begins.
constexpr ReasoningForm kHarmonyReasoning = {"<|channel|>analysis<|message|>",
                                             "<|end|><|start|>assistant"};

constexpr auto kReasoningForms = std::to_array<ReasoningForm>({
    {"[THINK]", "[/THINK]"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<|channel>thought\n", "<channel|>"},
    {"<think>", "</think>"},
});

}  // namespace

const CallForm* FindCallForm(std::string_view name) {
  const auto* const form = std::ranges::find(kCallForms, name, &CallForm::name);
  return form == kCallForms.end() ? nullptr : form;
}

std::vector<std::string_view> CallFormNames() {
  std::vector<std::string_view> names;
  for (const CallForm& form : kCallForms) names.push_back(form.name);
  return names;
}

ChatFormat FindChatFormat(std::string_view chat_template, const CallForm* calls) {
  const auto has = [&](std::string_view text) {
    return chat_template.find(text) != std::string_view::npos;
  };
  ChatFormat format{.reasoning = {}, .calls = calls};
  for (const ReasoningForm& form : kReasoningForms) {
    if (format.reasoning.close.empty() && has(form.close)) format.reasoning = form;
  }
  for (const Evidence& evidence : kEvidence) {
    if (format.calls == nullptr && std::ranges::all_of(evidence.texts, has)) {
      format.calls = FindCallForm(evidence.form);
    }
  }
  return format.calls == nullptr ? format : WithCalls(format, *format.calls);
}

ChatFormat WithCalls(ChatFormat format, const CallForm& calls) {
  format.calls = &calls;
  if (calls.body == CallBody::kHarmony) {
    format.reasoning = kHarmonyReasoning;
    format.said_open = "<|channel|>final<|message|>";
  }
  return format;
}

bool ChatFormat::OpensReasoning(std::string_view tail) const {
  const auto trimmed = [](std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    return text;
  };
  return !reasoning.open.empty() && trimmed(tail).ends_with(trimmed(reasoning.open));
}

bool ChatFormat::IsMark(std::string_view token) const {
  if (token.empty()) return false;
  const auto in = [token](std::initializer_list<std::string_view> texts) {
    return std::ranges::any_of(
        texts, [token](auto text) { return text.find(token) != std::string_view::npos; });
  };
  if (in({reasoning.open, reasoning.close, said_open})) return true;
  return calls != nullptr &&
         in({calls->open, calls->close, calls->passed_over[0], calls->passed_over[1], calls->first,
             calls->before_name, calls->before_arguments, calls->after_arguments, calls->last,
             calls->value_open, calls->value_close});
}

}  // namespace foretoken
