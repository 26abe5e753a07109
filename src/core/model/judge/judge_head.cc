#include "core/model/judge/judge_head.h"

#include <cmath>
#include <string>

#include "base/text/printable.h"
#include "core/tensor/tensor_view.h"
#include "core/weights/file_tensors.h"
#include "core/weights/safetensors.h"
#include "json/json.h"
#include "json/json_object.h"
#include "json/read_json_object.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr int kMostJudgedHidden = 1 << 20;
constexpr std::string_view kWeight = "judge.weight";
constexpr std::string_view kBias = "judge.bias";

Status CheckConfig(const fs::path& path, const JudgedTarget& target) {
  const std::string where = path.string();
  FT_ASSIGN_OR_RETURN(const Json json,
                      ReadJsonObject(path,
                                     "a judge's folder has config.json and model.safetensors, as "
                                     "foretoken_train judge writes them"));
  Status status;
  JsonObject fields(&json, where, &status);
  fields.Text("model_type", {"judge"});
  const int hidden = fields.Integer("hidden_size", 1, kMostJudgedHidden);
  std::string tokenizer;
  fields.String("tokenizer", &tokenizer);
  FT_RETURN_IF_ERROR(status);
  if (hidden != target.hidden) {
    return Invalid(
        "{}: this judge reads states of {} numbers, and the target's have {}: give the head that "
        "was trained for this target",
        where, hidden, target.hidden);
  }
  if (tokenizer.empty() || target.tokenizer.empty() || tokenizer == target.tokenizer) return {};
  return InvalidInput(where +
                      ": this judge was trained for a target with another tokenizer: give the head "
                      "that was trained for this target");
}

// The numbers of a tensor that is there in this shape; all of them are finite.
Result<std::vector<float>> ReadFloats(const FileTensors& file, std::string_view name, int count,
                                      const std::string& where) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end()) {
    return Invalid("{}: lacks tensor '{}' [{}]", where, name, count);
  }
  const TensorView& view = found->second;
  if (view.shape != std::vector<std::int64_t>{count}) {
    return Invalid("{}: tensor '{}' is not a row of {} numbers", where, name, count);
  }
  std::vector<float> values(count);
  LoadElements(view, 0, count, values.data());
  for (const float value : values) {
    if (std::isfinite(value)) continue;
    return Invalid("{}: tensor '{}' has numbers that are not finite", where, name);
  }
  return values;
}

// A tensor that means nothing here might change what the head is to say.
Status RefuseOthers(const FileTensors& file, const std::string& where) {
  const auto refuse = [&](const auto& tensors) -> Status {
    for (const auto& [name, tensor] : tensors) {
      if (name == kWeight || name == kBias) continue;
      return Invalid("{}: has tensor '{}', which is none of a judge's: {} and {}", where,
                     Printable(name), kWeight, kBias);
    }
    return {};
  };
  FT_RETURN_IF_ERROR(refuse(file.tensors));
  FT_RETURN_IF_ERROR(refuse(file.bytes));
  return refuse(file.others);
}

}  // namespace

Result<JudgeHead> JudgeHead::Open(const fs::path& folder, const JudgedTarget& target) {
  FT_RETURN_IF_ERROR(CheckConfig(folder / "config.json", target));
  const fs::path path = folder / "model.safetensors";
  FT_ASSIGN_OR_RETURN(const TensorFile file, TensorFile::Open(path, ParseSafetensors));
  FT_RETURN_IF_ERROR(RefuseOthers(file.holds, path.string()));
  FT_ASSIGN_OR_RETURN(std::vector<float> weight,
                      ReadFloats(file.holds, kWeight, target.hidden, path.string()));
  FT_ASSIGN_OR_RETURN(const std::vector<float> bias,
                      ReadFloats(file.holds, kBias, 1, path.string()));
  return JudgeHead(std::move(weight), bias.front());
}

double JudgeHead::Approval(const BFloat16* state) const {
  double sum = bias_;
  for (const float weight : weight_) sum += static_cast<double>(weight) * BFloat16ToFloat(*state++);
  return 1 / (1 + std::exp(-sum));
}

}  // namespace foretoken
