#include "cli/load/bench_server_stream.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace foretoken {
namespace {

using nlohmann::json;

constexpr std::size_t kShownOfBadEvent = 120;

const json* Find(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

void TakeCount(const json& object, const char* key, std::optional<int>* count) {
  const json* value = Find(object, key);
  if (value != nullptr && value->is_number_integer()) *count = value->get<int>();
}

std::string_view TextAt(const json& object, const char* key) {
  const json* value = Find(object, key);
  return value != nullptr && value->is_string()
             ? std::string_view(value->get_ref<const std::string&>())
             : std::string_view();
}

// The text that one choice of a chunk adds. Reasoning models stream their thoughts under names of
// their own.
std::string TextOf(const json& choice) {
  std::string text(TextAt(choice, "text"));
  if (const json* delta = Find(choice, "delta")) {
    for (const char* key : {"reasoning_content", "reasoning", "content"}) {
      text += TextAt(*delta, key);
    }
  }
  return text;
}

std::string ErrorText(const json& error) {
  const std::string_view message = TextAt(error, "message");
  return message.empty() ? error.dump(-1, ' ', false, json::error_handler_t::replace)
                         : std::string(message);
}

}  // namespace

void SseReader::TakeLine(std::string_view line,
                         const std::function<void(std::string_view)>& on_data) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) {
    if (has_data_) on_data(data_);
    data_.clear();
    has_data_ = false;
  } else if (line.starts_with("data:")) {
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += line;
    has_data_ = true;
  }
}

void SseReader::Feed(std::string_view bytes, const std::function<void(std::string_view)>& on_data) {
  for (std::size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    line_ += bytes.substr(0, end);
    TakeLine(line_, on_data);
    line_.clear();
    bytes.remove_prefix(end + 1);
  }
  line_ += bytes;
}

void CompletionStream::OnEvent(std::string_view data, std::int64_t now_ns) {
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const json event = json::parse(data, nullptr, false);
  if (!event.is_object()) {
    error_ = fmt::format("an event is not a JSON object: {}", data.substr(0, kShownOfBadEvent));
    return;
  }
  if (const json* error = Find(event, "error")) {
    error_ = ErrorText(*error);
    return;
  }
  if (const json* choices = Find(event, "choices"); choices != nullptr && choices->is_array()) {
    std::string text;
    for (const json& choice : *choices) {
      text += TextOf(choice);
      finished_ = finished_ || Find(choice, "finish_reason") != nullptr;
    }
    if (!text.empty()) reply_.chunk_ns.push_back(now_ns);
    reply_.text += text;
  }
  for (const char* key : {"usage", "timings"}) {
    const json* counts = Find(event, key);
    if (counts == nullptr) continue;
    TakeCount(*counts, "prompt_tokens", &reply_.prompt_tokens);
    TakeCount(*counts, "completion_tokens", &reply_.counted_tokens);
    TakeCount(*counts, "draft_n", &reply_.drafted);
    TakeCount(*counts, "draft_n_accepted", &reply_.draft_accepted);
  }
}

}  // namespace foretoken
