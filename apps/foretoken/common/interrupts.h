#pragma once

namespace foretoken {

/// Ctrl-C becomes something to ask about, and never ends the program. Without SA_RESTART, so that
/// reading from a pipe returns too.
void CatchInterrupts();
/// Whether Ctrl-C came since ForgetInterrupts.
bool Interrupted();
void ForgetInterrupts();
/// Ctrl-C ends the program again, as before CatchInterrupts.
void LetInterruptsEnd();
/// A file descriptor that can be read after Ctrl-C until ForgetInterrupts: for poll, which EINTR
/// alone does not serve, since a signal just before a call would not cause it.
int InterruptEvent();

}  // namespace foretoken
