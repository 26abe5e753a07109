// The chat templates that are built in, for models whose files have none or a wrong one.

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "foretoken/chat.h"

namespace foretoken {
namespace {

constexpr std::string_view kChatMl = R"({%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %})";

// The system message stands at the front of the first question.
constexpr std::string_view kGemma = R"({{- bos_token }}
{%- set ns = namespace(system='') %}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {%- set ns.system = ns.system + message.content + '\n\n' %}
    {%- else %}
        {{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\n' }}
        {{- ns.system + message.content | trim + '<end_of_turn>\n' }}
        {%- set ns.system = '' %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<start_of_turn>model\n' }}
{%- endif %})";

// ChatML with the tools and calls of Hermes and Qwen.
constexpr std::string_view kHermes = R"({%- set ns = namespace(system='') %}
{%- for message in messages if message.role == 'system' %}
    {%- set ns.system = ns.system + message.content + '\n\n' %}
{%- endfor %}
{%- if tools %}
    {%- set ns.system = ns.system + 'You may call functions. These are described by JSON within '
        + '<tools></tools>:\n<tools>\n' %}
    {%- for tool in tools %}
        {%- set ns.system = ns.system + tool | tojson + '\n' %}
    {%- endfor %}
    {%- set ns.system = ns.system + '</tools>\nTo call one, write JSON with its name and '
        + 'arguments within <tool_call></tool_call>:\n<tool_call>\n{"name": "...", '
        + '"arguments": {...}}\n</tool_call>' %}
{%- endif %}
{%- if ns.system %}
    {{- '<|im_start|>system\n' + ns.system | trim + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages if message.role != 'system' %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response>' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\n' + message.content }}
        {%- for call in message.tool_calls or [] %}
            {{- '\n' if message.content or not loop.first }}
            {{- '<tool_call>\n{"name": ' + call.function.name | tojson + ', "arguments": ' }}
            {{- call.function.arguments if call.function.arguments is string
                else call.function.arguments | tojson }}
            {{- '}\n</tool_call>' }}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %})";

constexpr std::string_view kLlama2 = R"({%- set ns = namespace(system='') %}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {%- set ns.system = '<<SYS>>\n' + message.content + '\n<</SYS>>\n\n' %}
    {%- elif message.role == 'user' %}
        {{- bos_token + '[INST] ' + ns.system + message.content + ' [/INST]' }}
        {%- set ns.system = '' %}
    {%- else %}
        {{- ' ' + message.content + ' ' + eos_token }}
    {%- endif %}
{%- endfor %})";

constexpr std::string_view kLlama3 = R"({{- bos_token }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' }}
    {{- message.content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %})";

constexpr std::string_view kMistral = R"({{- bos_token }}
{%- set ns = namespace(system='') %}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {%- set ns.system = message.content + '\n\n' %}
    {%- elif message.role == 'user' %}
        {{- '[INST] ' + ns.system + message.content + ' [/INST]' }}
        {%- set ns.system = '' %}
    {%- else %}
        {{- ' ' + message.content + eos_token }}
    {%- endif %}
{%- endfor %})";

constexpr std::string_view kPhi3 = R"({%- for message in messages %}
    {{- '<|' + message.role + '|>\n' + message.content + '<|end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>\n' }}
{%- endif %})";

constexpr std::string_view kVicuna = R"({{- bos_token }}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {{- message.content + '\n\n' }}
    {%- elif message.role == 'user' %}
        {{- 'USER: ' + message.content + '\n' }}
    {%- else %}
        {{- 'ASSISTANT: ' + message.content + eos_token + '\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- 'ASSISTANT:' }}
{%- endif %})";

constexpr std::string_view kZephyr = R"({%- for message in messages %}
    {{- '<|' + message.role + '|>\n' + message.content + eos_token + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>\n' }}
{%- endif %})";

constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kTemplates = {{
    {"chatml", kChatMl},
    {"gemma", kGemma},
    {"hermes", kHermes},
    {"llama2", kLlama2},
    {"llama3", kLlama3},
    {"mistral", kMistral},
    {"phi3", kPhi3},
    {"vicuna", kVicuna},
    {"zephyr", kZephyr},
}};

}  // namespace

std::optional<std::string_view> BuiltInChatTemplate(std::string_view name) {
  const auto found =
      std::ranges::find_if(kTemplates, [name](const auto& entry) { return entry.first == name; });
  if (found == kTemplates.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string_view> BuiltInChatTemplates() {
  std::vector<std::string_view> names;
  for (const auto& entry : kTemplates) names.push_back(entry.first);
  return names;
}

std::tm LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

}  // namespace foretoken
