#include "apps/lab/bench/lossy_cost.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/foretoken/common/terminal.h"
#include "base/numbers/integers.h"
#include "foretoken/generate.h"

namespace foretoken {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether text[at] goes on a number that has begun: 1,234 and 1.5, but not the end of a sentence.
bool Continues(std::string_view text, std::size_t at) {
  if (IsDigit(text[at])) return true;
  return (text[at] == ',' || text[at] == '.') && at + 1 < text.size() && IsDigit(text[at + 1]);
}

}  // namespace

std::string LastNumber(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0 && !IsDigit(text[end - 1])) --end;
  if (end == 0) return {};
  std::size_t begin = end - 1;
  while (begin > 0 && Continues(text, begin - 1)) --begin;
  std::string number = begin > 0 && text[begin - 1] == '-' ? "-" : "";
  for (const char c : text.substr(begin, end - begin)) {
    if (c != ',') number += c;
  }
  if (number.find('.') != std::string::npos) {  // 12.50 is 12.5, and 12.0 is 12.
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
  }
  return number;
}

Result<WrittenTexts> ScoreTexts(Engine* engine, int batch, std::string_view model,
                                const EncodedSet& set, const ModeResult& mode) {
  WrittenTexts written;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < mode.outputs.size(); ++i) {
    Request request;
    request.prompt = set.prompts[i];
    request.prompt.insert(request.prompt.end(), mode.outputs[i].begin(), mode.outputs[i].end());
    request.stop.max_tokens = 0;
    request.prompt_logprobs = 0;
    request.learn = false;
    requests.push_back(std::move(request));
  }
  FT_ASSIGN_OR_RETURN(const std::vector<Generation> scored,
                      Generate(*engine, std::move(requests), batch));
  FT_RETURN_IF_ERROR(CheckFiniteLogits(scored, model));
  double loss = 0;
  for (std::size_t i = 0; i < mode.outputs.size(); ++i) {
    const std::size_t tokens = mode.outputs[i].size();
    for (std::size_t t = 0; t < tokens; ++t) {
      loss -= scored[i].prompt_logprobs[set.prompts[i].size() - 1 + t].front().logprob;
    }
    written.tokens += Int(tokens);
    if (i >= set.answers.size() || set.answers[i].empty()) continue;
    ++written.asked;
    const std::string number = LastNumber(mode.texts[i]);
    written.right += !number.empty() && number == LastNumber(set.answers[i]) ? 1 : 0;
  }
  written.perplexity = written.tokens == 0 ? 0 : std::exp(loss / written.tokens);
  return written;
}

Json WrittenTextsJson(const WrittenTexts& written, const RequestStats& total) {
  Json figures = {{"lossy_tokens", total.lossy}, {"perplexity", written.perplexity}};
  if (written.asked > 0) figures["answers"] = {{"asked", written.asked}, {"right", written.right}};
  return figures;
}

std::string RenderLossyCost(const SetResult& set) {
  if (std::ranges::none_of(set.modes,
                           [](const ModeResult& mode) { return mode.written.has_value(); }))
    return {};
  TextTable table({"mode", "not the model's own", "perplexity of the output", "right answers"});
  for (const ModeResult& mode : set.modes) {
    if (!mode.written) continue;
    const double share = mode.total.output_tokens == 0
                             ? 0
                             : static_cast<double>(mode.total.lossy) / mode.total.output_tokens;
    table.Add({mode.label, FormatPercent(share), fmt::format("{:.3f}", mode.written->perplexity),
               mode.written->asked == 0
                   ? "-"
                   : fmt::format("{} of {}", mode.written->right, mode.written->asked)});
  }
  return "\n  What --lossy costs, as the model judges what each mode wrote:\n" + table.Render(2);
}

}  // namespace foretoken
