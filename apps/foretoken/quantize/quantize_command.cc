#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/options/options.h"
#include "core/model/open_checkpoint.h"
#include "door/convert/write_gguf.h"

namespace foretoken {
namespace {

struct QuantizeOptions {
  std::string in;
  std::string out;
  std::string type;
  bool force = false;
};

std::vector<std::string> TypeNames() {
  std::vector<std::string> names;
  for (const WeightType& type : WeightTypes()) names.emplace_back(type.name);
  return names;
}

std::string Report(const QuantizeOptions& options, const WrittenGguf& written) {
  std::string tensors;
  for (const auto& [format, count] : written.tensors) {
    tensors += fmt::format("{}{} {}", tensors.empty() ? "" : ", ", count, FormatName(format));
  }
  std::string text = fmt::format("{}: {}; tensors: {}\n", options.out,
                                 FormatBytes(static_cast<double>(written.bytes)), tensors);
  if (written.smaller_blocks > 0) {
    text += fmt::format(
        "{} tensors have a width that is no multiple of {}'s blocks, and got a format of smaller "
        "ones.\n",
        written.smaller_blocks, options.type);
  }
  return text;
}

Result<int> Quantize(const QuantizeOptions& options) {
  FT_ASSIGN_OR_RETURN(const WeightType type, ParseWeightType(options.type));
  std::error_code ignored;
  if (!options.force && std::filesystem::is_regular_file(options.out, ignored)) {
    return Invalid("{} is there already; --force replaces it", options.out);
  }
  FT_ASSIGN_OR_RETURN(Checkpoint checkpoint, OpenCheckpoint(options.in, ""));
  for (const std::string& sentence : checkpoint.not_used) {
    PrintWarning(fmt::format("{}: {}", options.in, sentence));
  }
  WrittenGguf written;
  {
    ProgressBar bar(fmt::format("Writing {}", options.out), 0);
    FT_ASSIGN_OR_RETURN(
        written, WriteGguf(std::move(checkpoint), type, options.out,
                           [&bar](std::size_t done, std::size_t all) { bar.Show(done, all); }));
  }
  fmt::print("{}", Report(options, written));
  return kSucceeded;
}

}  // namespace

void AddQuantizeCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command =
      AddCommand(app, "quantize", "Write a model as a GGUF file with weights of another type");
  const OptionGroup add(command);
  auto options = std::make_shared<QuantizeOptions>();
  add("in", &options->in, "IN", "The model, a folder or a GGUF file")->required();
  add("out", &options->out, "OUT.gguf", "The file to write")->required();
  add("--type", &options->type, "TYPE",
      "What weights are stored as; of those that end in _m or _s, tensors that matter more have "
      "more bits")
      ->required()
      ->check(OneOf(TypeNames()));
  add("--force", &options->force, "Replace the file where it is there already");
  SetFooter(command,
            "Norms stay F32. The file is one that llama.cpp reads too. Weights that are quantised "
            "already lose by being quantised again: begin with a model of F16, BF16 or F32.");
  WhenChosen(command, chosen, [options] { return Quantize(*options); });
}

}  // namespace foretoken
