#include <fmt/core.h>

#include <filesystem>

#include "apps/foretoken/options/options.h"

namespace foretoken {
namespace {

// "french=./adapters/fr" or a path, after whose last part the adapter is then called.
AdapterSource ParseAdapter(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals != std::string_view::npos) {
    return {.name = std::string(text.substr(0, equals)),
            .path = std::string(text.substr(equals + 1))};
  }
  const auto path = std::filesystem::path(text).lexically_normal();
  const std::string name = path.extension() == ".gguf" ? path.stem().string()
                           : path.has_filename()       ? path.filename().string()
                                                       : path.parent_path().filename().string();
  return {.name = name, .path = std::string(text)};
}

}  // namespace

std::vector<AdapterSource> AdapterOptions::Sources() const {
  std::vector<AdapterSource> sources;
  for (const std::string& text : adapters) {
    sources.push_back(ParseAdapter(text));
    sources.back().scale = scale;
  }
  return sources;
}

void AddAdapterOptions(CLI::App* app, AdapterOptions* options, const std::string& help) {
  const OptionGroup add(app, "Adapters");
  add("--lora", &options->adapters, "[NAME=]PATH",
      fmt::format("A low-rank adapter of the target, a folder as PEFT saves it or a GGUF file; {}",
                  help))
      ->allow_extra_args(false);
  add("--lora-scale", &options->scale, "S",
      "What adapters add is multiplied by this (default 1; also below 0)")
      ->check(Between(-1e6, 1e6))
      ->needs("--lora");
}

Result<AdapterUse> TheAdapter(const LanguageModel& target) {
  if (target.adapters().empty()) return AdapterUse{};
  if (target.adapters().size() == 1) return AdapterUse{0, target.adapters()[0].scale};
  return Invalid(
      "--lora was given {} times, but one text is decoded with one adapter: give it once",
      target.adapters().size());
}

}  // namespace foretoken
