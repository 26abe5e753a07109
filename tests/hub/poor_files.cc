// Lets a program meet a file system that lacks something: preloaded, it stands before the C
// library's functions. POOR_FILES names what is missing: "links", "locks", or "writing", which is
// then missing at and below the folder POOR_FOLDER.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

bool Lacks(const char* what) {
  const char* missing = std::getenv("POOR_FILES");
  return missing != nullptr && std::strstr(missing, what) != nullptr;
}

bool IsReadOnly(const char* path) {
  const char* folder = std::getenv("POOR_FOLDER");
  return folder != nullptr && Lacks("writing") && std::string_view(path).starts_with(folder);
}

template <typename Function>
Function* Real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int Refuse(int reason) {
  errno = reason;
  return -1;
}

int Open(const char* name, const char* path, int flags, mode_t mode) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  const bool makes = (flags & O_CREAT) != 0 && access(path, F_OK) != 0;
  if ((writes || makes) && IsReadOnly(path)) return Refuse(EROFS);
  return Real(static_cast<int (*)(const char*, int, ...)>(nullptr), name)(path, flags, mode);
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int symlink(const char* target, const char* path) noexcept {
  if (Lacks("links")) return Refuse(EPERM);
  return Real(&symlink, "symlink")(target, path);
}

int flock(int descriptor, int operation) noexcept {
  if (Lacks("locks")) return Refuse(ENOLCK);
  return Real(&flock, "flock")(descriptor, operation);
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (IsReadOnly(path) && access(path, F_OK) != 0) return Refuse(EROFS);
  return Real(&mkdir, "mkdir")(path, mode);
}

int rename(const char* from, const char* to) noexcept {
  if (IsReadOnly(to)) return Refuse(EROFS);
  return Real(&rename, "rename")(from, to);
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open("open64", path, flags, mode);
}
}
