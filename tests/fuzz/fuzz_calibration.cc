#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "apps/lab/study/calibration.h"
#include "core/prediction/plan_search.h"

// A calibration file. What is accepted must be written and read back as it was, and must let the
// planner compute finite figures.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto calibration = foretoken::ParseCalibration(text, "fuzz");
  if (!calibration.ok()) {
    const std::string& message = calibration.error().message;
    if (message.empty() || message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const std::string written = foretoken::FormatCalibration(*calibration);
  const auto again = foretoken::ParseCalibration(written, "fuzz");
  if (!again.ok() || foretoken::FormatCalibration(*again) != written) std::abort();
  const foretoken::CalibratedSetting& setting = calibration->settings.front();
  const foretoken::CostModel model = foretoken::ToCostModel(*calibration, setting);
  foretoken::PlanLimits limits;
  limits.min_lookahead = limits.max_lookahead = 3;
  for (const int batch : {1, 40}) {
    const foretoken::PlanChoice choice =
        foretoken::ChoosePlan(model, limits, {.batch = batch, .context = 200});
    const foretoken::Prediction& prediction = choice.ranked.front().prediction;
    if (!(prediction.tokens_per_second > 0 && std::isfinite(prediction.tokens_per_second) &&
          prediction.tokens_per_round >= 1 && prediction.tokens_per_round <= 4.001)) {
      std::abort();
    }
  }
  return 0;
}
