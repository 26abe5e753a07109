#pragma once

#include <histedit.h>

#include <memory>
#include <string>

namespace foretoken {

/// Lines that a user types, with editing and a history that outlives the program; or the lines of a
/// pipe. Ctrl-C ends a line: CatchInterrupts must have been called.
class LineReader {
 public:
  enum class Read { kLine, kInterrupted, kEnd };

  /// The history is kept in a file, whose folder is made; empty: nowhere.
  LineReader(const std::string& prompt, std::string history_file);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// The next line without spaces at its end.
  Read Next(std::string* line);

 private:
  Read Edited(std::string* line);
  static Read Plain(std::string* line);

  struct EditorEnd {
    void operator()(EditLine* editor) const { el_end(editor); }
  };
  struct HistoryEnd {
    void operator()(History* history) const { history_end(history); }
  };

  std::string prompt_;
  std::string history_file_;
  std::unique_ptr<History, HistoryEnd> history_;  // Both null where the input is no terminal.
  std::unique_ptr<EditLine, EditorEnd> editor_;
};

/// Where chat keeps its history: foretoken/chat_history in the user's folder for state. Empty where
/// the user has none.
std::string ChatHistoryFile();

}  // namespace foretoken
