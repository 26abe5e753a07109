#include "apps/foretoken/generate/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <iterator>

#include "apps/foretoken/common/interrupts.h"
#include "apps/foretoken/common/terminal.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr int kHistoryLines = 1000;
constexpr wchar_t kPromptEscape = 1;

// A byte of standard input; false at its end and after Ctrl-C.
bool ReadByte(char* byte) {
  while (true) {
    pollfd events[] = {{STDIN_FILENO, POLLIN, 0}, {InterruptEvent(), POLLIN, 0}};
    if (poll(events, std::size(events), /*timeout=*/-1) < 0 && errno != EINTR) return false;
    if (Interrupted()) return false;
    if (events[0].revents == 0) continue;
    const ssize_t got = read(STDIN_FILENO, byte, 1);
    if (got == 1) return true;
    if (got == 0 || errno != EINTR) return false;
  }
}

// For the editor: 1 and a character, or 0.
int ReadCharacter(EditLine*, wchar_t* character) {
  std::mbstate_t state = {};
  char byte = 0;
  while (ReadByte(&byte)) {
    const std::size_t used = std::mbrtowc(character, &byte, 1, &state);
    if (used <= 1) return 1;
    if (used == static_cast<std::size_t>(-1)) state = {};  // Not UTF-8: passed over.
  }
  return 0;
}

// The prompt with the editor's mark around colours, which take no room on the line.
std::string MarkColors(const std::string& prompt) {
  const auto mark = static_cast<char>(kPromptEscape);
  std::string marked;
  for (const char c : prompt) {
    if (c == '\x1b') marked += mark;
    marked += c;
    if (c == 'm') marked += mark;
  }
  return marked;
}

void TrimEnd(std::string* line) {
  while (line->ends_with('\n') || line->ends_with('\r') || line->ends_with(' ')) line->pop_back();
}

}  // namespace

LineReader::LineReader(const std::string& prompt, std::string history_file)
    : prompt_(MarkColors(prompt)), history_file_(std::move(history_file)) {
  if (!IsTerminal(stdin) || !IsTerminal(stdout)) return;
  std::setlocale(LC_CTYPE, "C.UTF-8");  // In which the editor reads and writes.
  history_.reset(history_init());
  HistEvent event = {};
  history(history_.get(), &event, H_SETSIZE, kHistoryLines);
  history(history_.get(), &event, H_SETUNIQUE, 1);
  if (!history_file_.empty()) history(history_.get(), &event, H_LOAD, history_file_.c_str());
  editor_.reset(el_init("foretoken", stdin, stdout, stderr));
  const auto prompt_of = [](EditLine* editor) {
    void* reader = nullptr;
    el_get(editor, EL_CLIENTDATA, &reader);
    return static_cast<LineReader*>(reader)->prompt_.data();
  };
  using PromptOf = char* (*)(EditLine*);
  el_set(editor_.get(), EL_CLIENTDATA, this);
  el_set(editor_.get(), EL_PROMPT_ESC, static_cast<PromptOf>(prompt_of), kPromptEscape);
  el_set(editor_.get(), EL_EDITOR, "emacs");
  el_set(editor_.get(), EL_SIGNAL, 0);
  el_set(editor_.get(), EL_GETCFN, ReadCharacter);
  el_set(editor_.get(), EL_HIST, history, history_.get());
  el_set(editor_.get(), EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_source(editor_.get(), nullptr);  // What the user has in ~/.editrc.
}

LineReader::~LineReader() {
  if (history_ == nullptr || history_file_.empty()) return;
  std::error_code error;
  fs::create_directories(fs::path(history_file_).parent_path(), error);
  if (error) return;
  HistEvent event = {};
  history(history_.get(), &event, H_SAVE, history_file_.c_str());
}

LineReader::Read LineReader::Next(std::string* line) {
  ForgetInterrupts();
  std::fflush(stdout);
  const Read read = editor_ == nullptr ? Plain(line) : Edited(line);
  if (read == Read::kLine) TrimEnd(line);
  return read;
}

LineReader::Read LineReader::Edited(std::string* line) {
  el_resize(editor_.get());
  // Before the prompt, behind which a fast hand may type at once; the editor does it after.
  el_set(editor_.get(), EL_PREP_TERM, 1);
  int length = 0;
  const char* text = el_gets(editor_.get(), &length);
  if (Interrupted()) return Read::kInterrupted;
  if (text == nullptr || length <= 0) return Read::kEnd;
  line->assign(text, length);
  HistEvent event = {};
  if (line->find_first_not_of(" \n") != std::string::npos) {
    history(history_.get(), &event, H_ENTER, text);
  }
  return Read::kLine;
}

LineReader::Read LineReader::Plain(std::string* line) {
  line->clear();
  char byte = 0;
  while (ReadByte(&byte)) {
    *line += byte;
    if (byte == '\n') return Read::kLine;
  }
  if (Interrupted()) return Read::kInterrupted;
  return line->empty() ? Read::kEnd : Read::kLine;
}

std::string ChatHistoryFile() {
  const auto variable = [](const char* name) -> fs::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  fs::path folder = variable("XDG_STATE_HOME");
  if (!folder.is_absolute()) folder = variable("HOME") / ".local" / "state";
  if (!folder.is_absolute()) return {};
  return (folder / "foretoken" / "chat_history").string();
}

}  // namespace foretoken
