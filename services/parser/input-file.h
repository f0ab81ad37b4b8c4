// The file that role read was handed: checked before the sandbox, read from inside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include <kj/io.h>

namespace cordon::parser {

enum class FileRefusal : std::uint8_t {
  NOT_OPEN,      // no descriptor of that number
  NOT_REGULAR,   // a pipe, a device, a socket, a directory: reading could block or have effects
  NOT_READABLE,  // not open for reading
  WRITABLE,      // open for writing too: a reader that is lost must not change what it read
  SYSTEM,        // a system call failed
};
// "not-regular", …
std::string describe(FileRefusal refusal);

class InputFile {
 public:
  // Takes the descriptor, close-on-exec from now on.
  static std::variant<InputFile, FileRefusal> take(int fd);

  // The next bytes in order, at most buffer.size(); 0: its end. Nothing: it cannot be read (errno
  // is lost: a code is all that is told of it). Independent of the descriptor's own offset, which
  // whoever opened the file may share.
  std::optional<std::size_t> read(std::span<std::byte> buffer);

 private:
  explicit InputFile(kj::AutoCloseFd taken) : file(kj::mv(taken)) {}

  kj::AutoCloseFd file;
  std::uint64_t offset = 0;
};

}  // namespace cordon::parser
