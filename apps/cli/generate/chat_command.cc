#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "base/parse_number.h"
#include "cli/common/bench_stats.h"
#include "cli/common/commands.h"
#include "cli/common/generation.h"
#include "cli/common/terminal.h"
#include "cli/options/options.h"

namespace foretoken {
namespace {

struct ChatOptions : DecodingOptions {
  std::string system;
  std::string color = "auto";
};

std::atomic<bool> interrupted = false;
int interrupt_event = -1;  // An eventfd, readable after Ctrl-C.

// Ctrl-C interrupts a reply or a line being typed, never the program. Reading a line waits for the
// event and not for EINTR alone, which a signal just before the read would not cause. Without
// SA_RESTART, so that reading from a pipe returns too.
void CatchInterrupts() {
  interrupt_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action = {};
  action.sa_handler = [](int) {
    const int error = errno;
    interrupted.store(true);
    eventfd_write(interrupt_event, 1);
    errno = error;
  };
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

constexpr const char* kHelp =
    "/help            this list\n"
    "/reset           forget the conversation\n"
    "/system TEXT     set the system message (empty: none) and forget the conversation\n"
    "/mode MODE       auto, ar, sd, ssd, ngram, sssd ...: how to decode; the text stays the same\n"
    "/set NAME VALUE  temp, top-k, top-p, min-p, repeat-penalty, seed or max-tokens\n"
    "/stats           what the replies so far cost\n"
    "/quit            leave (also Ctrl-D); Ctrl-C stops a reply\n";

// What stands before the first space, and what behind it.
std::pair<std::string, std::string> SplitAtSpace(const std::string& text) {
  const std::size_t space = text.find(' ');
  return {text.substr(0, space), space == std::string::npos ? "" : text.substr(space + 1)};
}

class Chat {
 public:
  Chat(ChatOptions options, Mode mode, Decoding decoding, int context)
      : options_(std::move(options)),
        mode_(mode),
        decoding_(std::move(decoding)),
        target_(*decoding_.target),
        context_(context),
        painter_(UseColor(options_.color, stdout)) {}

  Status Run();

 private:
  enum class Line { kText, kInterrupted, kEnd };

  static Line WaitForLine();
  Line ReadLine(std::string* line);
  Status OpenEngine(Mode mode);
  Status Reply(const std::string& text);
  Result<std::vector<Token>> EncodeFitting();
  /// False to leave.
  bool Command(const std::string& line);
  void Set(const std::string& arguments);
  void PrintStats() const;
  void Say(const std::string& text) const { fmt::print("{}\n", painter_.Dim(text)); }

  ChatOptions options_;
  Mode mode_;
  Decoding decoding_;
  const LanguageModel& target_;
  int context_;
  Painter painter_;
  std::unique_ptr<Engine> engine_;
  std::vector<ChatMessage> messages_;  // Without the system message.
  RequestStats total_;
  int replies_ = 0;
};

// Returns when a terminal has a line (or its end) to read, or after Ctrl-C.
Chat::Line Chat::WaitForLine() {
  pollfd events[] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_event, POLLIN, 0}};
  while (poll(events, std::size(events), /*timeout=*/-1) < 0 && errno == EINTR) {
  }
  return events[1].revents != 0 ? Line::kInterrupted : Line::kText;
}

Chat::Line Chat::ReadLine(std::string* line) {
  const bool terminal = IsTerminal(stdin);
  // What comes from the prompt on counts.
  eventfd_t past;
  eventfd_read(interrupt_event, &past);
  interrupted = false;
  if (terminal) fmt::print("{}", painter_.Bold("> "));
  std::fflush(stdout);
  if (terminal && WaitForLine() == Line::kInterrupted) return Line::kInterrupted;
  char* buffer = nullptr;
  std::size_t capacity = 0;
  errno = 0;
  const ssize_t length = getline(&buffer, &capacity, stdin);
  const bool was_interrupted = length < 0 && errno == EINTR;
  if (length > 0) line->assign(buffer, static_cast<std::size_t>(length));
  std::free(buffer);
  if (was_interrupted) {
    std::clearerr(stdin);
    return Line::kInterrupted;
  }
  if (length < 0) return Line::kEnd;
  while (line->ends_with('\n') || line->ends_with(' ')) line->pop_back();
  return Line::kText;
}

Status Chat::OpenEngine(Mode mode) {
  engine_.reset();
  FT_ASSIGN_OR_RETURN(engine_, options_.OpenEngine(mode, decoding_, context_));
  mode_ = mode;
  return {};
}

Result<std::vector<Token>> Chat::EncodeFitting() {
  // Leave room for a reply, but never more than half of a small context.
  const int reserve = std::min(options_.generation.stop.max_tokens, context_ / 2);
  bool dropped = false;
  while (true) {
    std::vector<ChatMessage> messages;
    if (!options_.system.empty()) messages.push_back({"system", options_.system});
    messages.insert(messages.end(), messages_.begin(), messages_.end());
    FT_ASSIGN_OR_RETURN(std::vector<Token> tokens, target_.tokenizer()->EncodeChat(messages));
    if (static_cast<int>(tokens.size()) + reserve <= context_ || messages_.size() < 3) {
      if (dropped) {
        Say(fmt::format("[the context of {} tokens is full: the oldest turns were dropped]",
                        context_));
      }
      FT_RETURN_IF_ERROR(CheckPromptFits(tokens.size(), context_));
      return tokens;
    }
    messages_.erase(messages_.begin(), messages_.begin() + 2);  // A turn and its reply.
    dropped = true;
  }
}

Status Chat::Reply(const std::string& text) {
  messages_.push_back({"user", text});
  Result<std::vector<Token>> tokens = EncodeFitting();
  if (!tokens.ok()) {
    messages_.pop_back();
    return tokens.error();
  }
  Request request;
  request.prompt = std::move(*tokens);
  request.sampling = options_.generation.sampling;
  request.stop = options_.generation.stop;
  request.continues_text = false;
  request.datastore = decoding_.datastore.tenant;
  std::optional<SequenceId> running;
  bool cancelled = false;
  GenerateHooks hooks;
  const auto cancel_if_interrupted = [&](SequenceId sequence) {
    if (interrupted && !cancelled) engine_->Cancel(sequence);
    cancelled = cancelled || interrupted;
  };
  hooks.before_step = [&] {
    if (running) cancel_if_interrupted(*running);
  };
  hooks.on_token = [&](SequenceId sequence, const EmittedToken& token) {
    running = sequence;
    cancel_if_interrupted(sequence);
    if (cancelled || token.text.empty()) return;
    fmt::print("{}", mode_ == Mode::kAr ? std::string(token.text)
                                        : painter_.Paint(token.origin, token.text));
    std::fflush(stdout);
  };
  Result<Generation> generation = Generate(*engine_, std::move(request), hooks);
  if (!generation.ok()) {
    messages_.pop_back();
    return generation.error();
  }
  messages_.push_back({"assistant", generation->text});
  const RequestStats& stats = generation->stats;
  AddStats(stats, &total_);
  ++replies_;
  std::string line = fmt::format("[{} tokens, {:.0f} tokens/s", stats.output_tokens,
                                 stats.decode_tokens_per_second());
  line += SpeculationText(mode_, stats);
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
  const bool parsed = name == "temp"             ? ParseNumber(value, &sampling.temperature)
                      : name == "top-k"          ? ParseNumber(value, &sampling.top_k)
                      : name == "top-p"          ? ParseNumber(value, &sampling.top_p)
                      : name == "min-p"          ? ParseNumber(value, &sampling.min_p)
                      : name == "repeat-penalty" ? ParseNumber(value, &sampling.repetition_penalty)
                      : name == "seed"           ? ParseNumber(value, &sampling.seed)
                      : name == "max-tokens"     ? ParseNumber(value, &max_tokens) && max_tokens > 0
                                                 : false;
  if (!parsed) {
    Say("write it like /set temp 0.7; names: temp, top-k, top-p, min-p, repeat-penalty, seed, "
        "max-tokens");
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

bool Chat::Command(const std::string& line) {
  const auto [name, arguments] = SplitAtSpace(line);
  if (name == "/quit" || name == "/exit") return false;
  if (name == "/help") {
    fmt::print("{}", kHelp);
  } else if (name == "/reset") {
    messages_.clear();
    Say("the conversation is forgotten");
  } else if (name == "/system") {
    options_.system = arguments;
    messages_.clear();
    Say(arguments.empty() ? "no system message" : "the system message is set");
  } else if (name == "/mode") {
    Result<Mode> mode = ParseMode(arguments);
    Status status = mode.ok() ? Status() : Status(mode.error());
    if (status.ok() && NeedsDraft(*mode) && !options_.model.has_draft()) {
      status = InvalidInput("there is no draft model; start with --draft");
    }
    if (status.ok()) status = options_.datastore.Check({&*mode, 1});
    if (status.ok() && *mode == Mode::kAuto) {
      status = options_.speculation.CheckFor(std::span(&*mode, 1));
    }
    if (status.ok()) status = OpenEngine(*mode);
    Say(status.ok() ? fmt::format("mode {}", ModeName(mode_)) : status.error().message);
    if (engine_ == nullptr) return false;
  } else if (name == "/set") {
    Set(arguments);
  } else if (name == "/stats") {
    PrintStats();
  } else {
    Say(fmt::format("there is no command {}; /help lists them", name));
  }
  return true;
}

Status Chat::Run() {
  fmt::print("{} in mode {}, context {} tokens; /help lists commands\n",
             options_.model.TargetSource().label(), ModeName(mode_), context_);
  if (mode_ != Mode::kAr) fmt::print("{}", painter_.Legend());
  FT_RETURN_IF_ERROR(OpenEngine(mode_));
  CatchInterrupts();
  std::string line;
  for (bool stays = true; stays;) {
    const Line read = ReadLine(&line);
    if (read == Line::kInterrupted) {
      fmt::print("\n{}\n", painter_.Dim("(/quit or Ctrl-D leaves)"));
    } else if (read == Line::kEnd) {
      if (IsTerminal(stdin)) fmt::print("\n");
      stays = false;
    } else if (line.starts_with('/')) {
      stays = Command(line);
    } else if (!line.empty()) {
      if (const Status status = Reply(line); !status.ok()) Say(status.error().message);
    }
  }
  return decoding_.datastore.Flush();
}

Result<int> RunChat(ChatOptions options) {
  FT_ASSIGN_OR_RETURN(const Mode mode, options.Choose());
  FT_RETURN_IF_ERROR(options.CheckFor({&mode, 1}));
  FT_ASSIGN_OR_RETURN(Decoding decoding, options.Load(mode));
  const LanguageModel& target = *decoding.target;
  if (!target.tokenizer()->has_chat_template()) {
    return InvalidInput(fmt::format(
        "the model in '{}' has no chat template that Foretoken knows (ChatML, Llama 3); "
        "`foretoken run` continues plain text",
        options.model.target));
  }
  FT_RETURN_IF_ERROR(
      ValidateSamplingParams(options.generation.sampling, target.facts().vocabulary));
  FT_ASSIGN_OR_RETURN(const int context,
                      ChooseContext(options.speculation, target, kDefaultContext));
  Chat chat(std::move(options), mode, std::move(decoding), context);
  FT_RETURN_IF_ERROR(chat.Run());
  return 0;
}

}  // namespace

void AddChatCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command =
      app->add_subcommand("chat", "Talk with a model; /help inside lists the commands");
  const OptionGroup add(command);
  auto options = std::make_shared<ChatOptions>();
  options->generation.sampling.temperature = 0.7F;
  options->generation.stop.max_tokens = 512;
  add("--system", &options->system, "TEXT", "A system message");
  AddDecodingOptions(command, options.get());
  AddColorOption(command, &options->color);
  command->footer(
      "The temperature is 0.7 unless given. Each reply reuses the KV of the turns "
      "before it.");
  command->callback([options, chosen] { *chosen = [options] { return RunChat(*options); }; });
}

}  // namespace foretoken
