#include "apps/lab/perplexity/perplexity_report.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

#include "apps/foretoken/common/terminal.h"
#include "json/json.h"

namespace foretoken {
namespace {

double AgreedShare(const TextScore& score) {
  return static_cast<double>(score.agreed) / static_cast<double>(score.loss.count());
}

double RowsPerSecond(const PerplexityReport& report) {
  return static_cast<double>(report.score.rows) / report.seconds;
}

std::string WithError(double value, double error) {
  return std::isnan(error) ? fmt::format("{:.4f}", value)
                           : fmt::format("{:.4f} +/- {:.4f}", value, error);
}

std::string Line(std::string_view name, const std::string& value) {
  return fmt::format("  {:<18}{}\n", name, value);
}

// Its KV is named where it is not what its precision has by itself.
std::string Described(const ScoredModel& model) {
  std::string text = fmt::format("{} in {}", model.name, PrecisionName(model.precision));
  if (model.kv != UsualKvFormat(model.precision)) {
    text += fmt::format(" with KV in {}", KvFormatName(model.kv));
  }
  return text;
}

}  // namespace

double BitsPerByte(const PerplexityReport& report, const Mean& loss) {
  if (report.scored_bytes == 0) return std::numeric_limits<double>::quiet_NaN();
  const double nats = loss.value() * static_cast<double>(loss.count());
  return nats / std::numbers::ln2 / static_cast<double>(report.scored_bytes);
}

Json PerplexityJson(const PerplexityReport& report) {
  const TextScore& score = report.score;
  Json object = {{"model", report.model.name},
                 {"precision", PrecisionName(report.model.precision)},
                 {"kv", KvFormatName(report.model.kv)},
                 {"text", report.text},
                 {"text_tokens", report.text_tokens},
                 {"context", report.windows.length},
                 {"stride", report.windows.step},
                 {"windows", report.windows.count},
                 {"scored_tokens", score.loss.count()},
                 {"scored_bytes", report.scored_bytes},
                 {"perplexity", ExpOf(score.loss)},
                 {"standard_error", ExpErrorOf(score.loss)},
                 {"nats_per_token", score.loss.value()},
                 {"bits_per_byte", BitsPerByte(report, score.loss)},
                 {"seconds", report.seconds},
                 {"tokens_per_s", RowsPerSecond(report)}};
  if (report.against.name.empty()) return object;
  object["against"] = {{"model", report.against.name},
                       {"precision", PrecisionName(report.against.precision)},
                       {"kv", KvFormatName(report.against.kv)},
                       {"perplexity", ExpOf(score.reference_loss)},
                       {"standard_error", ExpErrorOf(score.reference_loss)},
                       {"nats_per_token", score.reference_loss.value()},
                       {"bits_per_byte", BitsPerByte(report, score.reference_loss)},
                       {"ratio", ExpOf(score.excess)},
                       {"ratio_standard_error", ExpErrorOf(score.excess)},
                       {"divergence", score.divergence.value()},
                       {"divergence_standard_error", score.divergence.standard_error()},
                       {"same_likeliest", AgreedShare(score)}};
  return object;
}

std::string PerplexityText(const PerplexityReport& report) {
  const TextScore& score = report.score;
  const TextWindows& windows = report.windows;
  std::string text =
      fmt::format("{}: {}, {} tokens in {} window{} of {}, of each the last {} scored\n",
                  Described(report.model), report.text, report.text_tokens, windows.count,
                  windows.count == 1 ? "" : "s", windows.length, windows.scored);
  text += Line("perplexity", WithError(ExpOf(score.loss), ExpErrorOf(score.loss)));
  text += Line("bits per byte", fmt::format("{:.4f}", BitsPerByte(report, score.loss)));
  text +=
      Line("scored", fmt::format("{} tokens, {} bytes", score.loss.count(), report.scored_bytes));
  text += Line("read", fmt::format("{} tokens in {}, {:.0f} tokens/s{}", score.rows,
                                   FormatDuration(report.seconds * 1e9), RowsPerSecond(report),
                                   report.against.name.empty() ? "" : " by both models"));
  if (report.against.name.empty()) return text;
  text += fmt::format("against {}\n", Described(report.against));
  text += Line("its perplexity",
               WithError(ExpOf(score.reference_loss), ExpErrorOf(score.reference_loss)));
  text += Line("ratio to that", WithError(ExpOf(score.excess), ExpErrorOf(score.excess)));
  text +=
      Line("divergence", fmt::format("{:.3g} +/- {:.2g} nats per token", score.divergence.value(),
                                     score.divergence.standard_error()));
  text += Line("likeliest token", fmt::format("the same before {} of the scored tokens",
                                              FormatPercent(AgreedShare(score))));
  return text;
}

}  // namespace foretoken
