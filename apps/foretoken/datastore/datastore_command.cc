#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/common/report_output.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/datastore/datastore_contents.h"
#include "apps/foretoken/datastore/datastore_removal.h"
#include "apps/foretoken/datastore/datastore_replay.h"
#include "apps/foretoken/datastore/document_reader.h"
#include "apps/foretoken/datastore/opened_datastore.h"
#include "apps/foretoken/options/options.h"
#include "base/files/replace_file.h"
#include "base/numbers/integers.h"
#include "core/draft/retrieval/retriever.h"
#include "json/json.h"
#include "text/tokenizer/pair/token_ranking.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

Result<int> RunBuild(DatastoreCommandOptions options) {
  FT_ASSIGN_OR_RETURN(const auto tokenizer, LoadTokenizer(&options));
  const DatastoreOptions store_options = OptionsFor(options, IdentityOf(options, *tokenizer));
  FT_ASSIGN_OR_RETURN(const fs::path directory,
                      NamespaceDirectory(options.directory, options.name_space));
  std::int64_t bytes = 0;
  for (const std::string& file : options.files) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    if (error) return Invalid("{}: cannot be read: {}", file, error.message());
    bytes += size;
  }
  FT_ASSIGN_OR_RETURN(const auto datastore, Datastore::Open(directory, store_options));

  const int vocabulary = store_options.tokenizer.vocabulary;
  TokenText text(vocabulary);
  ProgressBar bar("reading", bytes);
  const auto import = [&]() -> Status {
    bar.SetLabel("sorting");
    FT_RETURN_IF_ERROR(datastore->Import(std::move(text)));
    text = TokenText(vocabulary);
    bar.SetLabel("reading");
    return {};
  };
  const auto take = [&](std::vector<Token> document) -> Status {
    if (text.entries() + document.size() >= store_options.limits.segment_tokens()) {
      FT_RETURN_IF_ERROR(import());
    }
    return text.Append(document);
  };
  for (const std::string& file : options.files) {
    FT_RETURN_IF_ERROR(ReadDocuments(file, *tokenizer, options.Threads(), take,
                                     [&bar](std::int64_t done) { bar.Advance(done); }));
  }
  FT_RETURN_IF_ERROR(import());
  const auto snapshot = datastore->snapshot();
  fmt::print("{}: {} tokens in {} documents\n", directory.string(),
             FormatCount(static_cast<double>(snapshot->tokens())), snapshot->documents());
  return 0;
}

Status CheckNamespace(const fs::path& directory) {
  FT_ASSIGN_OR_RETURN(const auto datastore, OpenToRead(directory));
  const auto snapshot = datastore->snapshot();
  for (const auto& segment : snapshot->segments) FT_RETURN_IF_ERROR(segment->CheckOrder());
  return datastore->learning().failure;  // A file may have been truncated meanwhile.
}

Result<int> RunVerify(const DatastoreCommandOptions& options) {
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> names, Namespaces(options.directory));
  bool good = true;
  for (const std::string& name : names) {
    const Status status = CheckNamespace(fs::path(options.directory) / name);
    good = good && status.ok();
    fmt::print("{}: {}\n", name, status.ok() ? "good" : status.error().message);
  }
  return good ? 0 : 1;
}

Result<int> RunCompact(const DatastoreCommandOptions& options) {
  FT_ASSIGN_OR_RETURN(const fs::path directory,
                      NamespaceDirectory(options.directory, options.name_space));
  FT_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(directory));
  FT_ASSIGN_OR_RETURN(const auto datastore,
                      Datastore::Open(directory, OptionsFor(options, manifest.tokenizer)));
  FT_RETURN_IF_ERROR(datastore->Compact());
  fmt::print("{}: {} tokens in {} segments\n", directory.string(),
             FormatCount(static_cast<double>(datastore->snapshot()->tokens())),
             datastore->manifest().segments.size());
  return 0;
}

Result<int> RunQuery(DatastoreCommandOptions options) {
  FT_ASSIGN_OR_RETURN(const auto tokenizer, LoadTokenizer(&options));
  FT_ASSIGN_OR_RETURN(const fs::path directory,
                      NamespaceDirectory(options.directory, options.name_space));
  DatastoreOptions store_options = OptionsFor(options, IdentityOf(options, *tokenizer));
  store_options.read_only = true;
  FT_ASSIGN_OR_RETURN(const auto datastore, Datastore::Open(directory, store_options));
  const auto snapshot = datastore->snapshot();
  const std::vector<Token> context = tokenizer->Encode(options.text, false, false);
  if (context.empty()) return InvalidInput("there is nothing to look for in an empty text");

  SegmentSearch search;
  const int longest = std::min<std::size_t>(4, context.size());
  search.Find(snapshot->segments, context, longest);
  for (int length = longest; length >= 1; --length) {
    std::uint64_t found = 0;
    for (std::size_t s = 0; s < snapshot->segments.size(); ++s) {
      found += search.range(length, s).size();
    }
    fmt::print("last {} token{}: {} occurrences\n", length, length == 1 ? "" : "s", found);
  }
  Retriever retriever;
  Proposal proposal;
  retriever.Propose(nullptr, snapshot->segments, context, options.speculation_length, &proposal);
  std::vector<std::string> lines(Size(proposal.size()) + 1);
  for (int i = 0; i < proposal.size(); ++i) {
    // A node follows its parent, so the parent's path is there already.
    auto& line = lines[i + 1];
    line = lines[proposal.parents[i]] +
           Json(std::string(tokenizer->TokenBytes(proposal.tokens[i]))).dump();
    fmt::print("{:>3}  {}\n", i + 1, line);
    line += ' ';
  }
  return 0;
}

// How many tokens there are, and which share of the texts the first so many of them make up.
void PrintRanking(const std::string& path, const TokenRanking& ranking) {
  double all = 0;
  for (const TokenRanking::Entry& entry : ranking.entries) all += static_cast<double>(entry.count);
  fmt::print("{}: {} of {} tokens, {} times in all\n", path, ranking.entries.size(),
             ranking.vocabulary, FormatCount(all));
  TextTable table({"first", "of the texts"});
  double sum = 0;
  std::size_t next = 256;
  for (std::size_t i = 0; i < ranking.entries.size(); ++i) {
    sum += static_cast<double>(ranking.entries[i].count);
    if (i + 1 != next) continue;
    table.Add({std::to_string(next), fmt::format("{:.2f} %", 100 * sum / all)});
    next *= 2;
  }
  fmt::print("{}", table.Render(2));
}

Result<int> RunRank(DatastoreCommandOptions options) {
  if (options.directory.empty() && options.files.empty()) {
    return InvalidInput("there is nothing to count: name a datastore with -d DIR, or files");
  }
  if (options.output.empty()) {
    if (options.directory.empty()) {
      return InvalidInput("where is the ranking to go? name a file with --output FILE");
    }
    options.output = RankingPath(options.directory).string();
  }
  FT_ASSIGN_OR_RETURN(const auto tokenizer, LoadTokenizer(&options));
  std::vector<std::uint64_t> counts(tokenizer->vocabulary());
  const auto count = [&counts](std::span<const Token> document) -> Status {
    for (const Token token : document) {
      if (token < 0 || token >= std::ssize(counts)) {
        return Invalid("token {} is none of the model's {}", token, counts.size());
      }
      ++counts[token];
    }
    return {};
  };
  if (!options.directory.empty()) {
    FT_ASSIGN_OR_RETURN(const fs::path directory,
                        NamespaceDirectory(options.directory, options.name_space));
    DatastoreOptions store_options = OptionsFor(options, IdentityOf(options, *tokenizer));
    store_options.read_only = true;
    FT_ASSIGN_OR_RETURN(const auto datastore, Datastore::Open(directory, store_options));
    for (const auto& segment : datastore->snapshot()->segments) {
      segment->VisitDocuments([&](std::span<const Token> document) { (void)count(document); });
    }
  }
  for (const std::string& file : options.files) {
    FT_RETURN_IF_ERROR(
        ReadDocuments(file, *tokenizer, options.Threads(), count, [](std::int64_t /*done*/) {}));
  }
  const TokenRanking ranking = RankTokens(*tokenizer, counts);
  if (ranking.entries.empty()) return InvalidInput("the texts have no token to rank");
  const Status written = ReplaceFile(options.output, FormatTokenRanking(ranking));
  if (!written.ok()) return written.error();
  if (options.output != "-") PrintRanking(options.output, ranking);
  return 0;
}

Result<int> RunReplay(DatastoreCommandOptions options) {
  FT_ASSIGN_OR_RETURN(const auto tokenizer, LoadTokenizer(&options));
  FT_ASSIGN_OR_RETURN(const auto directory,
                      DatastoreDirectory::Open(options.directory,
                                               OptionsFor(options, IdentityOf(options, *tokenizer)),
                                               /*learn=*/false));
  const bool shared_only = options.name_space == DatastoreDirectory::kShared;
  FT_ASSIGN_OR_RETURN(const std::shared_ptr<DatastoreTenant> tenant,
                      directory->Tenant(shared_only ? DatastoreFolder::kDefault
                                                    : std::string_view(options.name_space)));
  std::vector<std::vector<Token>> streams;
  const std::size_t prompt = options.prompt_tokens;
  for (const std::string& file : options.files) {
    FT_RETURN_IF_ERROR(ReadDocuments(
        file, *tokenizer, options.Threads(),
        [&](std::vector<Token> tokens) -> Status {
          const bool wanted = options.limit == 0 || streams.size() < Size(options.limit);
          if (wanted && tokens.size() > prompt) streams.push_back(std::move(tokens));
          return {};
        },
        [](std::int64_t) {}));
  }
  if (streams.empty()) {
    return Invalid("no document is longer than --prompt-tokens {}", prompt);
  }
  std::ranges::sort(options.lengths);
  const Json points = Replay(tenant.get(), options.lengths, streams, prompt);
  std::uint64_t tokens = 0;
  for (const auto& segment : tenant->Segments()) tokens += segment->tokens();
  const Json report = {{"kind", "replay"},           {"streams", streams.size()},
                       {"datastore_tokens", tokens}, {"prompt_tokens", prompt},
                       {"files", options.files},     {"points", points}};
  FT_RETURN_IF_ERROR(WriteReport(options.Report(), report, ReplayTable(points, options.lengths)));
  return 0;
}

using Options = std::shared_ptr<DatastoreCommandOptions>;

template <typename Body>
OptionGroup AddPart(CLI::App* command, const char* name, const char* description,
                    const Options& options, CommandBody* chosen, Body body) {
  CLI::App* part = AddCommand(command, name, description);
  const OptionGroup add(part);
  add("-d,--datastore", &options->directory, "DIR", "The datastore's folder")->required();
  WhenChosen(part, chosen, [options, body] { return body(*options); });
  return add;
}

void AddNamespace(const OptionGroup& add, const Options& options, const char* description) {
  add("--namespace", &options->name_space, "NAME", description);
}
void AddTarget(const OptionGroup& add, const Options& options) {
  AddTargetOptions(add, "-m,--target,--model", &options->model,
                   "The model, a folder or a GGUF file, whose tokenizer is used (default: the "
                   "bundled one)");
}
void AddThreads(const OptionGroup& add, const Options& options) {
  add("--threads", &options->threads, "N", "Threads (default: all cores)")->check(Between(1, 1024));
}
void AddCapacity(const OptionGroup& add, const Options& options) {
  add("--capacity", &options->capacity_millions, "M",
      "Millions of tokens to keep (default 2048); the oldest go first")
      ->check(Between(0.001, 30000.0));
}

void AddContents(CLI::App* command, const Options& options, CommandBody* chosen) {
  const OptionGroup info =
      AddPart(command, "info", "Show what the namespaces hold: documents, tokens, days, segments",
              options, chosen, [](DatastoreCommandOptions given) { return RunInfo(given); });
  info("-n,--documents", &options->listed, "N", "Also the N largest and newest documents of each")
      ->check(Between(0, 1 << 30));
  info("--json", &options->json, "Print JSON");

  const OptionGroup search =
      AddPart(command, "search", "Show where a text occurs", options, chosen, RunSearch);
  search("text", &options->text, "TEXT", "The text, letter by letter")->required();
  search("-n,--limit", &options->most, "N", "Documents to show (default 10)")
      ->check(Between(0, 1 << 30));
  search("--json", &options->json, "Print JSON");
  AddTarget(search, options);
  AddNamespace(search, options, "Where to look (default: 'shared')");

  const OptionGroup exporting =
      AddPart(command, "export", "Write all documents as JSON lines, which `build` reads", options,
              chosen, RunExport);
  exporting("-o,--output", &options->output, "FILE",
            "Where they go; by default to the standard output");
  AddTarget(exporting, options);
  AddNamespace(exporting, options, "Which namespace (default: 'shared')");
}

void AddRemoval(CLI::App* command, const Options& options, CommandBody* chosen) {
  const OptionGroup forget =
      AddPart(command, "forget", "Remove documents, from every file of the datastore", options,
              chosen, RunForget);
  forget("--namespace", &options->name_space, "NAME", "Of which namespace")->required();
  forget("--all", &options->all, "All of them");
  forget("--document", &options->documents, "NUMBER", "Those of these numbers, which search tells")
      ->delimiter(',');
  forget("--matching", &options->matching, "TEXT", "Those in which this text occurs");
  AddTarget(forget, options);
  AddThreads(forget, options);

  const OptionGroup expire =
      AddPart(command, "expire", "Drop the oldest documents", options, chosen, RunExpire);
  expire("--older-than", &options->older_than_days, "DAYS",
         "Those that came more than so many days ago")
      ->check(Between(0, 1 << 20));
  expire("--keep-tokens", &options->keep_tokens, "N",
         "All but the newest, of so many tokens together at most")
      ->check(Between(0.0, 1e12));
  AddNamespace(expire, options, "Of which namespace (default: 'shared')");
  AddThreads(expire, options);
}

void AddReplay(CLI::App* command, const Options& options, CommandBody* chosen) {
  const OptionGroup replay =
      AddPart(command, "replay", "Measure accepted tokens on recorded streams, without a model",
              options, chosen, RunReplay);
  replay("files", &options->files, "FILE", "Streams, as `build` reads them")->required();
  AddTarget(replay, options);
  AddNamespace(replay, options, "Also look into this namespace");
  AddThreads(replay, options);
  replay("--lengths", &options->lengths, "LIST", "Speculation lengths (default 2,4,8,16,32)")
      ->delimiter(',')
      ->check(Between(2, kMaxProposal + 1));
  replay("--prompt-tokens", &options->prompt_tokens, "N",
         "Tokens of each stream that are given (default 32)")
      ->check(Between(1, 1 << 20));
  replay("--limit", &options->limit, "N", "Streams at most (default: all)")
      ->check(Between(0, 1 << 30));
  replay("--json", &options->json, "Print JSON");
  replay("--html", &options->html, "FILE", "Write a page with the plots");
}

}  // namespace

void AddDatastoreCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command =
      AddCommand(app, "datastore", "Build, inspect and replay the text that retrieval uses");
  RequireCommand(command);
  const auto options = std::make_shared<DatastoreCommandOptions>();

  const OptionGroup build =
      AddPart(command, "build", "Add files: text, JSON lines, or tokens (.u16, .u32)", options,
              chosen, RunBuild);
  build("files", &options->files, "FILE", "The files")->required();
  AddTarget(build, options);
  AddNamespace(build, options, "Who reads it: 'shared' (default) is everybody");
  AddThreads(build, options);
  AddCapacity(build, options);

  AddContents(command, options, chosen);
  AddRemoval(command, options, chosen);

  const OptionGroup query = AddPart(command, "query", "Show what would be proposed after a text",
                                    options, chosen, RunQuery);
  query("text", &options->text, "TEXT", "The text")->required();
  query("--speculation-length", &options->speculation_length, "N",
        "Rows to verify, the root among them (default 16)")
      ->check(Between(2, kMaxProposal + 1));
  AddTarget(query, options);
  AddNamespace(query, options, "Where to look (default: 'shared')");

  AddPart(command, "verify", "Check every byte and the order of every suffix", options, chosen,
          RunVerify);

  const OptionGroup compact =
      AddPart(command, "compact", "Merge segments as far as the capacity allows", options, chosen,
              RunCompact);
  AddNamespace(compact, options, "Which namespace (default: 'shared')");
  AddThreads(compact, options);
  AddCapacity(compact, options);

  CLI::App* ranking =
      AddCommand(command, "rank", "Rank tokens by how often texts have them, for --draft-vocab");
  const OptionGroup rank(ranking);
  rank("files", &options->files, "FILE", "Texts, as `build` reads them");
  rank("-d,--datastore", &options->directory, "DIR", "Count what this datastore holds, too");
  rank("-o,--output", &options->output, "FILE",
       "Where the ranking goes; by default beside what the datastore holds, where --draft-vocab N "
       "finds it");
  AddTarget(rank, options);
  AddNamespace(rank, options, "Which namespace to count (default: 'shared')");
  AddThreads(rank, options);
  WhenChosen(ranking, chosen, [options] { return RunRank(*options); });

  AddReplay(command, options, chosen);
}

}  // namespace foretoken
