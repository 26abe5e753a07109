#include "apps/lab/load/bench_server_stream.h"

#include <fmt/core.h>

#include "json/json.h"

#include "base/text/utf8.h"
#include "json/fields.h"

namespace foretoken {
namespace {

constexpr const char* kServerError = "server error";
constexpr std::size_t kShownOfBadEvent = 120;

void TakeCount(const Json& value, std::optional<int>* count) {
  if (value.is_number_integer()) *count = value.get<int>();
}

// The text that one choice of a chunk adds. Reasoning models stream their thoughts under names of
// their own.
std::string ChoiceText(const Json& choice) {
  std::string text = Text(Field(choice, "text"));
  for (const char* key : {"reasoning_content", "reasoning", "content"}) {
    text += Text(Field(Field(choice, "delta"), key));
  }
  return text;
}

}  // namespace

void SseReader::Feed(std::string_view bytes, const std::function<void(std::string_view)>& on_data) {
  rest_ += bytes;
  std::size_t begin = 0;
  for (std::size_t end = rest_.find('\n'); end != rest_.npos; end = rest_.find('\n', begin)) {
    std::string_view line = std::string_view(rest_).substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) {
      if (data_) on_data(*data_);
      data_.reset();
    } else if (line.starts_with("data:")) {
      line.remove_prefix(line.starts_with("data: ") ? 6 : 5);
      data_ = data_ ? fmt::format("{}\n{}", *data_, line) : std::string(line);
    }
  }
  rest_.erase(0, begin);
}

void LoadRecord::OnEvent(std::string_view data, std::int64_t now_ns) {
  if (data == "[DONE]") {
    done = true;
    return;
  }
  const Json event = Json::Parse(data);
  if (!event.is_object()) {
    error = kServerError;
    message = fmt::format("an event is not a JSON object: {}", Shortened(data, kShownOfBadEvent));
    return;
  }
  if (const Json& told = Field(event, "error"); !told.is_null()) {
    error = kServerError;
    message = Text(Field(told, "message"));
    if (message.empty()) message = told.dump();
    return;
  }
  if (const Json& choices = Field(event, "choices"); choices.is_array()) {
    std::string added;
    for (const Json& choice : choices) {
      added += ChoiceText(choice);
      finished = finished || !Field(choice, "finish_reason").is_null();
    }
    if (!added.empty()) chunk_ns.push_back(now_ns);
    text += added;
  }
  for (const char* key : {"usage", "timings"}) {
    const Json& counts = Field(event, key);
    TakeCount(Field(counts, "prompt_tokens"), &prompt_tokens);
    TakeCount(Field(counts, "completion_tokens"), &counted_tokens);
    TakeCount(Field(counts, "draft_n"), &drafted);
    TakeCount(Field(counts, "draft_n_accepted"), &draft_accepted);
  }
}

std::optional<double> LoadRecord::tpot_ns() const {
  if (tokens() < 2 || chunk_ns.empty()) return std::nullopt;
  return static_cast<double>(chunk_ns.back() - chunk_ns.front()) / (tokens() - 1);
}

}  // namespace foretoken
