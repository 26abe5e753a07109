#include "core/model/self/trained_exit.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "base/text/printable.h"
#include "core/model/families/family.h"
#include "core/weights/file_tensors.h"
#include "core/weights/safetensors.h"
#include "json/json.h"
#include "json/json_object.h"
#include "json/read_json_object.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNorm = "output_norm.weight";
constexpr int kMostExitHidden = 1 << 20;

// The tensors of an exit's file as they are called here: the file has the names that they have in a
// folder of the model.
Result<FileTensors> Renamed(FileTensors file, const Family& family, const std::string& where) {
  FileTensors renamed;
  for (auto& [name, tensor] : file.tensors) {
    const std::string ours = OurName(family, /*gguf=*/false, name);
    if (!ours.empty() && renamed.tensors.emplace(ours, std::move(tensor)).second) continue;
    return Invalid("{}: has tensor '{}', which is none of a {} model", where, Printable(name),
                   family.name);
  }
  if (file.bytes.empty() && file.others.empty()) return renamed;
  const std::string& other =
      file.bytes.empty() ? file.others.begin()->first : file.bytes.begin()->first;
  return Invalid("{}: tensor '{}' is not of floats", where, Printable(other));
}

Result<int> ReadExitConfig(const fs::path& path, const ModelConfig& model) {
  const std::string where = path.string();
  FT_ASSIGN_OR_RETURN(const Json json,
                      ReadJsonObject(path,
                                     "a trained exit is a folder with config.json and "
                                     "model.safetensors, as foretoken_train exit writes them"));
  Status status;
  JsonObject fields(&json, where, &status);
  fields.Text("model_type", {"exit"});
  const int exit = fields.Integer("exit", 1, kMostExitHidden);
  const int hidden = fields.Integer("hidden_size", 1, kMostExitHidden);
  FT_RETURN_IF_ERROR(status);
  if (hidden != model.hidden) {
    return Invalid("{}: this exit was trained for a model of width {}, and this one's is {}", where,
                   hidden, model.hidden);
  }
  if (exit + 1 >= model.layer_count()) {
    return Invalid(
        "{}: an exit behind {} layers and with one of its own saves nothing of a model of {} "
        "layers",
        where, exit, model.layer_count());
  }
  return exit;
}

// Checks that the exit has what the model has in its place, and nothing else.
Status CheckTensors(const TensorMap& tensors, int exit, const Checkpoint& model,
                    const std::string& where) {
  const std::string prefix = fmt::format("layers.{}.", exit);
  const auto in_place = [&](std::string_view name) {
    return name.starts_with(prefix) || name == kNorm;
  };
  const auto called = [&](const std::string& name) {
    return model.usual_name == nullptr ? name : model.usual_name(name);
  };
  for (const auto& [name, tensor] : model.tensors) {
    if (!in_place(name)) continue;
    const auto found = tensors.find(name);
    if (found == tensors.end()) {
      return Invalid("{}: lacks tensor '{}'", where, called(name));
    }
    if (found->second.shape == tensor.shape) continue;
    return Invalid(
        "{}: tensor '{}' has another shape than the model's: give the exit that was trained for "
        "this model",
        where, called(name));
  }
  for (const auto& [name, tensor] : tensors) {
    if (in_place(name) && model.Find(name) != nullptr) continue;
    return Invalid("{}: has tensor '{}', which is none of the model's layer {}", where,
                   called(name), exit);
  }
  return {};
}

}  // namespace

std::string_view TrainedExitFolder(std::string_view own) {
  if (!own.starts_with(kExitDrafter)) return {};
  const std::string_view folder = own.substr(kExitDrafter.size());
  std::error_code ignored;
  return fs::is_directory(folder, ignored) ? folder : std::string_view();
}

Result<int> UseTrainedExit(const fs::path& folder, const ModelConfig& config, Checkpoint* model) {
  const Family& family = *FamilyNamed(config.family);
  const bool other_form = model->gguf.has_value() && (family.neighbours == Neighbours::kInGguf ||
                                                      family.folder_gains_less_one);
  if (other_form || family.arrange != nullptr) {
    return Invalid(
        "{}: an exit has the tensors of a model folder, and this model's files keep them in "
        "another form",
        folder.string());
  }
  FT_ASSIGN_OR_RETURN(const int exit, ReadExitConfig(folder / "config.json", config));
  const fs::path path = folder / "model.safetensors";
  FT_ASSIGN_OR_RETURN(TensorFile file, TensorFile::Open(path, ParseSafetensors));
  FT_ASSIGN_OR_RETURN(file.holds, Renamed(std::move(file.holds), family, path.string()));
  FT_RETURN_IF_ERROR(CheckTensors(file.holds.tensors, exit, *model, path.string()));
  for (auto& [name, tensor] : file.holds.tensors) {
    model->arranged.erase(name);
    model->requantized_from.erase(name);
    model->names_in_files.erase(name);
    model->tensors.insert_or_assign(name, std::move(tensor));
  }
  model->files.push_back(std::move(file.file));
  return exit;
}

}  // namespace foretoken
