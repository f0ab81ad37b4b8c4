// read_file and write_file. Source: protocols/channel.md §15.4 and §15.5.
//
// Nothing here waits on a peer: FIFOs and sockets are EIO, character devices are read up to the
// limit.
#pragma once

#include <string>

#include "common/channel/message.h"
#include "services/guest/identity.h"
#include "services/guest/spool.h"

namespace cordon::guest {

// How the calling thread came out of a file operation.
struct FileOutcome {
  int error = 0;     // an errno
  std::string text;  // with an error: what failed, naming the path
  bool threadUsable = true;
};

// Reads at most request.maxBytes, or 16 MiB, as `actor`. A relative path joins the actor's home.
FileOutcome readFile(const channel::ReadFile& request, const Actor& actor, Spool& content,
                     bool& truncated);

// Replaces the file's content as `actor`: creates missing parents (0755) and the file (0644 less
// the umask). A given mode holds exactly, on an existing file too, and never exposes the content on
// the way to it.
FileOutcome writeFile(const channel::WriteFile& request, const Actor& actor, const Spool& content);

}  // namespace cordon::guest
