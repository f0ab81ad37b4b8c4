// A cell: one program in namespaces of its own (mount, pid, ipc, uts, cgroup and an empty network),
// under an uid of its own, without a capability or a way to gain one.
//
// Two processes: pid 1 of the cell is this program, which only waits, passes SIGTERM on and reports
// how the program ended; pid 2 is the program. When the launcher dies, the kernel kills both.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "services/helper/launch/identity.h"
#include "services/helper/launch/unique-fd.h"
#include "services/helper/launch/view.h"

namespace cordon::launch {

// A descriptor that the program gets under the number `number` (3 or above).
struct Inherited {
  UniqueFd fd;
  int number = -1;
};

struct CellPlan {
  std::string name;  // for messages: "vmm", "vsock", "parser"
  View view;
  Identity identity;
  std::vector<std::string> argv;  // argv[0] is the program's path in the view
  std::vector<Inherited> descriptors;
  UniqueFd output;  // becomes the program's stdout and stderr; its stdin is /dev/null
};

// How a program ended: a wait status. Nothing where the cell was killed before it could say.
struct Ending {
  int waitStatus = 0;
  [[nodiscard]] bool exitedWith(int code) const;
  [[nodiscard]] std::string describe() const;  // "exit 1", "signal 31 (SIGSYS)"
};

class Cell {
 public:
  // Returns once the program has been executed. Throws what failed on the way there, from inside
  // the cell as well.
  static Cell start(CellPlan plan);
  ~Cell();  // kills what is left and waits for it
  Cell(Cell&&) noexcept;
  Cell& operator=(Cell&& other) noexcept;  // what was here before is killed

  [[nodiscard]] const std::string& name() const { return ownName; }
  // Readable once the cell has ended: all of its processes are then gone.
  [[nodiscard]] const UniqueFd& pidFd() const { return process; }
  // Asks the program to end (SIGTERM), or ends the cell at once.
  void terminate() const;
  void kill() const;
  // Waits for the end, which pidFd() announces.
  Ending reap();

 private:
  Cell() = default;
  void end() noexcept;
  std::string ownName;
  pid_t pid = -1;
  UniqueFd process;
  UniqueFd status;  // pid 1 writes the program's wait status into the other end
};

}  // namespace cordon::launch
