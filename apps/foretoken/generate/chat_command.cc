#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "apps/foretoken/common/bench_stats.h"
#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/common/generation.h"
#include "apps/foretoken/common/interrupts.h"
#include "apps/foretoken/common/shown_text.h"
#include "apps/foretoken/common/terminal.h"
#include "apps/foretoken/generate/conversation.h"
#include "apps/foretoken/generate/line_reader.h"
#include "apps/foretoken/options/model_sampling.h"
#include "apps/foretoken/options/options.h"
#include "base/files/read_text.h"
#include "base/files/replace_file.h"
#include "base/text/parse_number.h"
#include "foretoken/chat_format.h"
#include "json/json.h"

namespace foretoken {
namespace {

struct ChatOptions : DecodingOptions {
  std::string system;
  std::string color = "auto";
  ModelSamplingOptions model_sampling;
};

constexpr const char* kHelp =
    "/help            this list\n"
    "/reset           forget the conversation\n"
    "/system TEXT     set the system message (empty: none) and forget the conversation\n"
    "/mode MODE       auto, ar, sd, ssd, ngram, sssd ...: how to decode; the text stays the same\n"
    "/set NAME VALUE  temp, top-k, top-p, min-p, repeat-penalty, seed or max-tokens\n"
    "/regen           another reply to the last turn, with the next seed\n"
    "/save FILE       write the conversation as JSON; /load FILE goes on with it\n"
    "/stats           what the replies so far cost\n"
    "/quit            leave (also Ctrl-D); Ctrl-C stops a reply\n"
    "On a terminal, the arrow keys edit the line and go through what was typed before.\n";

// What stands before the first space, and what behind it.
std::pair<std::string, std::string> SplitAtSpace(const std::string& text) {
  const std::size_t space = text.find(' ');
  return {text.substr(0, space), space == std::string::npos ? "" : text.substr(space + 1)};
}

/// A reply as it comes: shown, what is thought dimmed, and kept for the turns after it.
class ReplyText {
 public:
  /// `painted`: by how tokens came.
  ReplyText(const ChatReading& reading, const Painter* painter, bool painted)
      : reader_(reading), painter_(painter), painted_(painted) {}

  void Add(const EmittedToken& token) {
    reader_.Push(token.text, &parts_);
    Show(token.origin);
  }
  void End() {
    reader_.Finish(&parts_);
    Show(TokenOrigin::kBonus);
  }

  /// The assistant's turn. Templates write thoughts themselves, where they want them again.
  ChatMessage message() const {
    ChatMessage message{.role = "assistant", .content = content_};
    if (!thoughts_.empty()) {
      message.more = Json{{"reasoning_content", thoughts_}}.dump();
    }
    return message;
  }

 private:
  void Show(TokenOrigin origin) {
    for (const ChatPart& part : parts_) {
      const bool thought = part.kind == ChatPart::Kind::kReasoning;
      if (!thought && content_.empty() && !thoughts_.empty()) fmt::print("\n\n");
      (thought ? thoughts_ : content_) += part.text;
      const std::string shown = ShownText(part.text, stdout);
      fmt::print("{}", thought    ? painter_->Dim(shown)
                       : painted_ ? painter_->Paint(origin, shown)
                                  : shown);
    }
    parts_.clear();
    std::fflush(stdout);
  }

  ChatReader reader_;
  const Painter* painter_;
  bool painted_;
  std::vector<ChatPart> parts_;
  std::string content_;
  std::string thoughts_;
};

class Chat {
 public:
  Chat(ChatOptions options, Mode mode, Decoding decoding, AdapterUse adapter, int context)
      : options_(std::move(options)),
        mode_(mode),
        decoding_(std::move(decoding)),
        target_(*decoding_.target),
        adapter_(adapter),
        context_(context),
        painter_(UseColor(options_.color, stdout)) {
    conversation_.system = options_.system;
  }

  Status Run();

 private:
  Status OpenEngine(Mode mode);
  Status Reply(const std::string& text);
  Result<std::vector<Token>> EncodeFitting();
  /// False to leave.
  bool Command(const std::string& line);
  Status ChangeMode(const std::string& name);
  void Set(const std::string& arguments);
  Status Regenerate();
  Status Save(const std::string& path) const;
  Status Load(const std::string& path);
  void PrintStats() const;
  /// What there is to say of the mode's draft, once it is over.
  void SayVerdict() const;
  void Say(const std::string& text) const { fmt::print("{}\n", painter_.Dim(text)); }

  ChatOptions options_;
  Mode mode_;
  Decoding decoding_;
  const LanguageModel& target_;
  const AdapterUse adapter_;
  int context_;
  Painter painter_;
  std::unique_ptr<Engine> engine_;
  Conversation conversation_;
  RequestStats total_;
  RequestStats of_mode_;  // Since the mode was chosen.
  int replies_ = 0;
};

Status Chat::OpenEngine(Mode mode) {
  engine_.reset();
  of_mode_ = {};
  FT_ASSIGN_OR_RETURN(engine_, options_.OpenEngine(mode, decoding_, context_));
  mode_ = mode;
  return {};
}

Result<std::vector<Token>> Chat::EncodeFitting() {
  // Leave room for a reply, but never more than half of a small context.
  const int reserve = std::min(options_.generation.stop.max_tokens, context_ / 2);
  bool dropped = false;
  while (true) {
    std::vector<ChatMessage>& messages = conversation_.messages;
    const ChatInput chat{.messages = conversation_.WithSystem(),
                         .variables = options_.chat_template.variables,
                         .now = LocalTime()};
    FT_ASSIGN_OR_RETURN(std::vector<Token> tokens, target_.tokenizer()->EncodeChat(chat));
    if (std::ssize(tokens) + reserve <= context_ || messages.size() < 3) {
      if (dropped) {
        Say(fmt::format("[the context of {} tokens is full: the oldest turns were dropped]",
                        context_));
      }
      FT_RETURN_IF_ERROR(CheckPromptFits(tokens.size(), context_));
      return tokens;
    }
    messages.erase(messages.begin(), messages.begin() + 2);  // A turn and its reply.
    dropped = true;
  }
}

Status Chat::Reply(const std::string& text) {
  conversation_.messages.push_back({"user", text});
  Result<std::vector<Token>> tokens = EncodeFitting();
  if (!tokens.ok()) {
    conversation_.messages.pop_back();
    return tokens.error();
  }
  ReplyText reply(ReadingAfter(*target_.tokenizer(), *tokens), &painter_, mode_ != Mode::kAr);
  Request request;
  request.sampling = options_.generation.sampling;
  FT_RETURN_IF_ERROR(
      KeepToBudget(options_.budget, options_.constraint, target_, *tokens, &request.sampling));
  request.prompt = std::move(*tokens);
  request.stop = options_.generation.stop;
  request.continues_text = false;
  request.datastore = decoding_.datastore.tenant;
  request.adapter = adapter_;
  std::optional<SequenceId> running;
  bool cancelled = false;
  GenerateHooks hooks;
  const auto cancel_if_interrupted = [&](SequenceId sequence) {
    if (Interrupted() && !cancelled) engine_->Cancel(sequence);
    cancelled = cancelled || Interrupted();
  };
  hooks.before_step = [&] {
    if (running) cancel_if_interrupted(*running);
  };
  hooks.on_token = [&](SequenceId sequence, const EmittedToken& token) {
    running = sequence;
    cancel_if_interrupted(sequence);
    if (!cancelled) reply.Add(token);
  };
  Result<Generation> generation = Generate(*engine_, std::move(request), hooks);
  if (!generation.ok()) {
    conversation_.messages.pop_back();
    return generation.error();
  }
  reply.End();
  if (const Status finite = CheckFiniteLogits({&*generation, 1}, target_.source().label());
      !finite.ok()) {
    fmt::print("\n");
    conversation_.messages.pop_back();
    return finite;
  }
  conversation_.messages.push_back(reply.message());
  const RequestStats& stats = generation->stats;
  AddStats(stats, &total_);
  AddStats(stats, &of_mode_);
  ++replies_;
  std::string line = "[" + SpeedText(stats) + SpeculationText(mode_, stats);
  if (stats.cached_prompt_tokens > 0) {
    line += fmt::format(", {} of {} prompt tokens reused", stats.cached_prompt_tokens,
                        stats.prompt_tokens);
  }
  if (generation->finish != FinishReason::kEndOfSequence &&
      generation->finish != FinishReason::kGrammarEnd) {
    line += fmt::format(", {}", DescribeFinish(generation->finish));
  }
  fmt::print("\n");
  Say(line + "]");
  if (generation->finish == FinishReason::kContextFull) {
    Say("[the context is full; /reset begins a new conversation]");
  }
  return {};
}

void Chat::Set(const std::string& arguments) {
  const auto [name, value] = SplitAtSpace(arguments);
  SamplingParams sampling = options_.generation.sampling;
  int max_tokens = options_.generation.stop.max_tokens;
  const bool parsed = name == "seed"         ? ParseNumber(value, &sampling.seed)
                      : name == "max-tokens" ? ParseNumber(value, &max_tokens) && max_tokens > 0
                                             : SetSampling(name, value, &sampling);
  if (!parsed) {
    Say(fmt::format("write it like /set temp 0.7; names: {}, seed, max-tokens",
                    fmt::join(SamplingFlags(), ", ")));
    return;
  }
  const Status valid = ValidateSamplingParams(sampling, target_.facts().vocabulary);
  if (!valid.ok()) {
    Say(valid.error().message);
    return;
  }
  options_.generation.sampling = sampling;
  options_.generation.stop.max_tokens = max_tokens;
  Say(fmt::format("{} is now {}", name, value));
}

void Chat::PrintStats() const {
  if (replies_ == 0) return Say("no reply yet");
  Say(
      fmt::format("{} replies, {} tokens in {} rounds ({:.2f} tokens/round), {} of {} proposed "
                  "tokens accepted, cache hits {}, {} of {} prompt tokens reused",
                  replies_, total_.output_tokens, total_.rounds, total_.acceptance_length(),
                  total_.accepted, total_.proposed, FormatPercent(HitRate(total_)),
                  total_.cached_prompt_tokens, total_.prompt_tokens));
}

Status Chat::ChangeMode(const std::string& name) {
  FT_ASSIGN_OR_RETURN(const Mode mode, ParseMode(name));
  FT_RETURN_IF_ERROR(options_.model.CheckDraftOf(mode));
  FT_RETURN_IF_ERROR(options_.datastore.Check({&mode, 1}));
  if (mode == Mode::kAuto) FT_RETURN_IF_ERROR(options_.speculation.CheckFor({&mode, 1}));
  SayVerdict();
  FT_RETURN_IF_ERROR(OpenEngine(mode));
  Say(fmt::format("mode {}", ModeName(mode_)));
  return {};
}

Status Chat::Regenerate() {
  if (conversation_.messages.empty()) return InvalidInput("there is no reply yet");
  if (options_.generation.sampling.temperature == 0) {
    return InvalidInput("at temperature 0 the reply is always the same; /set temp 0.7 first");
  }
  ++options_.generation.sampling.seed;
  const Conversation before = conversation_;
  Status status = Reply(conversation_.TakeLastTurn());
  if (!status.ok()) conversation_ = before;
  return status;
}

Status Chat::Save(const std::string& path) const {
  if (path.empty()) return InvalidInput("write it like /save talk.json");
  FT_RETURN_IF_ERROR(ReplaceFile(path, FormatConversation(conversation_)));
  Say(fmt::format("{} messages are in {}", conversation_.messages.size(), path));
  return {};
}

Status Chat::Load(const std::string& path) {
  if (path.empty()) return InvalidInput("write it like /load talk.json");
  const Result<std::string> text = ReadText(path);
  if (!text.ok()) return Invalid("cannot read '{}'", path);
  FT_ASSIGN_OR_RETURN(conversation_, ParseConversation(*text, path));
  Say(fmt::format("{} messages from {}", conversation_.messages.size(), path));
  return {};
}

void Chat::SayVerdict() const {
  if (engine_ == nullptr) return;
  const std::string verdict = DraftVerdict(mode_, CostsOf(of_mode_, engine_->stats()));
  if (!verdict.empty()) Say(fmt::format("[{}]", verdict));
}

bool Chat::Command(const std::string& line) {
  const auto [name, arguments] = SplitAtSpace(line);
  if (name == "/quit" || name == "/exit") return false;
  Status status;
  if (name == "/help") {
    fmt::print("{}", kHelp);
  } else if (name == "/reset") {
    conversation_.messages.clear();
    Say("the conversation is forgotten");
  } else if (name == "/system") {
    conversation_ = {.system = arguments};
    Say(arguments.empty() ? "no system message" : "the system message is set");
  } else if (name == "/mode") {
    status = ChangeMode(arguments);
  } else if (name == "/set") {
    Set(arguments);
  } else if (name == "/regen") {
    status = Regenerate();
  } else if (name == "/save") {
    status = Save(arguments);
  } else if (name == "/load") {
    status = Load(arguments);
  } else if (name == "/stats") {
    PrintStats();
  } else {
    Say(fmt::format("there is no command {}; /help lists them", name));
  }
  if (!status.ok()) Say(status.error().message);
  return engine_ != nullptr;
}

Status Chat::Run() {
  fmt::print("{} in mode {}, context {} tokens; /help lists commands\n",
             options_.model.TargetSource().label(), ModeName(mode_), context_);
  if (mode_ != Mode::kAr) fmt::print("{}", painter_.Legend());
  FT_RETURN_IF_ERROR(OpenEngine(mode_));
  CatchInterrupts();
  // The end of a style is the editor's to print with the character behind it.
  LineReader reader(painter_.Bold(">") + " ", ChatHistoryFile());
  std::string line;
  for (bool stays = true; stays;) {
    const LineReader::Read read = reader.Next(&line);
    if (read == LineReader::Read::kInterrupted) {
      fmt::print("\n{}\n", painter_.Dim("(/quit or Ctrl-D leaves)"));
    } else if (read == LineReader::Read::kEnd) {
      if (IsTerminal(stdin)) fmt::print("\n");
      stays = false;
    } else if (line.starts_with('/')) {
      stays = Command(line);
    } else if (!line.empty()) {
      if (const Status status = Reply(line); !status.ok()) Say(status.error().message);
    }
  }
  SayVerdict();
  return decoding_.datastore.Flush();
}

Result<int> RunChat(ChatOptions options) {
  FT_ASSIGN_OR_RETURN(const Mode mode, options.Choose());
  FT_RETURN_IF_ERROR(options.CheckFor({&mode, 1}));
  FT_RETURN_IF_ERROR(options.model_sampling.AddTo(options.model.TargetSource().path,
                                                  &options.generation.sampling));
  FT_ASSIGN_OR_RETURN(Decoding decoding, options.Load(mode));
  const LanguageModel& target = *decoding.target;
  if (!target.tokenizer()->has_chat_template()) {
    return Invalid(
        "no chat with the model in '{}': {}; name one with --chat-template, or let `foretoken run` "
        "continue plain text",
        options.model.target, target.tokenizer()->EncodeChat({}).error().message);
  }
  FT_ASSIGN_OR_RETURN(const AdapterUse adapter, TheAdapter(target));
  FT_RETURN_IF_ERROR(
      ValidateSamplingParams(options.generation.sampling, target.facts().vocabulary));
  FT_ASSIGN_OR_RETURN(const int context, ChooseContext(options.model, target, kDefaultContext));
  Chat chat(std::move(options), mode, std::move(decoding), adapter, context);
  FT_RETURN_IF_ERROR(chat.Run());
  return 0;
}

}  // namespace

void AddChatCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddCommand(app, "chat", "Talk with a model; /help inside lists the commands");
  const OptionGroup add(command);
  auto options = std::make_shared<ChatOptions>();
  options->generation.sampling.temperature = 0.7F;
  options->generation.stop.max_tokens = 512;
  add("--system", &options->system, "TEXT", "A system message");
  AddChatTemplateOptions(command, &options->chat_template);
  AddReasoningOptions(command, &options->budget);
  AddDecodingOptions(command, options.get());
  AddModelSamplingOption(command, &options->model_sampling);
  AddColorOption(command, &options->color);
  WhenChosen(command, chosen, [options, command] {
    NoteGiven(command, &options->model_sampling);
    return RunChat(*options);
  });
}

}  // namespace foretoken
