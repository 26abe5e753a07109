// Commands that print what is made of the tree of commands.

#include <fmt/core.h>

#include <memory>
#include <string>

#include "apps/foretoken/common/commands.h"
#include "apps/foretoken/options/options.h"
#include "apps/foretoken/program/command_tree.h"
#include "apps/foretoken/program/documents.h"

namespace foretoken {

void AddCompletionsCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddCommand(app, "completions",
                                 "Print a script by which a shell completes commands and options");
  const OptionGroup add(command);
  auto shell = std::make_shared<std::string>();
  add("shell", shell.get(), "SHELL", "bash, zsh or fish")
      ->check(OneOf({"bash", "zsh", "fish"}))
      ->required();
  SetFooter(command,
            "For this session of bash: source <(foretoken completions bash). To keep it, write the "
            "script to ~/.local/share/bash-completion/completions/foretoken, to a file _foretoken "
            "in a folder of zsh's fpath, or to ~/.config/fish/completions/foretoken.fish.");
  WhenChosen(command, chosen, [app, shell]() -> Result<int> {
    const CommandFacts root = DescribeCommands(app);
    fmt::print("{}", *shell == "bash"  ? BashCompletions(root)
                     : *shell == "zsh" ? ZshCompletions(root)
                                       : FishCompletions(root));
    return 0;
  });
}

void AddManCommand(CLI::App* app, CommandBody* chosen) {
  CLI::App* command = AddCommand(app, "man", "Print the manual page");
  SetFooter(command, "To read it: foretoken man | man -l -");
  WhenChosen(command, chosen, [app]() -> Result<int> {
    fmt::print("{}", ManPage(DescribeCommands(app), FORETOKEN_VERSION));
    return 0;
  });
}

}  // namespace foretoken
