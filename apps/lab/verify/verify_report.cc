#include "apps/lab/verify/verify_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/foretoken/common/terminal.h"

namespace foretoken {
namespace {

std::string QuotedToken(const Tokenizer& tokenizer, Token token) {
  return token < 0 ? std::string("the end")
                   : fmt::format("{} '{}'", token, tokenizer.TokenName(token));
}

std::string Counts(const VerifyReport& report) {
  std::vector<std::string> header = {"mode", "batch", "prefix cache"};
  for (const VerifySetting& setting : report.settings) {
    std::string name = fmt::format("T={:g}", setting.temperature);
    if (report.sampler_sets.size() > 1) name += fmt::format(" S{}", setting.sampler_set + 1);
    header.push_back(std::move(name));
  }
  TextTable table(std::move(header));
  for (const VerifyConfiguration& configuration : report.configurations) {
    std::vector<std::string> row = {std::string(ModeName(configuration.mode)),
                                    fmt::format("{}", configuration.batch),
                                    configuration.prefix_cache ? "on" : "off"};
    for (const int identical : configuration.identical) {
      row.push_back(fmt::format("{}/{}", identical, report.prompt_names.size()));
    }
    table.Add(std::move(row));
  }
  return table.Render(2);
}

}  // namespace

std::string VerifyConfiguration::label() const {
  return fmt::format("{}, batch {}, prefix cache {}", ModeName(mode), batch,
                     prefix_cache ? "on" : "off");
}

std::string RenderVerifyReport(const VerifyReport& report, const Tokenizer& tokenizer,
                               std::size_t show) {
  std::string text = fmt::format(
      "{} prompts{}, up to {} tokens; outputs identical to ar at batch 1 without prefix cache:\n\n",
      report.prompt_names.size(),
      report.too_long > 0 ? fmt::format(" ({} more do not fit the context)", report.too_long)
                          : std::string(),
      report.max_tokens);
  text += Counts(report);
  if (report.sampler_sets.size() > 1) {
    for (std::size_t i = 0; i < report.sampler_sets.size(); ++i) {
      text += fmt::format("  S{}: {}\n", i + 1, report.sampler_sets[i].name);
    }
  }
  if (report.preemptions > 0) text += fmt::format("  forced preemptions: {}\n", report.preemptions);
  if (report.kills > 0) text += fmt::format("  speculators killed: {}\n", report.kills);
  for (std::size_t i = 0; i < std::min(show, report.differences.size()); ++i) {
    const VerifyDifference& difference = report.differences[i];
    const VerifySetting& setting = report.settings[difference.setting];
    text += fmt::format(
        "\n  {} ({}, T={:g}, {}): token {} is {}, in ar {}", report.prompt_names[difference.prompt],
        report.configurations[difference.configuration].label(), setting.temperature,
        report.sampler_sets[setting.sampler_set].name, difference.position + 1,
        QuotedToken(tokenizer, difference.found), QuotedToken(tokenizer, difference.expected));
    if (difference.top2_gap >= 0) {
      text += fmt::format("; the target's two highest logits there are {:.3g} apart",
                          difference.top2_gap);
    }
  }
  if (!report.differences.empty()) text += "\n";
  return text;
}

Json VerifyReportJson(const VerifyReport& report) {
  Json rows = Json::array();
  const auto name = [&report](std::size_t configuration, std::size_t setting) {
    const VerifyConfiguration& row = report.configurations[configuration];
    const VerifySetting& column = report.settings[setting];
    return Json{{"mode", ModeName(row.mode)},
                {"batch", row.batch},
                {"prefix_cache", row.prefix_cache},
                {"temperature", column.temperature},
                {"sampler", report.sampler_sets[column.sampler_set].name}};
  };
  for (std::size_t c = 0; c < report.configurations.size(); ++c) {
    for (std::size_t s = 0; s < report.settings.size(); ++s) {
      Json row = name(c, s);
      row["identical"] = report.configurations[c].identical[s];
      row["of"] = report.prompt_names.size();
      rows.push_back(std::move(row));
    }
  }
  Json differences = Json::array();
  for (const VerifyDifference& difference : report.differences) {
    Json entry = name(difference.configuration, difference.setting);
    entry["prompt"] = report.prompt_names[difference.prompt];
    entry["position"] = difference.position;
    entry["expected"] = difference.expected;
    entry["found"] = difference.found;
    if (difference.top2_gap >= 0) entry["top2_gap"] = difference.top2_gap;
    differences.push_back(std::move(entry));
  }
  return {
      {"prompts", report.prompt_names.size()}, {"prompts_left_out_as_too_long", report.too_long},
      {"max_tokens", report.max_tokens},       {"forced_preemptions", report.preemptions},
      {"speculators_killed", report.kills},    {"identical", report.differences.empty()},
      {"outputs", report.outputs()},           {"configurations", std::move(rows)},
      {"differences", std::move(differences)}};
}

}  // namespace foretoken
